/// semantics: elementwise ops as functions of real numbers. One table for all causes: which arguments an op
/// calculates with, where it has no value, where it has poles, how large its result is.
///
/// The functions are the mathematics in fp64, not a format's: tests/replay/diagnose/semantics_test.cpp
/// compares each with PyTorch's own fp64 kernels on a grid. Names are plain names (plain_name), so that the
/// in-place and the _foreach_ forms share an entry.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "replay/case/case.h"

namespace nanquest {

/// The kind of a pole: that of a logarithm, that of a quotient, or the open end of a domain.
enum class Pole : std::uint8_t { none, logarithm, quotient, boundary };

/// The operands of an op, fp64 and of one shape; an optional argument that was not given is undefined.
using Operands = std::span<const at::Tensor>;

struct OpSemantics {
  std::string_view op;
  std::vector<std::string_view> operands;  ///< names in the schema, the ones calculated with
  std::string_view argument;               ///< the operand that the domain, the pole or the growth is about
  Pole pole_kind = Pole::none;
  std::string_view domain = {};     ///< in words: "x >= 0"
  std::string_view pole_text = {};  ///< in words: "exactly 0"
  /// True where the op has no (real) value: PyTorch gives NaN. Null: it has one everywhere.
  at::Tensor (*outside)(Operands) = nullptr;
  /// True at the poles: PyTorch gives an infinity, or NaN for 0 / 0. Null: there are none.
  at::Tensor (*pole)(Operands) = nullptr;
  /// log2 |result|, to a fraction of a bit where it is large. Null: never larger than its inputs.
  at::Tensor (*log2_size)(Operands) = nullptr;
  /// True where the result grows exponentially in an operand. Null: nowhere.
  at::Tensor (*exponential)(Operands) = nullptr;
  /// An interval of `argument` in which value and derivative are moderate, for a format whose spacing at 1 is
  /// `eps` and whose largest number is 2^`bits`. NaN: no bound on that side.
  std::pair<double, double> (*safe)(double eps, double bits) = nullptr;
};

/// Every entry, by name.
std::span<const OpSemantics> all_semantics();
/// The entry of an op by its plain name; null if the table doesn't have it.
const OpSemantics* semantics_of(std::string_view plain_name);

/// One call of such an op, element by element.
struct Elements {
  const OpSemantics* semantics = nullptr;
  std::vector<at::Tensor> operands;  ///< as in `semantics->operands`, fp64, in the output's shape
  at::Tensor output;                 ///< as recorded
  at::Tensor born;  ///< bad elements that the op made: NaN where no operand was NaN, Inf where all were
                    ///< finite

  at::Tensor outside() const;      ///< where the op has no value; false throughout if that is nowhere
  at::Tensor at_pole() const;      ///< where it is at a pole
  at::Tensor beyond() const;       ///< where the result is larger than the output's format can represent
  at::Tensor exponential() const;  ///< where it grows exponentially
  /// The operand that `semantics->argument` names.
  const at::Tensor& argument() const;
};

/// The call of `op` from a Case; nothing if the op is not in the table, or not on floating tensors, or did
/// not run.
std::optional<Elements> elements_of(const Case& c, std::int32_t op);

/// The culprit's elements, if it divides and all bad ones that it made have an exact zero as divisor.
std::optional<Elements> over_zero(const Case& c);
/// Of the bad elements of a division those whose numerator is zero too; nothing if the op has no numerator.
std::optional<std::int64_t> zero_over_zero(const Elements& e);

/// The operand `name` of `op`, also if the foreach form names it differently: fp64, a number as a tensor
/// without dimensions; undefined if there is none.
at::Tensor operand(const Case& c, std::int32_t op, std::string_view name);
/// The name of that operand in this op ("other", but "scalar" in a foreach form).
std::string_view operand_name(const OpRow& op, std::string_view name);

/// The bounds of `semantics.safe` for a tensor of this format.
std::pair<double, double> safe_interval(const OpSemantics& semantics, const at::Tensor& like);

}  // namespace nanquest
