#include "probe/capture/stacks.h"

#include <torch/csrc/profiler/combined_traceback.h>

#include <cstdint>
#include <cstdio>
#include <string_view>

namespace nanquest {
namespace {

bool is_plumbing(std::string_view file, std::string_view function) {
  for (const std::string_view part : {"libtorch", "libc10", "torch/include", "libc.so", "libgomp", "/c10/", "/ATen/"})
    if (file.find(part) != std::string_view::npos) return true;
  for (const std::string_view part :
       {"at::", "c10::", "torch::", "std::", "void at::", "void std::", "__libc_start", "_start",
        "nanquest::TraceRecorder", "nanquest::ObserverSession", "nanquest::record_step", "nanquest::Stack",
        "nanquest::(anonymous namespace)::on_start", "nanquest::(anonymous namespace)::start_op"})
    if (function.substr(0, part.size()) == part) return true;
  return false;
}

/// "file:line function" where the file is a source; a binary without line tables gives "program+0x21c2 function",
/// which addr2line understands.
std::string frame_text(const std::string& file, std::uint64_t line, const std::string& function) {
  const bool known = !function.empty() && function != "??";
  const auto dot = file.rfind('.');
  const std::string ending = dot == std::string::npos ? "" : file.substr(dot);
  for (const char* source : {".py", ".cpp", ".cc", ".cxx", ".c", ".h", ".hpp", ".cu", ".cuh"})
    if (ending == source) return file + ":" + std::to_string(line) + (known ? " " + function : "");
  char offset[32];
  std::snprintf(offset, sizeof offset, "+0x%llx", static_cast<unsigned long long>(line));
  return file.substr(file.rfind('/') + 1) + offset + (known ? " " + function : "");
}

class TorchStack : public Stack {
 public:
  explicit TorchStack(std::shared_ptr<torch::CapturedTraceback> trace) : trace_(std::move(trace)) {}

  std::vector<std::string> symbolise() const override {
    std::vector<std::string> frames;
    try {
      const torch::SymbolizedTracebacks all = torch::symbolize({trace_.get()});
      if (all.tracebacks.empty()) return frames;
      for (const auto index : all.tracebacks[0]) {
        const auto& frame = all.all_frames[index];
        if (is_plumbing(frame.filename, frame.funcname)) continue;
        frames.push_back(frame_text(frame.filename, frame.lineno, frame.funcname));
      }
    } catch (...) {
      frames.clear();
    }
    return frames;
  }

 private:
  std::shared_ptr<torch::CapturedTraceback> trace_;
};

}  // namespace

std::shared_ptr<Stack> Stack::gather() {
  try {
    return std::make_shared<TorchStack>(torch::CapturedTraceback::gather(true, false, true));
  } catch (...) {
    return nullptr;
  }
}

}  // namespace nanquest
