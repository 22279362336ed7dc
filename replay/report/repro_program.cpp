#include "replay/report/repro_program.h"

#include <ATen/ATen.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "replay/case/values.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

/// What can't be seen in the value: how large stored tensors are, and what is not finite.
std::string about(const c10::IValue& value) {
  if (value.isDouble())
    return std::isfinite(value.toDouble()) ? "" : "not finite: a number that the program chose";
  if (!value.isTensor() || !value.toTensor().defined() || !value.toTensor().is_floating_point()) return "";
  const at::Tensor& t = value.toTensor();
  const std::int64_t bad = count_true(bad_mask(t));
  std::string text = bad ? count_text(bad, "element") + (bad == 1 ? " is" : " are") + " not finite" : "";
  if (t.numel() > kInlineElements)
    text += (bad ? ", " : "") + std::string("largest finite ") + number_text(finite_amax(t));
  return text;
}

std::string python_op(const OpRow& op) {
  const std::size_t colons = op.name.find("::");
  return "torch.ops." + op.name.substr(0, colons) + "." + op.name.substr(colons + 2) + "." +
         (op.overload.empty() ? "default" : op.overload);
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

/// The recorded number of threads; "" if it is not recorded.
std::string threads_of(const SnapshotDoc& doc) {
  const auto entry = doc.environment.find("num_threads");
  const bool number = entry != doc.environment.end() && !entry->second.empty() && entry->second.size() < 4 &&
                      entry->second.find_first_not_of("0123456789") == std::string::npos;
  return number && entry->second != "0" ? entry->second : "";
}

Error cannot_write(const OpRow& op, const std::string& what) {
  return {ErrorCode::unsupported, "repro: " + what + " of " + op.name + " can't be written down",
          "nanquest-replay run goes through the whole step"};
}

}  // namespace

std::string in_quotes(const std::string& text) {
  return nlohmann::json(text).dump();
}

Result<std::string> Program::call(const std::string& name, const OpRow& op, const RecordedCall& call,
                                  const std::string& prefix, const std::string& more) {
  const SharedMemories shared = shared_memory(call.arguments, call.written);
  std::string text =
      is_.python ? "def " + name + "():\n" : "static std::vector<c10::IValue> " + name + "() {\n";
  for (const auto& [storage, memory] : shared) {
    const auto value = ValueText(is_, store_, {}).tensor(memory.elements, prefix + memory.name);
    if (!value) return cannot_write(op, "the memory that arguments share");
    text += is_.python ? "    " + memory.name + " = " + *value + "\n"
                       : "  const at::Tensor " + memory.name + " = " + *value + ";\n";
  }
  text += is_.python ? "    return " + python_op(op) + ", {\n" : "  return {\n";
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    const c10::Argument& argument = call.handle.schema().arguments()[i];
    const auto value =
        ValueText(is_, store_, shared).argument(call.arguments[i], argument, prefix + argument.name());
    if (!value) return cannot_write(op, "argument " + argument.name());
    const std::string note = about(call.arguments[i]);
    text += is_.python
                ? "        " + in_quotes(argument.name()) + ": " + *value + "," +
                      (note.empty() ? "" : "  # " + note) + "\n"
                : "      " + *value + ",  // " + argument.name() + (note.empty() ? "" : ": " + note) + "\n";
  }
  return text + (is_.python ? "    }" + more + "\n\n\n" : "  };\n}\n\n");
}

std::string Program::preparation(const SnapshotDoc& doc, const RecordedCall& call) {
  std::string text;
  if (const std::string threads = threads_of(doc); !threads.empty())
    text += is_.python ? "    torch.set_num_threads(" + threads + ")\n"
                       : "  at::set_num_threads(" + threads + ");\n";
  const auto entry = doc.environment.find("deterministic_algorithms");
  if (entry != doc.environment.end() && entry->second == "true")
    text += is_.python ? "    torch.use_deterministic_algorithms(True, warn_only=True)\n"
                       : "  at::globalContext().setDeterministicAlgorithms(true, true);\n";
  if (call.generator.defined()) {
    const std::string state = *ValueText(is_, store_, {}).tensor(call.generator, "generator") + ".cpu()";
    text += is_.python ? "    torch.set_rng_state(" + state + ")\n"
                       : "  at::Generator generator = at::detail::getDefaultCPUGenerator();\n"
                         "  generator.set_state(" +
                             state + ");\n";
  }
  if (is_.python) return "def prepare():\n" + (text.empty() ? "    pass\n" : text) + "\n\n";
  return "static void prepare() {\n" + text + "}\n\n";
}

std::string Program::constants(const RecordedCall& call) const {
  std::vector<std::string> written, recorded, wider;
  for (const std::size_t i : call.results)
    written.push_back(is_.python ? in_quotes(call.handle.schema().arguments()[i].name()) : std::to_string(i));
  for (const RecordedOutput& o : call.outputs) {
    const std::string all = std::to_string(o.nan) + ", " + std::to_string(o.inf) + ", " +
                            (o.checksum ? std::to_string(*o.checksum) : "-1");
    if (!o.looked_at)
      recorded.push_back(is_.python ? "None" : "{-1, 0, 0}");
    else
      recorded.push_back(is_.python ? "(" + all + ")" : "{" + all + "}");
  }
  for (const at::ScalarType t : call.wider) wider.push_back(is_.type(t));
  if (is_.python)
    return "WRITTEN = [" + joined(written) +
           "]  # arguments that hold results which the op doesn't return\n" + "RECORDED = [" +
           joined(recorded) + "]  # NaN, Inf and CRC-32 of each output\n" + "WIDER = [" + joined(wider) +
           "]\n";
  return "/// Arguments that hold results which the op doesn't return.\n"
         "static const std::vector<size_t> kWritten = {" +
         joined(written) + "};\n" + "static const std::vector<Recorded> kRecorded = {" + joined(recorded) +
         "};\n" + "static const std::vector<at::ScalarType> kWider = {" + joined(wider) + "};\n";
}

std::string Program::tensors(const std::vector<at::Tensor>& tensors, const std::string& prefix) {
  std::vector<std::string> texts;
  for (std::size_t k = 0; k < tensors.size(); ++k)
    texts.push_back(
        ValueText(is_, store_, {}).tensor(tensors[k], prefix + std::to_string(k)).value_or(is_.none));
  return is_.open + joined(texts) + is_.close;
}

}  // namespace nanquest
