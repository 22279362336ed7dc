/// repro: the culprit alone: one script in Python and one in C++ that run the op on its recorded inputs.
#pragma once

#include <string>
#include <vector>

#include "probe/base/result.h"
#include "replay/cause/case.h"

namespace nanquest {

/// Files of a repro, ready to be written side by side. Tensors of more than 64 elements lie in the
/// .safetensors file, smaller ones inline, both bit for bit.
struct Repro {
  std::string python, cpp;  ///< the scripts
  std::string safetensors;  ///< bytes; empty if every tensor is inline
  std::string stem;         ///< "step-00000131.r0.repro": the scripts expect `stem`.safetensors beside them
};

/// Makes the scripts for the case's culprit op (or any other). Fails with `unsupported` when an argument
/// can't be written down (a generator, an opaque object), with `usage` if the step has no such op.
Result<Repro> make_repro(const Case& c, std::int32_t op, const std::string& stem);

/// Writes stem.py, stem.cpp and, if needed, stem.safetensors into `directory`, which is made if it is not
/// there; returns the paths.
Result<std::vector<std::string>> write_repro(const Repro& repro, const std::string& directory);

}  // namespace nanquest
