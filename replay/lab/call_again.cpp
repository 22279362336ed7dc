#include "replay/lab/call_again.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "probe/observe/draws.h"
#include "probe/observe/op_traits.h"
#include "probe/trace/births.h"

namespace nanquest {
namespace {

/// One call's argument of an op on lists, as the list of one that its schema asks for.
c10::IValue as_declared(const c10::Argument& declared, const c10::IValue& value) {
  const auto list = declared.type()->cast<c10::ListType>();
  if (!list || value.isList() || value.isNone()) return value;
  c10::impl::GenericList one(list->getElementType());
  one.push_back(value);
  return one;
}

bool may_be_called(const OpTraits& op, const std::vector<c10::IValue>& arguments) {
  return !op.uninitialised && !op.opaque && !op.collective &&
         !draws(op, c10::ArrayRef<const c10::IValue>(arguments.data(), arguments.size()));
}

}  // namespace

c10::IValue copy_of(const c10::IValue& value) {
  if (value.isTensor())
    return value.toTensor().defined() ? c10::IValue(value.toTensor().detach().clone()) : value;
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& t : value.toTensorVector()) list.push_back(t.defined() ? t.detach().clone() : t);
    return list;
  }
  return value;
}

CallAgain::CallAgain(const OpRow& op, std::vector<c10::IValue> arguments) {
  if (!follows_from_inputs(op.flags)) return;
  const auto handle = c10::Dispatcher::singleton().findOp({op.name, op.overload});
  if (!handle || handle->schema().arguments().size() != arguments.size()) return;
  const OpTraits& traits = traits_of(*handle);
  if (!may_be_called(traits, arguments)) return;
  written_ = traits.argument_written;
  arguments_ = std::move(arguments);
  for (std::size_t i = 0; i < arguments_.size(); ++i)
    arguments_[i] = as_declared(handle->schema().arguments()[i], arguments_[i]);
  handle_ = handle;
}

std::optional<at::ScalarType> CallAgain::one_up() const {
  return handle_ ? FormatsUsed(handle_->schema(), arguments_).one_up() : std::nullopt;
}

std::optional<OpResults> CallAgain::as_it_was() const {
  if (!handle_) return std::nullopt;
  try {
    std::vector<c10::IValue> copies(arguments_.size());
    std::transform(arguments_.begin(), arguments_.end(), copies.begin(), copy_of);
    return run(std::move(copies));
  } catch (const std::exception&) {
    return std::nullopt;  // no memory for the copies
  }
}

std::optional<OpResults> CallAgain::in(at::ScalarType type, const Instead& instead) const {
  if (!handle_) return std::nullopt;
  try {
    return run(raised(handle_->schema(), written_, arguments_, type, instead));
  } catch (const std::exception&) {
    return std::nullopt;  // an argument has no counterpart in this format
  }
}

CallAgain CallAgain::raised_to(at::ScalarType type) const {
  CallAgain other = *this;
  if (!handle_) return other;
  try {
    other.arguments_ = raised(handle_->schema(), written_, arguments_, type);
  } catch (const std::exception&) {
    other.handle_.reset();
  }
  return other;
}

std::optional<OpResults> CallAgain::run(std::vector<c10::IValue> arguments) const {
  auto results = run_raised(*handle_, written_, std::move(arguments));
  if (!results) return results;
  // A view of an argument is the caller's memory.
  for (auto* tensors : {&results->returned, &results->written})
    for (at::Tensor& t : *tensors) t = t.defined() ? t.detach().clone() : t;
  return results;
}

std::vector<at::Tensor> told_by(std::optional<OpResults> results) {
  if (!results) return {};
  return std::move(results->returned.empty() ? results->written : results->returned);
}

bool can_be_moved(const at::Tensor& t) {
  return t.defined() && t.scalar_type() == at::kDouble && t.numel() > 0 &&
         !t.unsafeGetTensorImpl()->is_wrapped_number();
}

}  // namespace nanquest
