#include "replay/report/repro.h"

#include <ATen/ATen.h>

#include <filesystem>

#include "probe/snapshot/atomic_file.h"
#include "replay/report/repro_call.h"
#include "replay/report/repro_program.h"
#include "replay/report/repro_programs.h"
#include "replay/report/repro_refusal.h"

namespace nanquest {
namespace {

std::string op_title(const Case& c, std::int32_t op) {
  const OpRow& row = *c.row(op);
  std::string text = c.op_text(op) + " (" + std::string(word(row.phase)) + "), op " + std::to_string(op) +
                     " of step " + std::to_string(c.doc().step);
  if (const std::int32_t forward = c.forward_of(op); row.phase == Phase::backward && forward != kNone)
    text += ", in the derivative of " + c.op_text(forward) + ", op " + std::to_string(forward);
  return text;
}

/// Python: the forward op and the gradients that came to it; "" if there is none.
std::string forward_function(const Case& c, std::int32_t op, Program& program) {
  const auto found = differentiated_by(c, op);
  if (!found) return "";
  const std::string gradients = program.tensors(found->gradients, "gradient.");
  const auto function = program.call("forward", *c.row(found->op), found->call, "forward.", ", " + gradients);
  if (!function) return "";
  return "# What it differentiates, " + c.op_text(found->op) + ", op " + std::to_string(found->op) +
         ", and the gradients of what that returns.\n" + *function;
}

/// Where and with what it was recorded.
std::string circumstances(const Case& c, std::int32_t op) {
  std::string text;
  for (const Case::TensorArgument& a : c.tensor_arguments(op))
    if (const SlotId slot = c.graph().slot(TensorId{a.tensor}); slot && get(c.doc(), slot).device != "cpu")
      text = " on " + get(c.doc(), slot).device;
  const auto torch = c.doc().environment.find("torch_version");
  if (torch != c.doc().environment.end()) text += " with torch " + torch->second;
  return text;
}

constexpr const char* kHowToBuild =
    "Build it against LibTorch (T=$(python3 -c 'import torch; print(torch.__path__[0])')):\n";
// libtorch.so of a CUDA wheel needs every CUDA library to start, so it is linked only if needed.
constexpr const char* kOnAGpu = "For a GPU put -Wl,--no-as-needed -ltorch before -ltorch_cpu.\n";

/// Every line of `text` with `mark` before it.
std::string commented(const std::string& mark, const std::string& text) {
  std::string all = mark;
  for (std::size_t i = 0; i < text.size(); ++i) {
    all += text[i];
    if (text[i] == '\n' && i + 1 < text.size()) all += mark;
  }
  return all;
}

}  // namespace

Result<Repro> make_repro(const Case& c, std::int32_t op, const std::string& stem) {
  const bool culprit = op == kNone;
  if (culprit) {
    if (Status possible = op_is_to_blame(c); !possible) return possible.error();
    op = c.op_index();
  }
  if (!c.row(op))
    return Error{ErrorCode::usage, "repro: no op " + std::to_string(op),
                 "--op takes a row of the trace, 0 to " + std::to_string(c.doc().ops.size() - 1)};
  auto recorded = record_call(c, op);
  if (!recorded) return recorded.error();
  const RecordedCall& call = *recorded;
  if (culprit)
    if (Status shown = op_shows_it(c, call); !shown) return shown.error();
  TensorStore store;
  Program python(kPython, store), cpp(kCpp, store);
  const auto python_call = python.call("call", *c.row(op), call),
             cpp_call = cpp.call("call", *c.row(op), call);
  if (!python_call) return python_call.error();
  if (!cpp_call) return cpp_call.error();
  Repro repro;
  repro.stem = stem;
  repro.title = op_title(c, op);
  repro.shows = bad_text(call);
  const std::string how = ",\non what it was given when it was recorded" + circumstances(c, op) + ".\n";
  const std::string ends =
      "ends with 1 if something that it makes is not finite; as recorded: " + repro.shows + ".\n";
  const std::string title = in_quotes(repro.title), forward = forward_function(c, op, python);
  repro.python = commented("# ", repro.title + how + "python3 " + stem + ".py [DEVICE]: " + ends) +
                 kPythonHead + *python_call + forward + python.preparation(c.doc(), call) +
                 "TITLE = " + title + "\n" + python.constants(call) +
                 "FORWARD = " + (forward.empty() ? "None" : "forward") + "\n" + kPythonTail;
  repro.cpp = commented("// ", repro.title + how + stem + " [DEVICE] " + ends + kHowToBuild +
                                   "g++ -std=c++20 -DNDEBUG -isystem $T/include " + stem + ".cpp -o " + stem +
                                   " -L$T/lib -ltorch_cpu -lc10 -Wl,-rpath,$T/lib\n" + kOnAGpu) +
              kCppHead + "#define STEM " + in_quotes(stem) + "\nstatic const char* const kTitle = " + title +
              ";\nstatic const char* const kName = " + in_quotes(c.row(op)->name) +
              ";\nstatic const char* const kOverload = " + in_quotes(c.row(op)->overload) + ";\n\n" +
              *cpp_call + cpp.preparation(c.doc(), call) + cpp.constants(call) + kCppTail;
  repro.safetensors = store.file();
  return repro;
}

Result<std::vector<std::string>> write_repro(const Repro& repro, const std::string& directory) {
  const std::filesystem::path base = std::filesystem::path(directory) / repro.stem;
  std::vector<std::string> paths;
  const std::pair<const char*, const std::string*> files[] = {
      {".safetensors", &repro.safetensors}, {".cpp", &repro.cpp}, {".py", &repro.python}};
  for (const auto& [extension, text] : files) {
    if (text->empty()) continue;
    const std::string path = base.string() + extension;
    if (Status s = write_file_atomically(path, *text); !s) return s.error();
    paths.push_back(path);
  }
  return paths;
}

}  // namespace nanquest
