/// AttachOptions, and how they are read from the JSON that the launcher and `nanquest.attach()` pass.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "probe/base/result.h"
#include "probe/nanquest.h"

namespace nanquest::attach {

/// Settings of a session. They have no defaults here: parse_options wants every one of them, and the table of
/// the Python package has the defaults. A session that is made without them does the least.
struct AttachOptions {
  ProbeOptions probe;           ///< run directory, level, rank, …
  int watch_first = 0;          ///< level trace: this many first steps are scanned as at level watch
  int watch_every = 0;          ///< … and then one in this many; 0 = none; below 0: as many as …
  int watch_percent = 0;        ///< … this share of the training time pays for
  int watch_after = 0;          ///< … and this many after an incident
  int keep_steps = 0;           ///< level trace: steps kept with what their updates overwrote; 0 = none
  int keep_percent = 0;         ///< … as long as it takes at most this share of the training time
  int keep_memory_percent = 0;  ///< … and this share of the free memory
  int tape = 0;  ///< at least this many steps stay in an unbroken record (probe/record/tape.h); 0 = none
  std::string tape_folder;  ///< folder for its large values, as files instead of memory; "": memory only
  std::set<std::int64_t> record_steps;  ///< steps that are saved, good or bad, as the level records them
  int audit = 0;               ///< every so many steps one is watched and saved for an audit; 0 = none
  bool forecast = false;       ///< report places that are about to leave their format's range
  std::uint64_t max_disk = 0;  ///< bytes that files of this rank's steps may take together; 0 = no bound
  std::set<std::pair<std::string, std::string>> muted;  ///< op and module of culprits that are not reported
  int few_files_from = 0;  ///< from this many ranks on, only selected ranks write whole files; 0 = all write
  /// What follows a finite step far out of its run's band (RunBand). `stop` is left to the caller.
  enum class OnSpike : std::uint8_t { off, record, skip, stop } on_spike = OnSpike::off;
  bool skip_bad_updates = false;  ///< ask the caller to skip the optimizer's update
  /// On a device, updates do not wait for the gate; its answer is taken when the device has it.
  bool gate_later = false;
  bool gate_withholds = false;  ///< … as long as the device leaves a bad update out by itself
};

/// Reads the object made by Settings.to_json of the Python package: the settings that its table
/// (nanquest/base/settings_table.py) marks for the library, and what is known of the process. Defaults and
/// ranges are in that table only. A key that is missing or unknown, or a value of the wrong kind, is a
/// `usage` error that names it.
Result<AttachOptions> parse_options(const std::string& json);

}  // namespace nanquest::attach
