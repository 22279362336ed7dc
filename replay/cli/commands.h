/// The sub-commands of nanquest-replay: one function each, in a file of its own. Results go to stdout,
/// progress and failures to stderr; the returned number is the program's exit code.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "replay/cause/diagnose.h"
#include "replay/lab/shelter.h"

namespace nanquest::cli {

/// Exit code of a program that Ctrl-C ended.
inline constexpr int kInterrupted = 130;

/// Options of every sub-command.
struct Common {
  std::string snapshot;
  bool json = false, quiet = false;
  std::string device;  ///< as --device says; "": the recorded one if this process has it, otherwise the CPU
};

struct RunArguments {
  std::string precision = "as-recorded";
  bool local = false;
  std::vector<std::string> modules;  ///< "PATH=fp32"
};

struct ReproArguments {
  std::int32_t op = -1;   ///< the culprit if negative
  std::string directory;  ///< beside the snapshot if empty
};

struct DiagnoseArguments {
  bool no_files = false, no_fixes = false;
  bool brief = false;                ///< three lines
  bool full = false;                 ///< all evidence and trials
  std::string patch;                 ///< file for the fix as a patch; "": none
  double budget = 0;                 ///< seconds; 0: 20 times the step, at least 30
  std::vector<std::string> without;  ///< words of causes that are not asked
};

struct RedactArguments {
  std::string output;
  std::vector<std::string> what;  ///< names of private_things(); empty: all but history and names
  bool drop = false, scramble = false;
  bool no_check = false;  ///< write only
  std::string wrong;      ///< what its true value was
  double budget = 0;      ///< limit of each diagnosis, as DiagnoseArguments
};

struct MinimalArguments {
  std::string output, wrong;
  int tries = 16;
  double budget = 0;
};

struct EmbedArguments {
  std::string output;
};

struct HeadroomArguments {
  std::string run;  ///< directory
  double bits = 2;
  bool json = false;
};

struct RewindArguments {
  std::vector<std::string> changes;  ///< "lr=*0.5"; empty: the usual ones
  std::int64_t placebos = 8;
  bool only_check = false;  ///< no changes
  bool no_file = false;
};

struct JudgeArguments {
  std::string file;  ///< a rehearsal; "-": stdin
  bool json = false;
};

struct CollectArguments {
  std::vector<std::string> from;  ///< directories or files
  std::string output;
  bool json = false;
};

struct RanksArguments {
  std::vector<std::string> files;  ///< one per rank; or one run directory
  std::int64_t step = -1;          ///< of the run directory; -1: its first incident
  bool json = false, quiet = false, no_files = false;
};

struct DiffArguments {
  std::string a, b;        ///< snapshots, or two run directories
  std::int64_t step = -1;  ///< of the directories; -1: the newest that both recorded
  std::string html;        ///< file for the same as HTML; "": none
  bool json = false, quiet = false;
  bool full = false;  ///< all findings and notes
};

/// The files without those that replay itself wrote beside others of them, which a pattern like
/// incidents/*.h5 matches as well.
std::vector<std::string> without_replays(std::vector<std::string> files);
int ranks_command(const RanksArguments& arguments);
int diff_command(const DiffArguments& arguments);
int collect_command(const CollectArguments& arguments);
int headroom_command(const HeadroomArguments& arguments);
int judge_command(const JudgeArguments& arguments);
/// Prints each text "lr=*0.5,clip=1" as a JSON array of {"key", "value", "factor", "number"}, in one array.
int settings_command(const std::vector<std::string>& texts);
int diagnose_command(const Common& common, const DiagnoseArguments& arguments);
/// The same without a shelter around it. `crash`: what an earlier kernel crashed at; then the step is only
/// run as recorded. `doing` is told what is done.
int diagnosed(const Common& common, const DiagnoseArguments& arguments, const std::string& crash,
              const Doing& doing);
int verify_command(const Common& common);
int audit_command(const Common& common);
int rewind_command(const Common& common, const RewindArguments& arguments);
int run_command(const Common& common, const RunArguments& arguments);
int bisect_command(const Common& common, const std::string& what);
int repro_command(const Common& common, const ReproArguments& arguments);
int compare_command(const Common& common, const RunArguments& arguments, int rows);
int info_command(const Common& common);
int redact_command(const Common& common, const RedactArguments& arguments);
int embed_command(const Common& common, const EmbedArguments& arguments);
int minimal_command(const Common& common, const MinimalArguments& arguments);

/// "1.3 MB", "340 bytes".
std::string size_text(std::uint64_t bytes);

/// "1.2e+05" for tables of the program; never "nan" for a number.
std::string short_number(double value);

// console.cpp
/// Prints "nanquest-replay: message (hint)" to stderr; returns the exit code for it.
int fail(const Error& error);
/// Opens the snapshot and checks every tensor against its checksum; on failure the caller returns
/// `fail(error)`.
Result<Replayer> open_snapshot(const Common& common);
/// Progress lines on stderr, rewritten in place on a terminal; silent with --quiet. Cleared when destroyed.
class Progressor {
 public:
  explicit Progressor(bool quiet);
  ~Progressor();
  Progressor(const Progressor&) = delete;
  Progressor& operator=(const Progressor&) = delete;
  void say(const std::string& what);
  /// Removes the line, so that something else can be printed.
  void clear();

 private:
  bool quiet_, terminal_, shown_ = false;
};
/// Sends progress to the sheltered process and to the one that waits for it (see sheltered). Both must
/// outlive the result.
std::function<void(const std::string& what)> saying(const Doing& doing, Progressor& progress);
/// While it exists, Ctrl-C ends the experiments, so that what is known can be printed; a second one ends the
/// program as usual.
class StopOnInterrupt {
 public:
  StopOnInterrupt();
  ~StopOnInterrupt();
  StopOnInterrupt(const StopOnInterrupt&) = delete;
  StopOnInterrupt& operator=(const StopOnInterrupt&) = delete;
};
/// Whether to use colours on stdout: it is a terminal, and NO_COLOR is not set.
bool stdout_has_colour();
/// Columns of the terminal on stdout, 100 if it is none.
int stdout_width();
/// The name without ".h5": "run/incidents/step-00000131.r0".
std::string stem_of(const std::string& snapshot);
/// "fp32" and friends; `usage` names the known ones.
Result<Precision> precision_from(const std::string& text);
/// The device that runs the step as recorded. `usage`: unknown device, not available here, or the step never
/// was on a device.
Result<c10::Device> device_for(const Common& common, const SnapshotDoc& doc);
/// Options of a run from the flags; `usage` if a module path does not exist in the snapshot.
Result<RunOptions> run_options(const RunArguments& arguments, const SnapshotDoc& doc);

// replay_file.cpp
/// Writes what each op wrote in the runs as recorded, in fp32 and in fp64, how far these two are from the
/// first, and the culprit's values in all three (replay/verdict/replayed_paths.h says where), beside the
/// snapshot's step and rank. Runs the step in fp32 and fp64 side by side with the step as recorded; `c` has a
/// lab. Errors: `io`, as SnapshotWriter.
Status write_replay_file(const Case& c, const std::string& path);

// version.cpp
/// Versions of nanquest, LibTorch, HDF5 and the file format, one per line.
std::string version_text();

/// nanquest-replay itself: returns the exit code for these arguments; argv[0] is its name.
int run_program(int argc, char** argv);

}  // namespace nanquest::cli
