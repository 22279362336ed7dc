/// Search: places of a run by words: modules, layers, tensors, ops, steps, samples.
#pragma once

#include <string>
#include <vector>

#include "viewer/model/links.h"

namespace nanquest::viewer {

struct Hit {
  std::string label;  ///< "55 aten::mm in blocks.3.mlp", "blocks.3.mlp.up", "step 131"
  Link link;
};

/// Places with every word of `words` somewhere in their label or kind (Words), at most `most`, some of each
/// kind: named steps, blamed samples, layers, tensors, ops. One pass over the ops.
std::vector<Hit> search(const Session& session, const std::string& words, std::size_t most = 60);

}  // namespace nanquest::viewer
