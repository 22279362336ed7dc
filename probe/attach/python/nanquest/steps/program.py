"""What the probe knows about the program on its training thread."""

from __future__ import annotations

import os
import weakref

from ..base.probe_state import probe
from ..policy.bad_steps import Policy
from ..pytorch.guarded import elsewhere, in_backward
from ..pytorch.names import ArgumentNames, ModulePaths, ParameterNumbers, Witnesses, held_by, is_plain, models_with, unwrap
from ..pytorch.shards import gathers, own_part, part_in_words
from ..ranks.replicas import Replicas
from ..ranks.watched_steps import WatchedSteps
from .by_hand import ByHand
from .loss_scaler import Scaling
from .optimizer_weights import Written
from .updates import Updates


class Program:
    """What is known about the program's models and its innermost module."""

    def __init__(self, attached):
        self.attached = attached
        self.paths = ModulePaths()
        self.arguments = ArgumentNames()
        self.numbers = ParameterNumbers()
        self.depth = 0  # modules that run, one inside the other
        self.saw_model = False  # since the last update
        self.passes = 0  # forward passes since the last backward
        self.saw_weights = False  # whether some weights have names: from a model, an optimizer, or the program's variables
        self.parallel = False  # a model is called inside DistributedDataParallel
        self.fed = False  # the model's input came from another stage of a pipeline
        self.stages = []  # numbers of the pipeline's stages that this process has run, in that order
        self.pipeline = ""  # the last values given to the library
        self.called_as = set()  # kinds of objects that the program calls: models, or wrappers of them
        self.policy = Policy(self)
        self.written = Written(self)
        self.scaling = Scaling()
        self.updates = Updates(self)
        self.by_hand = ByHand(self)
        self.replicas = Replicas(self)
        self.watched_steps = WatchedSteps(attached)
        self.trains = Witnesses().trains
        self._met = weakref.WeakSet()  # models that `meets` has looked at
        # Level guard records no ops, so modules and the batch are only needed for a profiler.
        self.tells_modules = attached.settings.level != "guard" or "NVTX_INJECTION64_PATH" in os.environ
        self.tells_batch = attached.settings.level != "guard"
        self._held = []  # [weak module, group, key, kind, name, mark] of what may be replaced (name_replaced)
        self._strangers = 0  # calls of modules without a path since the last search of the models
        self._patience = 1  # number of calls after which the next search is due

    def name_parameter(self, name, tensor, owner, key):
        """The library's number for a parameter that `owner` holds under `key`."""
        self.saw_weights = True
        part = own_part(tensor)
        number = self.attached.ops.name_parameter(name, part) if is_plain(part) else -1
        if self.attached.settings.audit and part.device.type != "cpu":
            self.attached.say_once(
                f"--audit: no step is audited, because a CPU runs it again, which does not have the kernels of {part.device.type}"
            )
        self._note_part(name, tensor)
        self.numbers.know(tensor, name, number, owner, key)
        return number

    def _note_part(self, name, tensor):
        """For the files: which part of sharded tensors this process has."""
        if words := part_in_words(tensor):
            self.attached.ops.note("part_of." + name, words)

    def names_samples(self, args, kwargs):
        """A model that trains is called: with which samples, if known."""
        drawing = self.attached.drawing
        ids = drawing.passes(self.attached.ops.step(), (*args, kwargs)) if drawing.datasets else []
        if ids and self.attached.named_samples is None:
            self.attached.ops.samples(ids)
        if self.attached.quarantine is not None and (line := self.attached.quarantine.why_not(drawing.datasets)):
            self.attached.say_once(line)

    def updates_it(self, root) -> bool:
        """Whether an optimizer writes this model, as far as it requires gradients. Before any optimizer was seen: True."""
        if not self.trains(root):
            return False
        return not self.written.optimizers() or self.written.writes(next(p for p in root.parameters() if p.requires_grad))

    def meets(self, root) -> None:
        """A model is called. The library gets its weights that no optimizer writes, once: losses computed from them (by a target network)
        jump when the program renews them. Before an optimizer's first update it is not known what it writes; the library hears that."""
        if root in self._met or not self.written.optimizers():
            return
        self._met.add(root)
        parts = (own_part(parameter) for parameter in root.parameters() if not self.written.writes(parameter))
        if weights := [part for part in parts if is_plain(part)]:
            self.attached.ops.computes_with(weights)

    def met_stranger(self):
        """A module without a path is about to run inside another one. It may have been added to a model after that was named: then all
        models are searched again. Modules that never get a path (made in a forward pass) cause searches less and less often. Runs
        without gradients count too, as for the slow copy of a network that is made when it is first needed."""
        if in_backward() or elsewhere():
            return
        self._strangers += 1
        if self._strangers >= self._patience:
            self._patience = 2 * self._strangers
            for root in self.paths.roots():
                self.name_model(root, again=True)

    def name_model(self, root, again=False):
        """Names the parameters and buffers, once per model, and again when it has others (see met_stranger, and name_models_again for
        parameters)."""
        if self.paths.of(root) is not None and not (again and self.paths.is_root(root)):
            return  # it has names already, or is part of a model that has
        modules = len(self.paths.known)
        prefix = self.paths.add_root(root)
        if len(self.paths.known) > modules:
            self._strangers, self._patience = 0, 1
        trained = self.trains(root)
        if trained and self.policy.withholds:
            self.policy.undo.learn(root)
        if again:
            parts = {id(module) for module in root.modules()}
            self._held = [entry for entry in self._held if id(entry[0]()) not in parts]
        for path, module in root.named_modules():
            place = prefix + path + "." if path else prefix
            for key, parameter in module._parameters.items():
                if parameter is None or not is_plain(own_part(parameter)):
                    continue
                if not parameter.requires_grad or gathers(parameter):
                    self._hold(module, "_parameters", key, "parameter" if trained else "buffer", place + key)
                if self.numbers.of(parameter) is not None:
                    continue
                # The gate looks at parameters; a frozen model is only an input of the step.
                if trained:
                    self.name_parameter(place + key, parameter, module, key)
                    if again:  # replay asks since when there has been such a weight
                        self.attached.ops.note("weight_since." + place + key, str(self.attached.ops.step()))
                else:
                    self.attached.ops.name_tensor("buffer", place + key, own_part(parameter))
                    self._note_part(place + key, parameter)
            for key, buffer in module._buffers.items():
                if buffer is not None and is_plain(buffer):
                    self.attached.ops.name_tensor("buffer", place + key, buffer)
                    if buffer.is_floating_point():
                        self._hold(module, "_buffers", key, "buffer", place + key)

    def _hold(self, module, group, key, kind, name):
        self._held.append([weakref.ref(module), group, key, kind, name, _mark(own_part(held_by(getattr(module, group), key)))])

    def name_replaced(self):
        """Buffers are replaced by assignment, frozen parameters get other memory (an average written to .data). No reference to them is
        kept, so a new one is recognised by its id and its address."""
        gone = False
        for entry in self._held:
            module, group, key, kind, name, known = entry
            module = module()
            if module is None:
                gone = True
                continue
            tensor = own_part(held_by(getattr(module, group), key))
            if tensor is None or not is_plain(tensor):
                continue
            mark = _mark(tensor)
            if mark != known:
                entry[5] = mark
                self.attached.ops.name_tensor(kind, name, tensor)
        if gone:
            self._held = [entry for entry in self._held if entry[0]() is not None]

    def moved(self):
        """Weights, buffers and states are the same objects with other memory."""
        for entry in self._held:
            entry[-1] = None
        self.written.name_states_again()

    def name_models_again(self, parameters):
        """Some of these have no name: a model's weights were replaced, or it was not called yet (in the first forward pass of an
        optimizer with a closure)."""
        for root in self.paths.roots():
            self.name_model(root, again=True)
        unknown = {id(p) for p in parameters if self.numbers.of(p) is None}
        if unknown:
            for root in models_with(unknown):
                self.name_model(unwrap(root))


def _mark(tensor):
    return id(tensor), tensor.data_ptr()


def known_program() -> Program:
    """The state of the program, which has begun to train."""
    if probe.program is None:
        probe.program = Program(probe.attachment)
    return probe.program
