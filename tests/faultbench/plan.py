"""Which programs are run: families, their cases, and variations of these; the same for the same seed."""

import importlib.util
import itertools
import pathlib
import random
import sys
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "common"))


@dataclass(frozen=True)
class Play:
    """One program: a case and the fields of its program that are changed."""

    family: str
    file: str              # of a Python family; "" for a C++ one
    case: object
    changes: tuple = ()

    @property
    def name(self):
        return "/".join([self.family, self.case.name, *(f"{k}={v}" for k, v in self.changes)])

    @property
    def cpp(self):
        return not self.file

    @property
    def arguments(self):
        if self.cpp:
            fields = self.program
            return [self.family.removeprefix("cpp_"), self.case.name, "--strike", str(fields.strike), "--seed", str(fields.seed),
                    "--precision", fields.precision]
        return [self.case.name, *itertools.chain.from_iterable(("--set", f"{k}={v}") for k, v in self.changes)]

    @property
    def program(self):
        from host import varied
        return varied(self.case, dict(self.changes)).program


def families(half, cpp=False):
    """(name, file, cases) of each family of the half; with `cpp`, those in C++ too, which belong to the seen half."""
    out = []
    for file in sorted((HERE / half).glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"family_{half}_{file.stem}", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        out.append((file.stem, str(file), module.CASES))
    if cpp and half == "seen":
        sys.path.insert(0, str(HERE / "cpp"))
        import truths
        out += [(f"cpp_{name}", "", cases) for name, (_, cases) in truths.FAMILIES.items()]
    return out


def variations(case, count, chance):
    """Up to `count` different ways of changing the case's program, none of which leaves it as it is."""
    found = {}
    for _ in range(20 * count):
        if len(found) == count or not case.vary:
            break
        changes = tuple((k, chance.choice(v)) for k, v in sorted(case.vary.items()))
        changes = tuple((k, v) for k, v in changes if v != getattr(case.program, k))
        if changes:
            found[changes] = True
    return list(found)


def plays(half, total=0, seed=1, cpp=False):
    """Every case as it is written and, until there are `total` programs, variations of all cases in equal shares."""
    listed = families(half, cpp)
    number = sum(len(cases) for _, _, cases in listed)
    each = max(0, -(-(total - number) // number)) if number else 0
    out = []
    for name, file, cases in listed:
        for case in cases:
            out.append(Play(name, file, case))
            chance = random.Random(f"{seed}/{name}/{case.name}")
            out += [Play(name, file, case, changes) for changes in variations(case, each, chance)]
    return out


def sample(plays, count, seed):
    """`count` of them, from as many families as can be."""
    chance = random.Random(f"sample {seed}")
    groups = {}
    for play in plays:
        groups.setdefault(play.family, []).append(play)
    for group in groups.values():
        chance.shuffle(group)
    names = sorted(groups)
    chance.shuffle(names)
    rounds = itertools.chain.from_iterable(itertools.zip_longest(*(groups[n] for n in names)))
    return list(itertools.islice((p for p in rounds if p is not None), count))
