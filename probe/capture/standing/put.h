/// What an op was given, put down as words (words.h).
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>

#include "probe/capture/standing/slots.h"
#include "probe/capture/standing/words.h"

namespace nanquest::standing {

Header header_of(ArgKind kind, std::int64_t number = 0);

/// A tensor as a token; `slot` SlotIndex::kMissing if it can't be recorded. `more`: kHostWriteBefore,
/// kNewMemory.
void put_tensor(Words& words, const at::Tensor& tensor, std::uint32_t slot, std::uint8_t more);

/// Everything but tensors, lists and tuples; false for something that can't be rebuilt.
bool put_scalar(Words& words, const c10::IValue& value);

/// Calls `f` with every tensor inside `value`, undefined ones included. Allocates nothing.
template <class F>
void each_tensor(const c10::IValue& value, F&& f) {
  if (value.isTensor()) {
    f(value.toTensor());
  } else if (value.isTensorList() || value.isList()) {
    const bool optional = value.isOptionalTensorList();
    for (const c10::IValue& element : value.toListRef())
      if (!(optional && element.isNone())) each_tensor(element, f);
  } else if (value.isTuple()) {
    for (const c10::IValue& element : value.toTupleRef().elements()) each_tensor(element, f);
  }
}

}  // namespace nanquest::standing
