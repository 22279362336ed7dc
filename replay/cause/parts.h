/// parts: a fused op as the plain ops by which PyTorch documents it. Blame ends at a fused op; its parts can
/// be recorded and examined like a step (inside.h).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probe/record/record.h"
#include "replay/case/case.h"

namespace nanquest {

/// One call of a fused op, ready to be run as its parts.
struct Parts {
  NamedTensors given;    ///< its inputs, copied, under the op's own argument names
  NamedTensors results;  ///< its results; written by `run`
  std::function<void()> run;
};

/// True for the plain name of an op that can be split, if its arguments allow it.
bool opens(std::string_view plain_name);

/// The parts of the call that the case is focused on, if its culprit is a fused op that is known here:
/// attention (scaled_dot_product_attention's kernels and their backward, without dropout), Adam, AdamW, SGD
/// and Adagrad in one kernel, norms over layers, groups and batches, weight_norm, products of scaled fp8
/// matrices. Formulas: PyTorch's documentation of scaled_dot_product_attention, torch.optim.AdamW and SGD,
/// weight_norm (v / |v| times g), and its
/// tests of _scaled_mm (payload times scale, multiplied in fp32, bias added, rounded to the output's format);
/// updates are computed in fp32 for 16-bit weights, as the kernels do.
std::optional<Parts> parts_of(const Case& c);

}  // namespace nanquest
