/// TokenPair: the arguments of an op in two steps, token by token.
#pragma once

#include <c10/core/ScalarType.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>

#include "probe/record/words.h"

namespace nanquest::record {

/// Reads the arguments of one op of two steps side by side.
class TokenPair {
 public:
  TokenPair(const Words& a, std::uint32_t first_a, const Words& b, std::uint32_t first_b)
      : a_(a.at(first_a)), b_(b.at(first_b)) {}

  /// The next token of both if they are alike. A tensor may lie in another part of its storage.
  struct Token {
    Header header;
    std::int64_t shift = 0;  ///< bytes, from the first step's part to the second's
  };
  std::optional<Token> next(bool numbers_may_differ, bool slots_may_differ = false) {
    const Header a = a_.header();
    Header b = b_.header();
    if (slots_may_differ && a.kind == ArgKind::tensor && b.kind == ArgKind::tensor &&
        a.slot_known() == b.slot_known())
      b.number = a.number;
    const bool same = std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
    const bool flips = a.kind == ArgKind::boolean && b.kind == ArgKind::boolean && numbers_may_differ;
    if (!same && !flips) return std::nullopt;
    Token token{a};
    switch (a.kind) {
      case ArgKind::tensor: {
        if (a.flags & kTensorUndefined) break;
        const bool sized = !(a.flags & kTensorOpaque);
        if (sized)
          token.shift =
              (b_.value<std::int64_t>() - a_.value<std::int64_t>()) *
              static_cast<std::int64_t>(c10::elementSize(static_cast<at::ScalarType>(a.scalar_type)));
        const std::size_t numbers = (sized ? 2u : 1u) * a.dim;
        if (!equal(a_.numbers(numbers), b_.numbers(numbers), numbers)) return std::nullopt;
        break;
      }
      case ArgKind::integer:
      case ArgKind::real:
        if (!word() && !numbers_may_differ) return std::nullopt;
        break;
      case ArgKind::complex: {
        const bool real = word(), imaginary = word();
        if (!(real && imaginary) && !numbers_may_differ) return std::nullopt;
        break;
      }
      case ArgKind::string: {
        const auto length = static_cast<std::size_t>(a.number);
        if (std::memcmp(a_.text(length), b_.text(length), length) != 0) return std::nullopt;
        break;
      }
      case ArgKind::list:
      case ArgKind::opaque:
        if (!word()) return std::nullopt;
        break;
      case ArgKind::none:
      case ArgKind::boolean:
      case ArgKind::device:
      case ArgKind::generator:
        break;
    }
    return token;
  }

 private:
  bool word() { return a_.value<std::uint64_t>() == b_.value<std::uint64_t>(); }
  static bool equal(const std::int64_t* a, const std::int64_t* b, std::size_t count) {
    return count == 0 || std::memcmp(a, b, count * sizeof *a) == 0;
  }
  Reader a_, b_;
};

}  // namespace nanquest::record
