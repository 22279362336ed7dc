/// What the observer must know about an operator, computed once per operator.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nanquest {

/// The relation of a returned value to the arguments, by the schema.
enum class ReturnKind : std::uint8_t {
  fresh,    ///< new memory (or, for a few operators, a returned argument)
  view,     ///< aliases an argument, not written
  written,  ///< an argument that the operator wrote (in-place, out=)
};

/// Schema facts of one operator. Never freed; shared between threads.
struct OpTraits {
  explicit OpTraits(c10::OperatorHandle h) : handle(std::move(h)) {}

  c10::OperatorHandle handle;
  std::string name, overload;
  /// This process's accelerator (CUDA, MPS, …) when the operator was first met; kCPU if it had none.
  c10::DeviceType accelerator = c10::kCPU;
  bool composite_cpu = false, composite_device = false;  ///< decomposes into other dispatched operators
  bool autocast_cpu = false, autocast_device = false;    ///< autocast wraps it
  bool for_the_allocator = false;                        ///< no part of a computation (op_facts.h)
  bool seeded = false;                                   ///< draws from a generator
  bool uninitialised = false;                            ///< returns uninitialised memory
  bool opaque = false;                                   ///< never run again: its results are kept
  bool collective = false;             ///< communicates with other processes (collectives.h)
  bool awaits = false;                 ///< waits for the result of a collective
  bool foreign = false;                ///< not LibTorch's own
  bool unknown_elsewhere = false;      ///< … and another process may not have its kernel
  bool gives_what_it_wrote = false;    ///< returns_what_it_wrote (op_facts.h)
  bool in_place = false;               ///< writes its first argument, which it may read
  bool copies = false;                 ///< aten::clone
  bool moves = false;                  ///< aten::copy_
  bool views = false;                  ///< returns only views of its inputs: reads no element
  std::vector<bool> argument_read;     ///< per schema argument: the result depends on its values (op_facts.h)
  std::vector<bool> argument_written;  ///< per schema argument
  std::vector<bool> argument_overwritten;  ///< … and written without being read: out=, fill_, copy_, …
  std::vector<ReturnKind> returns;

  /// The frontier rule: whether this call is recorded itself; otherwise its parts are.
  bool is_frontier() const;
};

/// The operator for compiled code; reported by open_region.
inline constexpr const char* kCompiledRegion = "nanquest::compiled_region";

/// Traits of an operator. Thread-safe.
const OpTraits& traits_of(const c10::OperatorHandle& op);

/// Name of the argument at `position` of the operator "aten::add" with this overload, "" if there is none.
std::string argument_name(const std::string& op, const std::string& overload, std::int32_t position);

/// Traits of the operator that `fn` runs; null for ranges without an operator. Thread-safe.
const OpTraits* traits_of(const at::RecordFunction& fn);

}  // namespace nanquest
