/// Weights from a file into a model: `best` or `final` of an earlier run, or of anybody else.
#pragma once

#include <string>
#include <vector>

#include "probe/base/result.h"
#include "trainer/task/named_tensors.h"

namespace nanquest::trainer {

/// Copies the tensors of the safetensors file `path` into those of `targets` (parameters and buffers, any
/// device, by name), cast to their format. All or nothing: `bad_file` names what is missing, what the model
/// does not have, which shapes differ and which values are not finite. A resumable state gives its weights.
Status load_weights(const std::string& path, const NamedTensors& targets);

/// What is said of a file whose tensors are not those of the model: `wrong` holds one clause for each, and
/// the first few are named.
Error does_not_fit(const std::string& path, const std::vector<std::string>& wrong);

/// "[2, 3]".
std::string shape_text(at::IntArrayRef sizes);

}  // namespace nanquest::trainer
