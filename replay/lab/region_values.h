/// region_values: arguments of a compiled region's operators, from JSON to what the operator's schema wants.
/// Used by region_graph only.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace nanquest::region {

using Json = nlohmann::json;

/// The results of a node: several values for an operator that returns several.
using Results = std::vector<c10::IValue>;

/// The value that {"value": 7} or {"value": 7, "item": 1} names. Throws if there is none.
const c10::IValue& referred(const Json& j, const std::vector<Results>& values);
/// True for such a reference.
bool is_reference(const Json& j);

/// The argument as its schema wants it. Throws std::runtime_error if it can't be.
c10::IValue argument(const Json& j, const c10::Argument& wanted, const std::vector<Results>& values);

/// The number format of this name ("float16"). Throws if there is none.
at::ScalarType type_named(const std::string& name);

/// Arithmetic on sizes: "add", "mul", "floordiv", … Throws for another word.
c10::IValue arithmetic(const std::string& word, const Json& arguments, const std::vector<Results>& values);

/// A small tensor that is written into the graph; `here` if it was on a device.
at::Tensor constant(const Json& j, c10::Device here);

}  // namespace nanquest::region
