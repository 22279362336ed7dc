"""Weights that get no gradient, or get one that nobody uses. Only what is certain is said: an unused expert, a frozen body, a result
that the loss does not need are no fault."""

from __future__ import annotations

import json

from ..pytorch.names import living_optimizers, models_with
from ..pytorch.optimizers import parameters_of
from ..pytorch.shards import is_sharded
from ..pytorch.values import contents, largest, plain_part

LABEL = "NO_GRADIENT"


def weights(number: int, all_of: int = 0) -> str:
    return (f"{number} of {all_of} weights" if all_of else f"{number} weights") if number != 1 or all_of > 1 else "1 weight"


class NoGradient:
    """The looks at one program's weights; `say(reason, label, text, tensor)`."""

    def __init__(self, attachment, say):
        self._attachment, self._say = attachment, say
        self.leaves = set()  # ids of what the backward passes of the running step give gradients to
        self.backwards = 0  # passes into .grad so far
        self._outside = {}  # name -> contents, of weights that were in no optimizer

    def _name(self, watch, program, place: int) -> str:
        return program.written.of(watch.optimizer())[1].names[place] or f"weight {place}"

    def look_at_missing(self, watch, watches, program) -> None:
        """At an update: weights that have had no gradient at any update."""
        optimizer = watch.optimizer()
        parameters = parameters_of(optimizer)
        places = [i for i in watch.without if watch.unchanged(i, parameters[i])]
        kind, updates = type(optimizer).__name__, watch.made
        if not places or not self.backwards:
            return
        first = self._name(watch, program, places[0])
        if len(places) == len(parameters) and self._are_replaced(parameters, program):
            text = (
                f"{kind} has made {updates} updates without a gradient: its {weights(len(places))} belong to no module, and the model's "
                "weights of the same shapes are in no optimizer. They were replaced after the optimizer was made: make it afterwards"
            )
            self._say("replaced", LABEL, text, first)
            return
        if len(places) == len(parameters) and all(len(other.without) == other.size for other in watches):
            in_graph = any(id(p) in self.leaves for p in parameters)
            why = (
                "they were cleared between backward and the update"
                if in_graph
                else "backward does not reach them: the loss was taken out of the graph (detach, item, data, a new tensor)"
            )
            self._say("none", LABEL, f"no weight has had a gradient in {updates} updates of {kind} (first: {first}): {why}", first)
            return
        cut = [i for i in places if id(parameters[i]) not in self.leaves]
        feeds = self._attachment.ops.feed_loss([parameters[i] for i in cut]) if cut else []
        cut = [i for i, feeds_it in zip(cut, feeds) if feeds_it]
        if cut:
            first = self._name(watch, program, cut[0])
            text = (
                f"{weights(len(cut), len(parameters))} of {kind} have had no gradient in {updates} updates (first: {first}), although the "
                "loss is computed from them: what they make is taken out of the graph on its way to the loss (detach, data, a new tensor)"
            )
            self._say("cut", LABEL, text, first)

    @staticmethod
    def _are_replaced(parameters, program) -> bool:
        """Whether the model holds other weights of these shapes, which get gradients and are in no optimizer."""
        if models_with({id(p) for p in parameters}):
            return False
        held = {id(p) for optimizer in living_optimizers() for p in parameters_of(optimizer)}
        others = [p.shape for root in program.paths.roots() for p in root.parameters() if p.grad is not None and id(p) not in held]
        return sorted(others) == sorted(p.shape for p in parameters)

    def look_outside(self, program) -> None:
        """Weights of a model that is trained which get gradients and are in no optimizer. Said at the second look, if they have not
        changed since the first: a program may write weights itself."""
        found, trained = [], {id(p) for optimizer in program.written.optimizers() for p in parameters_of(optimizer)}
        for root in program.paths.roots():
            named = [(name, p) for name, p in root.named_parameters() if p.requires_grad]
            if any(id(p) in trained for _, p in named):
                found += [(program.numbers.of(p), p) for _, p in named if p.grad is not None and id(p) not in trained]
        if not found:
            return
        held = {id(p) for optimizer in living_optimizers() for p in parameters_of(optimizer)}
        found = [(known[1], p) for known, p in found if known is not None and id(p) not in held and plain_part(p.grad) is not None]
        sizes = largest(self._attachment.ops, [plain_part(p.grad) for _, p in found])
        now = {
            name: contents(self._attachment.ops, part)
            for (name, p), size in zip(found, sizes)
            if size > 0 and (part := plain_part(p)) is not None
        }
        unchanged = [name for name, value in now.items() if self._outside.get(name) == value]
        self._outside = now
        if unchanged:
            many = len(unchanged) > 1
            text = (
                f"{weights(len(unchanged))} of the model get{'' if many else 's'} gradients and {'are' if many else 'is'} in no optimizer "
                f"(first: {unchanged[0]}): {'they do' if many else 'it does'} not change. Give {'them' if many else 'it'} to an optimizer; if "
                "meant to stay, requires_grad_(False) saves the backward pass"
            )
            self._say("outside", LABEL, text, unchanged[0])

    def look_at_zeros(self, watch, program) -> bool:
        """At an update: gradients that held zeros only at every look. False if a later step may tell why."""
        optimizer = watch.optimizer()
        parameters = parameters_of(optimizer)
        places = [i for i in watch.zeros or () if plain_part(parameters[i].grad) is not None and not is_sharded(parameters[i])]
        now = largest(self._attachment.ops, [plain_part(parameters[i].grad) for i in places])
        places = [i for i, size in zip(places, now) if size == 0]
        if not places:
            return True
        told = self._attachment.ops.zeros_made([parameters[i].grad for i in places])
        made = [(place, row) for place, row in zip(places, json.loads(told or "[]")) if row]
        # A switch outside any module is part of a loss, like a hinge that is reached.
        made = [(place, row) for place, row in made if row["module"] or not row["switch"]]
        kind = type(optimizer).__name__
        if made and self._attachment.ops.loss() != 0:
            place, row = made[0]
            where = row["op"] + (f" in {row['module']}" if row["module"] else "")
            first = self._name(watch, program, place)
            why = (
                f"every unit is off or saturated: {where} makes zeros of the gradient"
                if row["switch"]
                else f"{where} makes zeros of them: they are too small for float16. Scale the loss (torch.amp.GradScaler)"
            )
            text = f"the gradients of {weights(len(made), len(parameters))} of {kind} hold zeros only (first: {first}): {why}"
            self._say("zeros", LABEL if row["switch"] else "UNDERFLOW", text, first)
        return bool(told)
