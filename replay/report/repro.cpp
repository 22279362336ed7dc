#include "replay/report/repro.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <filesystem>

#include "probe/snapshot/atomic_file.h"
#include "replay/report/repro_values.h"

namespace nanquest {
namespace {

constexpr const char* kPythonHead = R"(import json, pathlib, sys
import torch

here = pathlib.Path(__file__)


def bits(text, dtype, shape):
    """A tensor from the hexadecimal bytes of its elements."""
    return torch.frombuffer(bytearray.fromhex(text), dtype=dtype).reshape(shape).clone()


def stored(name):
    """A tensor from the .safetensors file beside this script."""
    data = here.with_suffix(".safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    entry = json.loads(data[8:8 + size])[name]
    begin, end = entry["data_offsets"]
    kinds = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
             "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2, "I64": torch.int64,
             "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool}
    raw = bytearray(data[8 + size + begin:8 + size + end])
    return torch.frombuffer(raw, dtype=kinds[entry["dtype"]]).reshape(entry["shape"]).clone()


)";

constexpr const char* kPythonTail = R"(
results = result if isinstance(result, (list, tuple)) else [result]
bad = 0
for i, t in enumerate(r for r in results if isinstance(r, torch.Tensor) and r.is_floating_point()):
    wide = t.double()
    nan, inf = int(wide.isnan().sum()), int(wide.isinf().sum())
    print(f"output {i}: {t.dtype} {list(t.shape)}: {nan} NaN, {inf} Inf")
    bad += nan + inf
sys.exit(1 if bad else 0)
)";

constexpr const char* kCppHead = R"(#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

static std::string folder;

static at::Tensor bits(const std::string& hex, at::ScalarType type, std::vector<int64_t> shape) {
  std::vector<unsigned char> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<unsigned char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return at::from_blob(bytes.data(), shape, type).clone();
}

[[maybe_unused]]
static at::Tensor stored(std::streamoff offset, at::ScalarType type, std::vector<int64_t> shape) {
  at::Tensor t = at::empty(shape, type);
  std::ifstream file(folder + STEM ".safetensors", std::ios::binary);
  file.seekg(offset);
  file.read(static_cast<char*>(t.mutable_data_ptr()), static_cast<std::streamsize>(t.nbytes()));
  if (!file) std::fprintf(stderr, "can't read %s\n", (folder + STEM ".safetensors").c_str()), std::exit(3);
  return t;
}

)";

constexpr const char* kCppTail = R"(
  int64_t bad = 0;
  for (const c10::IValue& v : stack) {
    if (!v.isTensor() || !v.toTensor().is_floating_point()) continue;
    const at::Tensor wide = v.toTensor().to(at::kDouble);
    const auto nan = at::isnan(wide).sum().item<int64_t>(), inf = at::isinf(wide).sum().item<int64_t>();
    std::printf("output: %s: %lld NaN, %lld Inf\n", c10::str(v.toTensor().sizes()).c_str(),
                (long long)nan, (long long)inf);
    bad += nan + inf;
  }
  return bad ? 1 : 0;
}
)";

Error cannot_write(const OpRow& op, const std::string& argument) {
  return {ErrorCode::unsupported, "repro: argument " + argument + " of " + op.name + " can't be written down",
          "replay the whole snapshot instead"};
}

std::string call_arguments(const std::vector<std::string>& values, const c10::FunctionSchema& schema) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    text += "    " + (argument.kwarg_only() ? argument.name() + "=" : std::string()) + values[i] + ",";
    text += argument.kwarg_only() ? "\n" : "  # " + argument.name() + "\n";
  }
  return text;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (char ch : text) {
    if (ch == '"' || ch == '\\') out += '\\';
    out += ch;
  }
  return out;
}

}  // namespace

Result<Repro> make_repro(const Case& c, std::int32_t op, const std::string& stem) {
  const OpRow* row = c.row(op);
  if (!row)
    return Error{ErrorCode::usage,
                 op == kNone ? "repro: this step has no culprit op" : "repro: no op " + std::to_string(op),
                 "--op takes a row of the trace, 0 to " + std::to_string(c.doc().ops.size() - 1)};
  const auto handle = c10::Dispatcher::singleton().findOp({row->name, row->overload});
  const OpValues& values = c.values(op);
  if (!handle || handle->schema().arguments().size() != values.arguments.size())
    return Error{ErrorCode::unsupported,
                 "repro: " + row->name + " is not an operator of this LibTorch, or did not run", ""};
  Repro repro;
  repro.stem = stem;
  TensorStore store;
  std::vector<std::string> python;
  const c10::FunctionSchema& schema = handle->schema();
  for (std::size_t i = 0; i < values.arguments.size(); ++i) {
    const auto text = python_value(values.arguments[i], schema.arguments()[i], store);
    if (!text) return cannot_write(*row, schema.arguments()[i].name());
    python.push_back(*text);
  }
  int next = 0;
  std::string cpp;
  for (std::size_t i = 0; i < values.arguments.size(); ++i) {
    const auto text = cpp_value(values.arguments[i], store, next);
    if (!text) return cannot_write(*row, schema.arguments()[i].name());
    cpp += "  stack.emplace_back(" + *text + ");  // " + schema.arguments()[i].name() + "\n";
  }
  const std::string title =
      c.op_text(op) + ", op " + std::to_string(op) + " of step " + std::to_string(c.doc().step);
  const std::string name = row->name.substr(row->name.find("::") + 2);
  const std::string space = row->name.substr(0, row->name.find("::"));
  repro.python = "# " + title + ", on its recorded inputs. Ends with 1 if the output is not finite.\n" +
                 kPythonHead + "result = torch.ops." + space + "." + name + "." +
                 (row->overload.empty() ? "default" : row->overload) + "(\n" +
                 call_arguments(python, schema) + ")\n" + kPythonTail;
  repro.cpp =
      "// " + title +
      ", on its recorded inputs. Build it against LibTorch; ends with 1 if the output is not finite.\n" +
      "#define STEM \"" + escaped(stem) + "\"\n" + kCppHead +
      "int main(int, char** argv) {\n  folder = argv[0];\n  folder.resize(folder.find_last_of('/') + 1);\n" +
      "  std::vector<c10::IValue> stack;\n" + cpp + "  c10::Dispatcher::singleton().findSchemaOrThrow(\"" +
      row->name + "\", \"" + row->overload + "\").callBoxed(&stack);\n" + kCppTail;
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
