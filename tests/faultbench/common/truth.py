"""What is true of a case, written before any tool has seen it, and checked by check_truth.py alone."""

from dataclasses import dataclass, field

PHASES = ("", "input", "forward", "backward", "optimizer")
ORIGINS = ("", "op", "input", "parameter", "buffer", "optimizer_state", "loss_scale", "gradient", "setting", "multi_step")
PRECISION = ("", "curable", "structural", "not_a_precision_matter")
FIXES = ("precision", "data", "op", "hyperparameter")
HARM = ("loss", "gradient", "weight", "buffer", "state", "wrong")


@dataclass(frozen=True)
class Truth:
    """Fields of the verdict contract. A healthy case has cause "" and nothing else but decoys and tolerated."""

    cause: str = ""               # a label of labels.md, "" for a healthy case
    also: tuple = ()              # labels that say the same in other words and count as right
    phase: str = ""
    op: tuple = ()                # acceptable dispatched names, "aten::" left out; the first is the best answer
    module: tuple = ()            # acceptable module paths; "{place}" is where the part was put
    origin: str = ""
    also_origin: tuple = ()       # origins that say the same in other words and count as right
    precision: str = ""
    value: str = ""               # nan, +inf, -inf or silent, as first made by the op ("" = not checked)
    fixes: tuple = ()             # kinds of change that make the step finite; () = none does
    harm: tuple = ()              # what is bad once the step is over, exactly
    decoys: tuple = ()            # ops ("div" or "forward:div") that make non-finite values before or beside the culprit, and are innocent
    tolerated: tuple = ()         # harm that healthy steps have on purpose (a buffer that is filled before it is used)
    by: str = "birth"             # how it is checked: birth | nan_birth | read | setting | host | empty | loss
    late: int = 0                 # steps between the strike and the step of the culprit
    note: str = ""

    def __post_init__(self):
        assert self.phase in PHASES and self.origin in ORIGINS and self.precision in PRECISION, self
        assert set(self.fixes) <= set(FIXES) and set(self.harm) <= set(HARM), self
        assert self.by in ("birth", "nan_birth", "read", "setting", "host", "empty", "loss"), self
        assert bool(self.cause) == bool(self.phase) == bool(self.op) == bool(self.origin), self


HEALTHY = Truth()


@dataclass(frozen=True)
class Program:
    """One training program, as plain as people write them. Every field may be varied where `vary` of the case says so."""

    net: str = "encoder"
    optimizer: str = "adamw_foreach"
    precision: str = "fp32"
    accumulate: int = 1
    clip: float = 0.0             # 0 = no clipping
    place: str = "middle"         # where the family's part goes
    strike: int = 4               # the step at which the fault strikes; earlier steps are healthy
    after: int = 2                # steps after it
    batch: int = 8
    noise: bool = False           # healthy steps with large finite outliers
    lr: float = 1e-3
    seed: int = 1


@dataclass(frozen=True)
class Case:
    """A variant of a family: `fault` makes the fault anew for each run."""

    name: str
    fault: type
    program: Program
    truth: Truth
    settings: dict = field(default_factory=dict)   # arguments of the fault
    vary: dict = field(default_factory=dict)       # program field -> values under which the truth stays the same
    source: str = ""                               # project and number of the real report, where it isn't the family's


ANY_NET = {"net": ("encoder", "decoder", "cnn", "lstm", "mixer", "unet", "mlp")}
ANY_OPTIMIZER = {"optimizer": ("sgd", "adam", "adamw_foreach", "adamw_fused", "adamw_single", "adafactor", "hand")}
ANY_LOOP = {"accumulate": (1, 2), "strike": (3, 5, 8), "noise": (False, True), "seed": (1, 2, 3), "batch": (6, 8, 12)}
ANY_PLACE = {"place": ("early", "middle", "late")}
