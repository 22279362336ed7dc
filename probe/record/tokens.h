/// An op's arguments and results, written as words (words.h) and read back.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string_view>

#include "probe/record/slots.h"
#include "probe/record/words.h"

namespace nanquest::record {

Header header_of(ArgKind kind, std::int64_t number = 0);

/// A tensor as a token; `slot` is SlotIndex::kMissing if it can't be recorded. `more`: kHostWriteBefore,
/// kNewMemory.
void put_tensor(Words& words, const at::Tensor& tensor, std::uint32_t slot, std::uint8_t more);

/// The tensor described by the token at `token`, as a view of `flat`, a 1-D tensor of its type. Undefined if
/// it doesn't fit, or if `flat` is undefined.
at::Tensor view_at(const std::uint64_t* token, const at::Tensor& flat);

/// Calls `tensor` with the index (of the header) of every tensor among `count` tokens from `at` on.
template <class F>
void each_tensor_token(const std::uint64_t* at, std::uint32_t count, F&& tensor) {
  Reader reader(at);
  for (; count > 0; --count) {
    const std::uint64_t* const place = reader.place();
    const Header header = reader.header();
    switch (header.kind) {
      case ArgKind::tensor:
        tensor(place, header);
        (void)reader.numbers(words_after(header));
        break;
      case ArgKind::integer:
      case ArgKind::real:
      case ArgKind::list:
      case ArgKind::opaque:
        (void)reader.numbers(1);
        break;
      case ArgKind::complex:
        (void)reader.numbers(2);
        break;
      case ArgKind::string:
        (void)reader.text(static_cast<std::size_t>(header.number));
        break;
      case ArgKind::none:
      case ArgKind::boolean:
      case ArgKind::device:
      case ArgKind::generator:
        break;
    }
  }
}

/// Writes everything but tensors, lists and tuples; false for a value that can't be rebuilt.
bool put_scalar(Words& words, const c10::IValue& value);

/// The text's one address in memory, valid for ever. Thread-safe; allocates only for a new text.
const char* kept_text(std::string_view text);

/// The element type of a list, as tokens write it: "Tensor", "Tensor?", "int", … Valid for ever; equal types
/// are the same pointer.
const char* element_type(const c10::IValue& list);

/// The token's word for a tuple, in place of an element type.
extern const char* const kTupleType;

}  // namespace nanquest::record
