"""The settings of the probe, each once. From this table are made: the options of `nanquest run` and `nanquest env`, the arguments of
nanquest.attach() and their documentation, the variables NANQUEST_*, and what the library is started with. docs/running.md is checked
against it.
"""

from __future__ import annotations

import dataclasses

from .setting_kinds import (
    Kind,
    file_to_read,
    file_to_write,
    folder_to_write,
    one_of,
    run_directory,
    share,
    size,
    steps,
    whole,
    whole_or_none,
)

TAPE = 64  # steps of a tape that is asked for without a number

# Headings of --help; a setting without one stands first, as those that most people need.
RECORD, AFTER, FILES, RANKS = "what is checked and recorded", "after a bad step", "files and messages", "several ranks"


@dataclasses.dataclass(frozen=True)
class Setting:
    """One of them: `attach(name=…)`, `NANQUEST_NAME`, and `--name` unless `option` is False."""

    name: str
    default: object
    kind: Kind
    help: str  # what it does: one or two sentences, without the default
    option: bool = True
    library: bool = False  # whether the library gets it
    alone: object = None  # the value of the option without a value
    none: str = ""  # meaning of the default, if its value can't be shown
    topic: str = ""  # heading in --help

    @property
    def variable(self) -> str:
        return "NANQUEST_" + self.name.upper()

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def default_text(self) -> str:
        return self.none or str(self.default)


SETTINGS = (
    Setting("run_dir", "nanquest-run", run_directory(), "directory for the files of this run"),
    Setting(
        "level",
        "trace",
        one_of("guard", "trace", "watch"),
        "guard: check loss and gradients only; trace: also record every step, so that a bad step can be replayed; watch: also check "
        "every value that an operation writes",
        library=True,
    ),
    Setting(
        "watch_every",
        "",
        whole_or_none(),
        "at level trace, check one step in N as at level watch, whatever that costs; 0: none after the first",
        library=True,
        none="as --watch-percent says",
        topic=RECORD,
    ),
    Setting(
        "watch_percent",
        1,
        whole(),
        "at level trace, check as many steps as at level watch as this share of the training's time pays for, in percent, by what they "
        "cost in this run: one step in 50 at most, one in 5000 at least; 0: none after the first",
        library=True,
        topic=RECORD,
    ),
    Setting("watch_first", 3, whole(), "at level trace, check the first N steps as at level watch", option=False, library=True),
    Setting("watch_after", 10, whole(), "at level trace, check N steps after an incident as at level watch", option=False, library=True),
    Setting(
        "keep_steps",
        2,
        whole(),
        "at level trace, keep the last N steps with all values that their updates overwrote, for damage that shows later; 0: none",
        library=True,
        topic=RECORD,
    ),
    Setting(
        "keep_percent",
        1,
        whole(),
        "limit for the time of --keep-steps, in percent of the training's time (at least 0.1 ms per step are used); if it takes more, "
        "fewer steps are kept",
        library=True,
        topic=RECORD,
    ),
    Setting(
        "keep_memory_percent",
        25,
        whole(),
        "limit for the memory of --keep-steps, and for that of --tape, in percent of the free memory; steps that need more are not kept",
        library=True,
        topic=RECORD,
    ),
    Setting(
        "tape",
        0,
        whole(),
        "keep an unbroken record of the last N to 2 N steps; an incident's file contains it, for nanquest-replay rewind. 0: none; "
        f"the option without N: {TAPE}",
        library=True,
        alone=TAPE,
    ),
    Setting(
        "tape_folder",
        "",
        folder_to_write(),
        "keep large values of the tape in files in this directory, up to --keep-memory-percent of its free space, instead of in memory. "
        "The files disappear with the process",
        library=True,
        none="memory",
        topic=RECORD,
    ),
    Setting("max_incidents", 16, whole(), "write at most N incident files", library=True, topic=FILES),
    Setting(
        "few_files_from",
        8,
        whole(),
        "with N or more ranks, only selected ranks write full snapshots: the first bad rank, its neighbours and one far away. 0: all ranks do",
        library=True,
        topic=RANKS,
    ),
    Setting(
        "compare_replicas",
        50,
        whole(),
        "under DistributedDataParallel on CPUs, compare every weight between ranks once in N updates, by its hash; 0: never",
        topic=RANKS,
    ),
    Setting(
        "record_steps",
        (),
        steps(),
        "save these steps to RUN_DIR/recordings, whether good or bad; steps count from 0",
        library=True,
        none="none",
        topic=RECORD,
    ),
    Setting(
        "audit",
        0,
        whole(),
        "run every N-th step again in a process beside the training, on a CPU with the lowest priority, and compare all outputs bit for "
        "bit; needs nanquest run, and a training on CPUs. 0: never",
        library=True,
        topic=RECORD,
    ),
    Setting(
        "on_incident",
        "continue",
        one_of("continue", "skip", "fallback_fp32", "stop"),
        "after a bad step: continue: do nothing; skip: leave its update out, as if the batch had not been drawn; fallback_fp32: skip it, and "
        "go on in fp32 with a lower learning rate, once; stop: end the program with exit code 4",
    ),
    Setting(
        "gate",
        "later",
        one_of("later", "now"),
        "on a device, later: the update does not wait for the check of loss and gradients; its result is read when the device has it, at "
        "the latest at the next update. --on-incident skip, stop and fallback_fp32 need one of PyTorch's optimizers for that; now: every "
        "update waits",
        library=True,
        topic=RECORD,
    ),
    Setting(
        "on_spike",
        "record",
        one_of("record", "skip", "stop", "off"),
        "when loss or gradient norm are finite and far outside the range of the run's last steps: record: print a line and write a file, "
        "once per excursion; skip: also leave the updates out; stop: end the program with exit code 4; off: do not check",
        library=True,
        topic=AFTER,
    ),
    Setting(
        "on_forecast",
        "say",
        one_of("say", "stop", "off"),
        "at levels trace and watch, when values of an operation approach the limit of their format: say: print a line; stop: end the "
        "program with exit code 4 before they pass it; off: do not check",
        library=True,
        topic=AFTER,
    ),
    Setting("lr_backoff", 0.5, share(), "fallback_fp32 multiplies the learning rate by X", topic=AFTER),
    Setting("skip_limit", 5, whole(1), "end the program with exit code 4 after N skipped batches in a row", topic=AFTER),
    Setting(
        "bad_checkpoint",
        "say",
        one_of("say", "refuse", "off"),
        "when weights, buffers or moments (or copies of them) that the program is about to write to a file hold NaN or Inf: say: print a "
        "line; refuse: raise nanquest.BadCheckpoint in place of the write, and keep the last clean file; off: look neither at files "
        "nor at what is loaded",
        topic=AFTER,
    ),
    Setting(
        "nothing_learned",
        "say",
        one_of("say", "off"),
        "say: print a line when weights do not learn although every step is finite: no gradient, a gradient that no optimizer uses, "
        "updates too small for the weights' format; looked at in three of the first 50 updates, then in every 500th. off: do not look",
        topic=RECORD,
    ),
    Setting(
        "quarantine",
        "",
        file_to_write(),
        "write the samples of bad steps to this file; a DataLoader that draws by index leaves out the samples in it",
        none="none",
        topic=AFTER,
    ),
    Setting(
        "max_disk",
        "",
        size(),
        "limit for all incidents and recordings of a run, for example 20G; each of several processes gets an equal share. The first incident "
        "and the newest file are kept; files soon after another incident are removed first, then the oldest",
        library=True,
        none="no limit",
        topic=FILES,
    ),
    Setting(
        "mute_file",
        ".nanquest-mute.json",
        file_to_read(),
        "count incidents that this file names, but do not save or print them; see nanquest mute",
        topic=FILES,
    ),
    Setting(
        "loggers",
        "on",
        one_of("on", "off"),
        "on: also log incidents to the loggers that the program has open (TensorBoard, W&B, MLflow, Lightning's)",
        topic=FILES,
    ),
    Setting(
        "frozen_weights",
        "reference",
        one_of("reference", "embed"),
        "weights that do not train and are mapped from a file (safetensors): reference: snapshots name the file, the byte range and a hash; "
        "embed: snapshots contain them",
        library=True,
        topic=RECORD,
    ),
)
BY_NAME = {setting.name: setting for setting in SETTINGS}
