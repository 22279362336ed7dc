"""Which of several ranks has another value of a weight than the others, and the line that says so."""

from __future__ import annotations

import dataclasses


def odd_ones(held: dict) -> tuple:
    """(ranks whose value differs from the others', True) from rank -> value. If no more than half of the ranks agree: (all ranks,
    False)."""
    groups = {}
    for rank, value in held.items():
        groups.setdefault(value, []).append(rank)
    most = max(groups.values(), key=len)
    if 2 * len(most) <= len(held):
        return sorted(held), False
    return sorted(set(held) - set(most)), True


@dataclasses.dataclass(frozen=True)
class News:
    first: int  # number of the first weight that differs, in the order of the model
    ranks: list  # the ranks that differ
    known: bool  # False: `ranks` are all, because no majority agrees
    differ: int  # number of weights that differ so far
    again: bool  # all weights were compared once more since the first report


class Found:
    """Results of the comparisons so far. They are reported twice: when the first weight differs, and how many differ after each weight
    was compared once more."""

    def __init__(self, ranks, turns):
        self._ranks, self._turns = ranks, turns
        self._alike = set()  # parts of weights that do not train, once all ranks held the same
        self._differ = {}  # number of a weight -> odd_ones
        self._since = None  # the update of the first
        self.done = False

    def part(self, weight, begin, trained, values) -> None:
        """Adds a part of a weight, with the value on each rank. A weight that no optimizer writes is only reported if it was the same on
        all ranks before: programs may have different ones on purpose."""
        if len(set(values)) == 1:
            if not trained:
                self._alike.add((weight, begin))
        elif trained or (weight, begin) in self._alike:
            self._differ.setdefault(weight, odd_ones(dict(zip(self._ranks, values))))

    def news(self, update):
        """What to report now; None if nothing."""
        again = self._since is not None
        if self.done or not self._differ or (again and update < self._since + self._turns):
            return None
        self._since, self.done = update, again
        first = min(self._differ)
        found = [*self._differ.values()] if again else [self._differ[first]]
        return News(
            first, sorted({rank for ranks, _ in found for rank in ranks}), all(known for _, known in found), len(self._differ), again
        )


def _ranks(ranks) -> str:
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(map(str, ranks))


def headline(news, name: str, ranks, turns: int, weights: int) -> str:
    """The line. `name` is that of the first weight, `weights` how many are compared."""
    if news.again:
        whose = f", all of {_ranks(news.ranks)}" if news.known else ""
        return (
            f"replicas differ: {news.differ} of {weights} weights{whose}, the first of them {name}"
            if weights > 1
            else f"replicas differ: it is still so with {name}{whose}"
        )
    others = len(ranks) - len(news.ranks)
    if news.known:
        what = f"{name} of {_ranks(news.ranks)} is not that of the other {others} ranks"
    elif len(ranks) == 2:
        what = f"{name} is not the same on {_ranks(ranks)}; of two ranks it can't be known which is wrong"
    else:
        what = f"{name} is not the same on {_ranks(ranks)}, of which no more than half agree"
    how = f"compared every {turns} updates" if turns > 1 else "compared before every update"
    return f"replicas differ: {what} (first seen; {how})"
