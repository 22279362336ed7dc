#include "probe/record/stacks.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <torch/csrc/profiler/combined_traceback.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "probe/record/symbols.h"

namespace nanquest {
namespace {

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts)
    if (text.substr(0, part.size()) == part) return true;
  return false;
}

bool is_plumbing_file(std::string_view file) {
  for (const std::string_view part : {"libtorch", "libc10", "libnanquest", "libc.so", "libgomp"})
    if (file.find(part) != std::string_view::npos) return true;
  return false;
}

bool is_plumbing_function(std::string_view function) {
  return starts_with_any(
      function, {"at::", "c10::", "torch::", "std::", "void at::", "void std::", "__libc_start", "_start",
                 "nanquest::Recorder", "nanquest::record::", "nanquest::ObserverSession",
                 "nanquest::record_step", "nanquest::Stack", "nanquest::capture_incident",
                 "nanquest::guard::", "nanquest::(anonymous namespace)::on_start",
                 "nanquest::(anonymous namespace)::start_op"});
}

/// Frames to leave out: the call protocol of modules, decorators, and the probe's own wrappers.
bool is_plumbing_frame(std::string_view file, std::string_view function) {
  for (const std::string_view own :
       {"/nanquest/hear/backward_passes.py", "/nanquest/hear/gradient_changes.py", "/nanquest/hear/hooks.py",
        "/nanquest/hear/module_calls.py", "/nanquest/steps/updates.py",
        "/nanquest/pytorch/guarded.py", "/nanquest/start/attachment.py"})
    if (file.ends_with(own)) return true;
  return (file.ends_with("/torch/nn/modules/module.py") && function.ends_with("_call_impl")) ||
         file.ends_with("/torch/utils/_contextlib.py");
}

/// Python frames, from LibTorch, which knows the interpreter.
class PythonStack : public Stack {
 public:
  explicit PythonStack(std::shared_ptr<torch::CapturedTraceback> trace) : trace_(std::move(trace)) {}

  std::vector<std::string> symbolise() const override {
    std::vector<std::string> frames;
    try {
      const torch::SymbolizedTracebacks all = torch::symbolize({trace_.get()});
      if (all.tracebacks.empty()) return frames;
      for (const auto index : all.tracebacks[0]) {
        const auto& frame = all.all_frames[index];
        if (is_plumbing_frame(frame.filename, frame.funcname)) continue;
        frames.push_back(frame.filename + ":" + std::to_string(frame.lineno) + " " + frame.funcname);
      }
    } catch (...) {
      frames.clear();
    }
    return frames;
  }

 private:
  std::shared_ptr<torch::CapturedTraceback> trace_;
};

std::string demangled(const char* name) {
  if (!name) return "";
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 && text ? text : name;
  std::free(text);
  return result;
}

/// A loaded file and its start address.
struct LoadedFile {
  const void* address;
  std::string name;
  std::string path;  ///< path to read it from
  const char* base = nullptr;
};

/// The file that an address lies in. dladdr also searches all symbols of the file, and LibTorch has hundreds
/// of thousands.
LoadedFile file_of(const void* address) {
  LoadedFile file{address, {}, {}, nullptr};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& wanted = *static_cast<LoadedFile*>(data);
        const auto at = reinterpret_cast<std::uintptr_t>(wanted.address);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
          if (part.p_type != PT_LOAD || at < begin || at >= begin + part.p_memsz) continue;
          const bool library = info->dlpi_name && *info->dlpi_name;
          wanted.name = library ? info->dlpi_name : program_invocation_name;
          wanted.path = library ? info->dlpi_name : "/proc/self/exe";
          wanted.base = reinterpret_cast<const char*>(info->dlpi_addr);
          return 1;
        }
        return 0;
      },
      &file);
  return file;
}

/// C++ frames as return addresses. Names come from symbol tables (a program exports few; its file has the
/// rest unless it is stripped), which takes microseconds. Reading debug information would take as long as a
/// step. "program+0x21c2" is what addr2line understands.
class NativeStack : public Stack {
 public:
  NativeStack() { depth_ = backtrace(addresses_.data(), static_cast<int>(addresses_.size())); }

  std::vector<std::string> symbolise() const override {
    std::vector<std::string> frames;
    for (int i = 0; i < depth_; ++i) {
      const void* address = addresses_[static_cast<std::size_t>(i)];
      const LoadedFile file = file_of(address);
      if (file.name.empty() || is_plumbing_file(file.name)) continue;
      const auto place = static_cast<std::size_t>(static_cast<const char*>(address) - file.base);
      const char* name = SymbolTable::of(file.path).at(place - 1);  // the call, not its return address
      Dl_info info{};
      if (!name && dladdr(address, &info)) name = info.dli_sname;
      const std::string function = demangled(name);
      if (is_plumbing_function(function)) continue;
      char offset[32];
      std::snprintf(offset, sizeof offset, "+0x%zx", place);
      frames.push_back(file.name.substr(file.name.rfind('/') + 1) + offset +
                       (function.empty() ? "" : " " + function));
    }
    return frames;
  }

 private:
  std::array<void*, 40> addresses_{};
  int depth_ = 0;
};

}  // namespace

bool Stack::costly() {
  static const bool python = dlsym(RTLD_DEFAULT, "Py_IsInitialized") != nullptr;
  return !python;
}

std::shared_ptr<Stack> Stack::gather() {
  try {
    if (costly()) return std::make_shared<NativeStack>();
    return std::make_shared<PythonStack>(torch::CapturedTraceback::gather(true, false, false));
  } catch (...) {
    return nullptr;
  }
}

}  // namespace nanquest
