"""The faults that are planted, by name: each gets the training and its place (Case.at), and does its harm only at step BAD. Nothing here
touches a library: a hook, a batch, a weight, a buffer, a moment, a setting, a loss.
"""

import math

import torch
from torch import nn

BAD = 3  # the steps before it are healthy
FAULTS = {}


def fault(function):
    FAULTS[function.__name__] = function
    return function


def in_output(name, change):
    """A forward hook: the module named by `at` gives `change(output)`."""
    def plant(training, at):
        training.model.get_submodule(at).register_forward_hook(
            lambda module, inputs, output: change(output) if training.step == BAD else None)
    FAULTS[name] = plant


def first_row(x, value):
    """Zeros like x, `value` in the whole first row."""
    rows = torch.zeros_like(x)
    rows.reshape(-1, x.shape[-1])[0] = value
    return rows


def scores(x):
    """Attention of x on itself under a causal mask, as written by hand."""
    hidden = torch.full((x.shape[-2], x.shape[-2]), -math.inf).triu(1)
    return torch.softmax(x @ x.transpose(-1, -2) + hidden, -1) @ x


def log_of_nothing(x):
    """logaddexp of a state that nothing reaches, which where() leaves out afterwards."""
    unreached = x + first_row(x, -math.inf)
    both = torch.logaddexp(unreached, unreached)
    return torch.where(both.isinf(), x.detach(), both)


for _name, _change in {
    "masked_row": lambda x: x.masked_fill(first_row(x, 1.0).bool(), -math.inf),
    "infinite_logit": lambda x: x.index_fill(-1, torch.tensor([1]), math.inf),
    "cast_mask": lambda x: x + first_row(x.float(), -1e9).half(),
    "zero_times_inf": lambda x: x.masked_fill(first_row(x, 1.0).bool(), -math.inf) * (1 - first_row(x, 1.0)),
    "log_softmax_by_hand": lambda x: torch.log(torch.softmax(x * 1e4, -1)),
    "log_relu": lambda x: torch.log(torch.relu(x)),
    "log_one_minus_sigmoid": lambda x: torch.log1p(-torch.sigmoid(x * 1e3)),
    "log_of_negative": lambda x: torch.log(x - 10),
    "sqrt_of_negative": torch.sqrt,
    "exp_of_large": lambda x: torch.exp(x * 1e4),
    "divide_by_count": lambda x: x / (x.detach() > 1e9).sum(),
    "divide_by_norm": lambda x: (x - x) / (x - x).detach().norm(),
    "root_of_zero": lambda x: x + torch.sqrt(torch.square(x - x.detach())),
    "power_of_zero": lambda x: x + torch.square(x - x.detach()).pow(0.5),
    "angle_of_same": lambda x: x + torch.acos(x / x.detach().abs().clamp(min=1e-6)),
    "unselected_root": lambda x: torch.where(x > 0, torch.sqrt(x), x),
    "unselected_exp": lambda x: torch.where(x > 0, x, torch.exp(x * 1e6)),
    "log_of_nothing": log_of_nothing,
    "mean_of_nothing": lambda x: x + x[:, :0].mean(),
    "inverse_of_singular": lambda x: x @ torch.linalg.inv_ex(x.t() @ x * 0)[0],
    "square_beyond_fp32": lambda x: x + torch.pow(x * 1e25, 2),
    "causal_mask": scores,
}.items():
    in_output(_name, _change)


def in_batch(name, value):
    def plant(training, at):
        def spoil(batch):
            batch[at].numpy().reshape(-1)[batch[at].numel() // 2] = value
            return batch
        training.change_batch = spoil
    FAULTS[name] = plant


def in_memory(name, find, change):
    """A host write between two steps, which no dispatcher sees: as by a bad file or another library."""
    def plant(training, at):
        def write():
            memory = find(training, at).detach().numpy().reshape(-1)
            memory[:] = change(memory)
        training.before_bad = write
    FAULTS[name] = plant


def weight(training, at):
    return training.model.get_parameter(at)


def buffer(training, at):
    return training.model.get_buffer(at)


def moment(training, at):
    """at: the state's name, then the parameter's."""
    kind, name = at.split(" ")
    return training.optimizer.state[weight(training, name)][kind]


def one(value):
    def change(memory):
        changed = memory.copy()
        changed[len(changed) // 3] = value
        return changed
    return change


for _word, _value in (("nan", math.nan), ("inf", math.inf), ("minus_inf", -math.inf)):
    in_batch(f"{_word}_in_batch", _value)
    for _where in (weight, buffer, moment):
        in_memory(f"{_word}_in_{_where.__name__}", _where, one(_value))
in_memory("million_in_weight", weight, one(1e6))
in_memory("hundred_in_weight", weight, one(100.0))
in_memory("negative_in_moment", moment, one(-1.0))


@fault
def loaded_nan(training, at):
    """A checkpoint that is bad, loaded between two steps."""
    def load():
        state = {name: value.clone() for name, value in training.model.state_dict().items()}
        state[at].view(-1)[0] = math.nan
        training.model.load_state_dict(state)
    training.before_bad = load


@fault
def grown(training, at):
    """at: "weight factor" once or more: weights that grew."""
    words = at.split(" ")

    def grow():
        for name, factor in zip(words[::2], words[1::2]):
            weight(training, name).detach().numpy()[:] *= float(factor)
    training.before_bad = grow


@fault
def frozen_statistics(training, at):
    """A frozen batch norm, as in fine-tuning, whose running variance is bad."""
    training.model.get_submodule(at).eval()
    FAULTS["nan_in_buffer"](training, f"{at}.running_var")


@fault
def hidden_row(training, at):
    """An additive mask that leaves one query nothing to look at."""
    def mask(batch):
        rows, length = batch["input_ids"].shape
        batch["attention_mask"] = torch.zeros(rows, 1, length, length)
        batch["attention_mask"][0, 0, 2] = -math.inf
        return batch
    training.change_batch = mask


@fault
def padding_without_epsilon(training, at):
    """A zero row, that of the padding token, in a norm without an epsilon."""
    def pad(batch):
        training.model.get_submodule(at).variance_epsilon = 0.0
        batch["input_ids"][1, 9:] = 0
        return batch
    training.change_batch = pad


@fault
def setting(training, at):
    """at: "name value" of the optimizer's first group."""
    name, value = at.split(" ")
    training.before_bad = lambda: training.optimizer.param_groups[0].update({name: float(value)})


@fault
def loss_scale(training, at):
    training.before_bad = lambda: training.scaler.update(new_scale=float(at))


@fault
def nothing_to_predict(training, at):
    def ignore(batch):
        batch["labels"] = torch.full_like(batch["labels"], -100)
        return batch
    training.change_batch = ignore


for _name, _change in {
    "mean_over_no_labels": lambda loss, model, batch: loss / (batch["labels"] == -7).sum(),
    "huge_loss": lambda loss, model, batch: loss * 1e25,
    "more_letters_than_frames": lambda loss, model, batch: nn.functional.ctc_loss(
        model(batch["sound"]).float(), torch.arange(60).reshape(3, 20) % 5 + 1, (15, 15, 15), (20, 20, 20)),
}.items():
    FAULTS[_name] = lambda training, at, change=_change: setattr(training, "change_loss", change)
