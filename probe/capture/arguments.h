/// Arguments of an op as flat tokens (SnapshotDoc::args), in schema order, depth first.
#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <string_view>
#include <vector>

#include "probe/snapshot/model.h"

namespace nanquest {

/// Appends the tokens of `value` to `out`. `on_tensor` gives the tensor-table row of each tensor met
/// (undefined ones included), in token order.
void flatten_argument(const c10::IValue& value, std::vector<ArgRow>& out,
                      const std::function<std::int32_t(const at::Tensor&)>& on_tensor);

/// The text's one place in memory, for ever. Thread-safe; allocates when it is seen for the first time only.
const char* kept_text(std::string_view text);

/// What a list holds, as the tokens say it: "Tensor", "Tensor?", "int", … Lives for ever, equal types are the
/// same pointer.
const char* element_type(const c10::IValue& list);

/// The token's word for a tuple, in the place of an element type.
extern const char* const kTupleType;

}  // namespace nanquest
