#include "replay/trace/arguments.h"

#include <ATen/core/Generator.h>
#include <ATen/core/jit_type.h>
#include <c10/util/complex.h>

#include <stdexcept>

#include "probe/tensor/tensor_scan.h"
#include "probe/trace/op_facts.h"
#include "replay/trace/operators.h"

namespace nanquest::trace {
namespace {

using c10::TypeKind;

/// Reads the tokens of one op in order.
class TokenCursor {
 public:
  TokenCursor(const SnapshotDoc& doc, const OpRow& op) : doc_(doc), op_(op) {
    const std::int64_t end = std::int64_t{op.first_arg} + op.arg_count;
    if (op.arg_count < 0 || op.first_arg < 0 || end > static_cast<std::int64_t>(doc.args.size()))
      throw std::runtime_error("its argument range is outside the argument table");
  }
  bool done() const { return next_ == op_.arg_count; }
  const ArgRow& take() {
    if (done()) throw std::runtime_error("its arguments end too early");
    return get(doc_, ArgId{op_.first_arg + next_++});
  }
  std::int64_t left() const { return op_.arg_count - next_; }

 private:
  const SnapshotDoc& doc_;
  const OpRow& op_;
  std::int32_t next_ = 0;
};

TensorId checked_row(const SnapshotDoc& doc, const ArgRow& token) {
  if (token.kind == ArgKind::none) return {};
  if (token.kind != ArgKind::tensor) throw std::runtime_error("a tensor was expected");
  const TensorRow* row = find_row(doc, TensorId{token.tensor});
  if (!row) throw std::runtime_error("its tensor row is outside the tensor table");
  return (row->flags & kTensorUndefined) ? TensorId{} : TensorId{token.tensor};
}

std::int64_t as_int(const ArgRow& token) {
  if (token.kind == ArgKind::integer || token.kind == ArgKind::boolean) return token.integer;
  throw std::runtime_error("an integer was expected");
}

double as_double(const ArgRow& token) {
  return token.kind == ArgKind::real ? token.real : static_cast<double>(as_int(token));
}

const std::string& as_string(const ArgRow& token) {
  if (token.kind != ArgKind::string) throw std::runtime_error("a string was expected");
  return token.text;
}

/// A value whose token says its own type: Scalar, Any.
c10::IValue free_value(const ArgRow& token) {
  switch (token.kind) {
    case ArgKind::none:
      return {};
    case ArgKind::integer:
      return token.integer;
    case ArgKind::boolean:
      return token.integer != 0;
    case ArgKind::real:
      return token.real;
    case ArgKind::complex:
      return c10::complex<double>(token.real, token.imaginary);
    case ArgKind::string:
      return token.text;
    default:
      throw std::runtime_error("a number was expected");
  }
}

c10::IValue scalar_value(const ArgRow& token, TypeKind kind) {
  switch (kind) {
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      return as_int(token);
    case TypeKind::FloatType:
    case TypeKind::SymFloatType:
      return as_double(token);
    case TypeKind::BoolType:
    case TypeKind::SymBoolType:
      return as_int(token) != 0;
    case TypeKind::StringType:
      return as_string(token);
    // A snapshot of a GPU run may be replayed without a GPU: the machine chooses the device.
    case TypeKind::DeviceObjType:
      return c10::Device(c10::kCPU);
    case TypeKind::GeneratorType:
      return {};  // None stands for the default generator, whose state replay sets
    default:
      return free_value(token);
  }
}

template <class T, class F>
c10::IValue typed_list(TokenCursor& tokens, std::int64_t length, F&& element) {
  c10::List<T> list;
  list.reserve(static_cast<std::size_t>(length));
  for (std::int64_t i = 0; i < length; ++i) list.push_back(element(tokens.take()));
  return list;
}

c10::IValue constant_list(TokenCursor& tokens, std::int64_t length, const c10::TypePtr& element) {
  switch (element->kind()) {
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      return typed_list<std::int64_t>(tokens, length, as_int);
    case TypeKind::FloatType:
      return typed_list<double>(tokens, length, as_double);
    case TypeKind::BoolType:
      return typed_list<bool>(tokens, length, [](const ArgRow& t) { return as_int(t) != 0; });
    case TypeKind::StringType:
      return typed_list<std::string>(tokens, length, as_string);
    case TypeKind::NumberType: {
      c10::impl::GenericList list(c10::NumberType::get());
      for (std::int64_t i = 0; i < length; ++i) list.push_back(free_value(tokens.take()));
      return list;
    }
    default:
      throw std::runtime_error("lists of " + element->str() + " can't be rebuilt");
  }
}

/// The tokens after a `list` token: tensors become rows, anything else a constant.
void plan_list(const SnapshotDoc& doc, TokenCursor& tokens, const ArgRow& head, const c10::TypePtr& element,
               ArgPlan& plan) {
  if (head.integer < 0 || head.integer > tokens.left())
    throw std::runtime_error("a list is longer than the arguments that follow");
  c10::TypePtr inner = element;
  const bool optional = inner->kind() == TypeKind::OptionalType;
  if (optional) inner = inner->castRaw<c10::OptionalType>()->getElementType();
  if (inner->kind() != TypeKind::TensorType) {
    plan.constant = constant_list(tokens, head.integer, inner);
    return;
  }
  plan.kind = optional ? ArgPlan::Kind::optional_tensors : ArgPlan::Kind::tensors;
  for (std::int64_t i = 0; i < head.integer; ++i) plan.rows.push_back(checked_row(doc, tokens.take()));
}

void plan_value(const SnapshotDoc& doc, TokenCursor& tokens, const c10::Argument& argument, ArgPlan& plan) {
  const ArgRow& head = tokens.take();
  if (head.kind == ArgKind::opaque)
    throw std::runtime_error("it holds a " + head.text + ", which can't be rebuilt");
  c10::TypePtr real = argument.real_type();
  const bool optional = real->kind() == TypeKind::OptionalType;
  if (optional) real = real->castRaw<c10::OptionalType>()->getElementType();
  const TypeKind kind = real->kind();
  if (head.kind == ArgKind::none && (optional || kind != TypeKind::TensorType)) {
    if (kind == TypeKind::ScalarTypeType) plan.kind = ArgPlan::Kind::missing_dtype;
    return;  // None
  }
  if (kind == TypeKind::TensorType) {
    plan.kind = ArgPlan::Kind::tensor;
    plan.rows.push_back(checked_row(doc, head));
  } else if (kind == TypeKind::ListType) {
    const c10::TypePtr element = real->castRaw<c10::ListType>()->getElementType();
    if (head.kind == ArgKind::list) {
      plan_list(doc, tokens, head, element, plan);
    } else {  // `int[2] stride = 1`: one number stands for all
      const auto n = static_cast<std::size_t>(argument.N().value_or(1));
      if (element->kind() == TypeKind::FloatType)
        plan.constant = c10::List<double>(std::vector<double>(n, as_double(head)));
      else
        plan.constant = c10::List<std::int64_t>(std::vector<std::int64_t>(n, as_int(head)));
    }
  } else if (kind == TypeKind::ScalarTypeType) {
    const std::int64_t value = as_int(head);
    if (value < 0 || value >= static_cast<std::int64_t>(at::ScalarType::NumOptions))
      throw std::runtime_error("it is no dtype");
    plan.kind = ArgPlan::Kind::scalar_type;
    plan.constant = value;
  } else {
    if (head.kind == ArgKind::list) throw std::runtime_error("a single value was expected, not a list");
    plan.constant = scalar_value(head, kind);
    plan.on_device = kind == TypeKind::DeviceObjType && head.text != "cpu";
    if (argument.name() == "half_to_float") plan.kind = ArgPlan::Kind::half_to_float;
  }
}

}  // namespace

std::vector<ArgPlan> plan_arguments(const SnapshotDoc& doc, const OpRow& op,
                                    const c10::FunctionSchema& schema) {
  std::vector<ArgPlan> plans;
  TokenCursor tokens(doc, op);
  for (const c10::Argument& argument : schema.arguments()) {
    ArgPlan plan;
    if (tokens.done() && argument.default_value()) {  // an argument that a newer LibTorch has added
      plan.constant = *argument.default_value();
      plans.push_back(std::move(plan));
      continue;
    }
    try {
      plan_value(doc, tokens, argument, plan);
    } catch (const std::exception& e) {
      throw std::runtime_error("argument " + argument.name() + ": " + e.what());
    }
    const bool mutated = argument.alias_info() && argument.alias_info()->isWrite();
    const ArgumentUse use =
        argument_use(op.name, {argument.name(), plans.size(), mutated, argument.is_out()});
    plan.written = use.written;
    plan.read = use.read;
    plan.pinned = keeps_recorded_dtype(op.name, argument.name());
    plans.push_back(std::move(plan));
  }
  if (!tokens.done())
    throw std::runtime_error("it was recorded with more arguments than the operator has here");
  return plans;
}

}  // namespace nanquest::trace
