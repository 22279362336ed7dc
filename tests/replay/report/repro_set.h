/// Repros made by nanquest-replay and run as a person would, but many at once: one run of the compiler for
/// all C++ programs, one Python for all scripts.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "probe/snapshot/reader.h"
#include "probe/trace/op_facts.h"
#include "tests/replay/diagnose/programs.h"

namespace nanquest::testing {

struct Counts {
  std::int64_t nan = 0, inf = 0;
  friend bool operator==(const Counts&, const Counts&) = default;
};

/// What the recorder counted in all that the op wrote, memory by memory: read from the file's tables only.
inline Counts counts_in_file(const SnapshotDoc& doc, std::int32_t op) {
  const OpRow& row = doc.ops[static_cast<std::size_t>(op)];
  std::set<std::tuple<std::int32_t, std::int64_t, std::vector<std::int64_t>>> seen;
  Counts counts;
  for (std::int32_t i = 0; i < row.written_count; ++i) {
    const std::int32_t at = doc.written[static_cast<std::size_t>(row.first_written + i)];
    const TensorRow& tensor = doc.tensors[static_cast<std::size_t>(at)];
    const std::int32_t output = at - row.first_output;
    if (output >= 0 && output < row.output_count && is_scratch(row.name, static_cast<std::size_t>(output)))
      continue;
    if (tensor.stats == kNone || !seen.insert({tensor.slot, tensor.storage_offset, tensor.sizes}).second)
      continue;
    const StatsRow& s = doc.stats[static_cast<std::size_t>(tensor.stats)];
    counts.nan += static_cast<std::int64_t>(s.nan);
    counts.inf += static_cast<std::int64_t>(s.pos_inf + s.neg_inf);
  }
  return counts;
}

inline SnapshotDoc doc_of(const std::string& snapshot) {
  const auto reader = SnapshotReader::open(snapshot);
  EXPECT_TRUE(reader.ok()) << reader.error().text();
  return reader ? reader->doc() : SnapshotDoc();
}

/// Lines of a program's output that begin with `title` ("as recorded", "in float64").
inline std::vector<std::string> lines(const std::string& output, const std::string& title) {
  std::vector<std::string> found;
  std::istringstream in(output);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(title + ": ")) found.push_back(line);
  return found;
}

/// The sum of what these lines say.
inline Counts counts_of(const std::vector<std::string>& lines) {
  Counts counts;
  static const std::regex pattern(": ([0-9]+) NaN, ([0-9]+) Inf");
  for (const std::string& line : lines) {
    std::smatch match;
    EXPECT_TRUE(std::regex_search(line, match, pattern)) << line;
    if (match.size() == 3) counts.nan += std::stoll(match[1]), counts.inf += std::stoll(match[2]);
  }
  return counts;
}

class ReproSet {
 public:
  explicit ReproSet(const Scratch& scratch) : scratch_(scratch) {}

  /// Lets nanquest-replay write the repro of `name`.h5 in the scratch directory.
  Output make(const std::string& name, const std::string& flags = "") {
    Output made = run_program(
        std::string(NANQUEST_REPLAY) + " repro " + flags + " '" + (scratch_ / (name + ".h5")) + "'",
        scratch_);
    if (made.code == 0) names_.push_back(name);
    return made;
  }
  const std::vector<std::string>& names() const { return names_; }

  /// Compiles all programs by the command that stands in them. Their main functions become parts of one
  /// program.
  void compile() {
    std::set<std::string> includes;
    std::string all, choice;
    for (const std::string& name : names_) {
      const std::string stem = name + ".repro", text = slurp(scratch_ / (stem + ".cpp"));
      std::istringstream in(text);
      for (std::string line; std::getline(in, line);)
        if (line.starts_with("#include <")) includes.insert(line);
      all += "namespace repro_" + name + " {\n#define main run_it\n#include \"" + stem +
             ".cpp\"\n#undef main\n#undef STEM\n}\n";
      choice +=
          "  if (std::string(argv[1]) == \"" + name + "\") return repro_" + name + "::run_it(1, argv);\n";
    }
    std::string head;
    for (const std::string& include : includes) head += include + "\n";
    std::ofstream(scratch_ / "all.repro.cpp") << head << all << "int main(int, char** argv) {\n"
                                              << choice << "  return 99;\n}\n";
    const std::string first = slurp(scratch_ / (names_.front() + ".repro.cpp")),
                      stem = names_.front() + ".repro";
    const std::regex command("// g\\+\\+ ([^\n]*) " + stem + "\\.cpp -o " + stem + " ([^\n]*)");
    std::smatch parts;
    ASSERT_TRUE(std::regex_search(first, parts, command)) << first.substr(0, 1000);
    const auto with_torch = [](const std::string& text) {
      return " " + std::regex_replace(text, std::regex("\\$T"), NANQUEST_TORCH);
    };
    // In two steps, so that a compiler cache can serve the first.
    const Output built = run_program("cd '" + scratch_.path() + "' && " + NANQUEST_LAUNCHER + " " +
                                         NANQUEST_CXX + " -O0 -Wall -Wextra -Werror" + with_torch(parts[1]) +
                                         " -c all.repro.cpp -o all.o && " + NANQUEST_CXX +
                                         " all.o -o all.repro" + with_torch(parts[2]),
                                     scratch_);
    ASSERT_EQ(built.code, 0) << built.err;
  }
  /// Runs one of them.
  Output cpp(const std::string& name) {
    return run_program("'" + (scratch_ / "all.repro") + "' " + name, scratch_);
  }

#ifdef NANQUEST_PYTHON
  /// Runs all scripts, on a device if one is given; what each ended with and printed, by name.
  std::map<std::string, Output> python(const std::string& device = "") {
    std::ofstream(scratch_ / "driver.py") << R"(import contextlib, io, runpy, sys
device = sys.argv[1:2] if sys.argv[1] else []
for name in sys.argv[2:]:
    sys.argv = [name] + device
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            runpy.run_path(name + ".repro.py", run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code
    open(name + ".out", "w").write(out.getvalue())
    open(name + ".code", "w").write(str(code))
)";
    std::string arguments = " '" + device + "'";
    for (const std::string& name : names_) arguments += " " + name;
    const Output all = run_program(
        "cd '" + scratch_.path() + "' && '" + NANQUEST_PYTHON + "' driver.py" + arguments, scratch_);
    EXPECT_EQ(all.code, 0) << all.err;
    std::map<std::string, Output> outputs;
    for (const std::string& name : names_) {
      const std::string code = slurp(scratch_ / (name + ".code"));
      outputs[name] = {code.empty() ? -1 : std::stoi(code), slurp(scratch_ / (name + ".out")), all.err};
    }
    return outputs;
  }
#endif

 private:
  const Scratch& scratch_;
  std::vector<std::string> names_;
};

/// The program showed what is in the file: the same counts, the same bits, and the exit code that goes with
/// them.
inline void expect_recorded(const Output& o, const Counts& recorded, const std::string& what) {
  EXPECT_EQ(o.code, recorded == Counts{} ? 0 : 1) << what << "\n" << o.out << o.err;
  const std::vector<std::string> shown = lines(o.out, "as recorded");
  EXPECT_FALSE(shown.empty()) << what << "\n" << o.out << o.err;
  EXPECT_EQ(counts_of(shown), recorded) << what << "\n" << o.out;
  for (const std::string& line : shown)
    EXPECT_NE(line.find("; bit for bit as recorded"), std::string::npos) << what << "\n" << line;
}

}  // namespace nanquest::testing
