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

}  // namespace nanquest::standing
