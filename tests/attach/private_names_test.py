"""PyTorch's private names that the probe uses (nanquest/pytorch/private.py): whether this PyTorch has them, what falls away
without one, and that they are used nowhere else. Needs no library of the probe for the first."""

import ast
import importlib
import sys
import types
import unittest

from attached import PACKAGE, AttachTest, main

sys.path.insert(0, str(PACKAGE))

# Attributes of objects with a leading underscore that are not PyTorch's.
OTHERS = {"_nanquest_graph", "_nanquest", "_instances",                      # ours, tqdm's
          "_getframe", "_exit",                                              # of sys, os
          "_batches_that_stepped", "_initialized", "_mlflow_client", "_run_id"}  # of Lightning and its loggers


def names_in(code):
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from names_in(constant)


def attributes_of(kind):
    """What objects of the class have, as far as its functions and annotations say."""
    for each in kind.__mro__:
        yield from vars(each)
        yield from vars(each).get("__annotations__", ())
        for value in vars(each).values():
            value = getattr(value, "fget", None) or getattr(value, "__func__", value)
            value = getattr(value, "__wrapped__", value)
            if isinstance(value, types.FunctionType):
                yield from names_in(value.__code__)


class PrivateNamesTest(AttachTest):
    def test_this_pytorch_has_them(self):
        import torch
        from nanquest.pytorch import private
        missing = []
        for name in private.NAMES:
            try:
                importlib.import_module(name.module)
            except ImportError:
                pass
            if name.objects:
                kind = name.owner()
                there = kind is not None and name.last in attributes_of(kind)
            else:
                there = name.find() is not None
            if not there:
                missing.append(f"{name.path}: without it: {name.without}")
        self.assertGreater(len(private.NAMES), 40)
        self.assertEqual(missing, [], f"PyTorch {torch.__version__} has not:\n" + "\n".join(missing))

    def test_nothing_else_uses_any(self):
        found = []
        for file in sorted((PACKAGE / "nanquest").rglob("*.py")):
            if file.name == "private.py":
                continue
            for node in ast.walk(ast.parse(file.read_text())):
                where = f"{file.relative_to(PACKAGE)}:{getattr(node, 'lineno', 0)}: "
                if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").startswith("torch"):
                    found += [where + f"{node.module}.{alias.name}" for alias in node.names if "._" in f"{node.module}.{alias.name}"]
                elif isinstance(node, ast.Import):
                    found += [where + alias.name for alias in node.names if alias.name.startswith("torch._") and "._dynamo" not in alias.name]
                elif isinstance(node, ast.Attribute) and ast.unparse(node).startswith("torch.") and node.attr.startswith("_"):
                    found += [where + ast.unparse(node)] if not node.attr.startswith("__") and "torch.ops." not in ast.unparse(node) else []
        self.assertEqual(found, [])

    def test_private_attributes_of_objects_are_in_the_list(self):
        from nanquest.pytorch import private
        known = {name.last for name in private.NAMES} | OTHERS
        for file in sorted((PACKAGE / "nanquest").rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
                    if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")) and "torch.ops." not in ast.unparse(node):
                        self.assertIn(node.attr, known, f"{file}:{node.lineno}")

    def without(self, path):
        """What a program says in which the name is missing: (stdout, stderr)."""
        owner, _, name = path.rpartition(".")
        (self.scratch / "train.py").write_text(
            f"import torch, nanquest, torch._dynamo, torch._library.custom_ops\ndel {owner}.{name}\n"
            f"print(nanquest.attach({name!r}))\n"
            "model = torch.nn.Linear(4, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=1e-2)\n"
            "model(torch.ones(2, 4)).sum().backward()\noptimizer.step()\nprint(nanquest.step())\n")
        done = self.plain(self.scratch / "train.py")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split(), done.stderr

    def test_without_a_name_that_is_needed_the_probe_is_off(self):
        said, line = self.without("torch._C._functorch.is_functorch_wrapped_tensor")
        self.assertEqual(said, ["False", "0"])
        self.assertRegex(line, r"^nanquest: PyTorch \S+ has no torch\._C\._functorch\.is_functorch_wrapped_tensor, which the probe needs "
                               r"to leave tensors of a transform alone; the program runs without the probe\n$")

    def test_without_another_it_does_without(self):
        for path in ("torch._ops.OpOverload._enable_pyobj_dispatch", "torch._C._autocast_supported_devices"):
            with self.subTest(path=path):
                self.assertEqual(self.without(path), (["True", "0"], ""))


if __name__ == "__main__":
    main()
