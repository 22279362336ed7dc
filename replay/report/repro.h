/// repro: only the culprit: one program in Python and one in C++ that run the op on its recorded inputs.
///
/// They print the results and whether they equal the recorded ones bit for bit, then the results in wider
/// formats; Python also sends the gradient through the forward op of a backward op. Both exit with 1 if
/// something is not finite in the op's own format.
#pragma once

#include <string>
#include <vector>

#include "probe/base/result.h"
#include "replay/case/case.h"

namespace nanquest {

/// Files of a repro, ready to be written side by side. Tensors of more than 64 elements are in the
/// .safetensors file, smaller ones inline, all bit for bit and with their strides.
struct Repro {
  std::string title;        ///< "aten::log in loss (forward), op 12 of step 77"
  std::string shows;        ///< "1 Inf": what was recorded, and is reproduced; "no NaN or Inf"
  std::string python, cpp;  ///< the programs
  std::string safetensors;  ///< bytes; empty if every tensor is inline
  std::string stem;         ///< "step-00000131.r0.repro": the programs expect `stem`.safetensors beside them
};

/// Makes the programs for `op`, or (kNone) for the case's culprit. Fails with `usage` if the step has no such
/// op; with `unsupported` if the op can't be run alone, or an argument can't be written as source. For a
/// culprit it also fails if no op made the bad values (data, state), or not this one (a machine's fault):
/// then the message says what did, and the hint what to do.
Result<Repro> make_repro(const Case& c, std::int32_t op, const std::string& stem);

/// Writes stem.py, stem.cpp and, if needed, stem.safetensors into `directory`, which is created if missing;
/// returns the paths.
Result<std::vector<std::string>> write_repro(const Repro& repro, const std::string& directory);

}  // namespace nanquest
