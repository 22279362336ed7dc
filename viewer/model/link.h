/// Link: a place in a run, and Span: a stretch of a text that links to one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "probe/snapshot/model.h"
#include "viewer/model/statistic.h"

namespace nanquest::viewer {

struct Link {
  enum class Kind : std::uint8_t { op, layer, step, sample, tensor, place };
  Kind kind = Kind::op;
  std::int64_t number = kNone;         ///< of the op, step or sample
  std::string name;                    ///< of the layer or place; path of the tensor
  std::optional<Statistic> statistic;  ///< of the layer, if the words name one
  bool operator==(const Link&) const = default;

  static Link to_op(std::int64_t row) { return {Kind::op, row, "", {}}; }
  static Link to_layer(std::string name, std::optional<Statistic> statistic = {}) {
    return {Kind::layer, kNone, std::move(name), statistic};
  }
  static Link to_step(std::int64_t step) { return {Kind::step, step, "", {}}; }
  /// `path` of the tensor in which samples are seen.
  static Link to_sample(std::int64_t sample, std::string path) {
    return {Kind::sample, sample, std::move(path), {}};
  }
  /// Of a program whose ranges are on record: "aten::bmm in blocks.3.attention (forward, float16)".
  static Link to_place(std::string place) { return {Kind::place, kNone, std::move(place), {}}; }
  static Link to_tensor(std::string path) { return {Kind::tensor, kNone, std::move(path), {}}; }
};

/// "op", "layer", "step", "sample", "tensor", "place".
const char* kind_name(Link::Kind kind);

/// A stretch of a text, and the target of its link.
struct Span {
  std::string text;
  std::optional<Link> link;
};

}  // namespace nanquest::viewer
