/// Owner: what of the program holds some memory, as its language tells. Of a tensor that is no weight, buffer
/// or state that the session knows by name.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>

namespace nanquest::attach {

struct Owner {
  enum class Kind : std::uint8_t {
    nobody,    ///< memory that something else than the program keeps for itself
    gradient,  ///< of some parameter
    model,     ///< a parameter or buffer of a module
    variable,  ///< something else that has a name, or none
  };
  Kind kind = Kind::nobody;
  std::string name = {};  ///< "shadow.0.running_var", "average[0.weight]"
};

/// Finds the owner of this storage's memory. May take as long as a look at all objects of the program.
using FindOwner = std::function<Owner(const c10::Storage& memory)>;

}  // namespace nanquest::attach
