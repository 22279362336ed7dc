/// nanquest-trainer as a person starts it, in a temporary folder.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/trainer/helpers.h"

namespace nanquest::trainer::test {

class Program : public testing::Test {
 protected:
  Program() { test::write_file(folder / "data/a.txt", test::some_text(4000)); }

  std::string command(const std::string& arguments) const {
    return std::string(NANQUEST_TEST_TRAINER) + " " + arguments;
  }
  /// The smallest run there is, plus `arguments`.
  std::string tiny(const std::string& arguments) const {
    return command("--data '" + (folder / "data") + "' --run-dir '" + (folder / "run") +
                   "' --steps 12 --depth 1 --width 16 --heads 2 --context 16 --batch-size 2 --threads 1 " +
                   arguments);
  }
  Ran run(const std::string& full) const { return test::run(full, folder); }
  /// Names of the files in the run's folder of checkpoints, sorted.
  std::vector<std::string> checkpoints() const {
    std::vector<std::string> names;
    std::error_code ec;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "run/checkpoints", ec))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string state(int batches) const {
    char name[40];
    std::snprintf(name, sizeof name, "state-%08d.safetensors", batches);
    return folder / ("run/checkpoints/" + std::string(name));
  }
  static bool one_line(const std::string& text) {
    return !text.empty() && text.find('\n') == text.size() - 1;
  }

  const Folder folder;
};

}  // namespace nanquest::trainer::test
