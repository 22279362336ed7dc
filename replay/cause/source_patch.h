/// source_patch: a fix that was tried on the step as a patch of the program's own file.
#pragma once

#include <string>
#include <vector>

#include "replay/counterfactual/source_edit.h"

namespace nanquest {

/// One of the two is "".
struct SourcePatch {
  std::string diff;  ///< unified, of one line; for `patch -p0` in the working directory
  std::string none;  ///< why there is no patch, in one sentence
};

/// The patch of the line that `stack` (frames "file:line function", innermost first) names as the program's.
/// Reads that file and writes nothing. None if no frame is the program's, the file is not here or is newer
/// than `snapshot`, or its line does not show the operation.
SourcePatch source_patch(const SourceEdit& edit, const std::vector<std::string>& stack,
                         const std::string& snapshot);

}  // namespace nanquest
