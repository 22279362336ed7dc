#include "replay/report/repro_programs.h"

namespace nanquest {

const char* const kCppHead = R"(#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

using Shape = std::vector<int64_t>;
/// NaN, Inf and checksum of an output as recorded; not looked at if `nan` is negative.
struct Recorded {
  int64_t nan, inf;
  int64_t crc;
};

[[maybe_unused]] static at::Device device(at::kCPU);
[[maybe_unused]] static at::Tensor numbers(const std::vector<double>& values, at::ScalarType type, const Shape& shape);
[[maybe_unused]] static at::Tensor bits(const std::string& hex, at::ScalarType type, const Shape& shape);
[[maybe_unused]] static at::Tensor stored(const std::string& name, at::ScalarType type, const Shape& shape);
[[maybe_unused]] static at::Tensor strided(const at::Tensor& values, const Shape& strides);
[[maybe_unused]] static at::Tensor number(const at::Scalar& value);
[[maybe_unused]] static c10::impl::GenericList scalars(const std::vector<at::Scalar>& values);

)";

const char* const kCppTail = R"(
// --- tensors -------------------------------------------------------------------------------------------
static std::string folder;

static at::Tensor numbers(const std::vector<double>& values, at::ScalarType type, const Shape& shape) {
  return at::tensor(values, at::kDouble).to(type).reshape(shape).to(device);
}

static at::Tensor bits(const std::string& hex, at::ScalarType type, const Shape& shape) {
  std::vector<unsigned char> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<unsigned char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return at::from_blob(bytes.data(), shape, type).clone().to(device);
}

/// A tensor from the .safetensors file beside the program.
static at::Tensor stored(const std::string& name, at::ScalarType type, const Shape& shape) {
  at::Tensor t = at::empty(shape, type);
  std::ifstream file(folder + STEM ".safetensors", std::ios::binary);
  uint64_t size = 0;
  file.read(reinterpret_cast<char*>(&size), 8);
  std::string head(file ? size : 0, ' ');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  const std::string mark = "\"data_offsets\":[";
  const size_t at = head.find(mark, head.find("\"" + name + "\":"));
  if (at != std::string::npos)
    file.seekg(static_cast<std::streamoff>(8 + size + std::stoull(head.substr(at + mark.size()))));
  file.read(static_cast<char*>(t.mutable_data_ptr()), static_cast<std::streamsize>(t.nbytes()));
  if (at == std::string::npos || !file) {
    std::fprintf(stderr, "%s is missing: it belongs beside this program\n", (folder + STEM ".safetensors").c_str());
    std::exit(3);
  }
  return t.to(device);
}

/// The same elements, laid out as they were.
static at::Tensor strided(const at::Tensor& values, const Shape& strides) {
  return at::empty_strided(values.sizes(), strides, values.options()).copy_(values);
}

/// A number in the place of a tensor: it takes no part in choosing the type of the result.
static at::Tensor number(const at::Scalar& value) {
  at::Tensor t = at::scalar_tensor(value, value.type());
  t.unsafeGetTensorImpl()->set_wrapped_number(true);
  return t;
}

static c10::impl::GenericList scalars(const std::vector<at::Scalar>& values) {
  c10::impl::GenericList list(c10::NumberType::get());
  for (const at::Scalar& value : values) list.push_back(value);
  return list;
}

static void flatten(const c10::IValue& value, std::vector<at::Tensor>& all) {
  if (value.isTensor()) all.push_back(value.toTensor());
  if (!value.isList()) return;
  for (const c10::IValue& element : value.toListRef()) flatten(element, all);
}

// --- running it ----------------------------------------------------------------------------------------
/// Everything that the op makes: what it returns, then what it writes and doesn't return.
static std::vector<at::Tensor> run(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments) {
  std::vector<c10::IValue> stack = arguments;
  op.callBoxed(stack);
  std::vector<at::Tensor> made;
  for (const c10::IValue& returned : stack) flatten(returned, made);
  for (const size_t i : kWritten) flatten(arguments[i], made);
  return made;
}

static at::Tensor raised(const at::Tensor& t, at::ScalarType wide) {
  if (!t.defined() || t.unsafeGetTensorImpl()->is_wrapped_number()) return t;
  if (t.is_complex()) return t.to(c10::toComplexType(wide));
  return t.is_floating_point() ? t.to(wide) : t;
}

/// The same argument in a wider format.
static c10::IValue raised(const c10::IValue& value, const c10::Argument& argument, at::ScalarType wide) {
  if (value.isTensor()) return raised(value.toTensor(), wide);
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& t : value.toTensorVector()) list.push_back(raised(t, wide));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const auto& t : value.toOptionalTensorVector()) list.push_back(t ? std::optional(raised(*t, wide)) : t);
    return list;
  }
  const bool type = value.isInt() && argument.real_type()->repr_str().find("ScalarType") != std::string::npos;
  if (type && at::isFloatingType(static_cast<at::ScalarType>(value.toInt()))) return wide;
  return argument.name() == "half_to_float" ? c10::IValue(false) : value;
}

static int64_t crc32(const at::Tensor& t) {
  const auto* bytes = static_cast<const unsigned char*>(t.const_data_ptr());
  uint32_t crc = 0xffffffffu;
  for (size_t i = 0; i < t.nbytes(); ++i) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return int64_t{~crc};
}

/// Prints what the tensors hold; returns how many elements are not finite.
static int64_t look(const char* title, const std::vector<at::Tensor>& tensors, bool compare) {
  int64_t bad = 0;
  for (size_t i = 0; i < tensors.size() && i < kRecorded.size(); ++i) {
    const at::Tensor& t = tensors[i];
    const Recorded& was = kRecorded[i];
    if (!t.defined() || was.nan < 0) continue;
    const at::Tensor real =
        (t.is_complex() ? at::view_as_real(t.resolve_conj()) : t).detach().cpu().resolve_neg().contiguous();
    const at::Tensor wide = real.to(at::kDouble), finite = wide.masked_select(at::isfinite(wide)).abs();
    const auto nan = at::isnan(wide).sum().item<int64_t>(), inf = at::isinf(wide).sum().item<int64_t>();
    std::printf("%s: output %zu: %s %s: %lld NaN, %lld Inf", title, i, c10::toString(t.scalar_type()),
                c10::str(t.sizes()).c_str(), (long long)nan, (long long)inf);
    if (finite.numel()) std::printf(", largest finite %g", finite.max().item<double>());
    if (compare && nan == was.nan && inf == was.inf && crc32(real) == was.crc)
      std::printf("; bit for bit as recorded");
    else if (compare)
      std::printf("; recorded: %lld NaN, %lld Inf, other bits", (long long)was.nan, (long long)was.inf);
    std::printf("\n");
    bad += nan + inf;
  }
  return bad;
}

int main(int argc, char** argv) try {
  if (argc > 1) device = at::Device(argv[1]);
  folder = argv[0];
  folder.resize(folder.find_last_of('/') + 1);
  std::puts(kTitle);
  const c10::OperatorHandle op = c10::Dispatcher::singleton().findSchemaOrThrow(kName, kOverload);
  const std::vector<c10::IValue> arguments = call();
  prepare();
  const int64_t bad = look("as recorded", run(op, arguments), true);
  for (const at::ScalarType wide : kWider) {
    const std::string title = std::string("in ") + c10::toString(wide);
    try {
      std::vector<c10::IValue> above = call();
      for (size_t i = 0; i < above.size(); ++i) above[i] = raised(above[i], op.schema().arguments()[i], wide);
      look(title.c_str(), run(op, above), false);
    } catch (const c10::Error& error) {
      std::printf("%s: not possible: %s\n", title.c_str(), error.what_without_backtrace());
    }
  }
  return bad ? 1 : 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "can't be run: %s\n", error.what());
  return 2;
}
)";

}  // namespace nanquest
