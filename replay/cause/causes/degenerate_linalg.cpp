// DEGENERATE_LINALG: a decomposition or an inverse of a singular matrix, or of one with repeated eigenvalues.
// Told by the op's name; its proof is not written yet.
#include "replay/cause/cause.h"

namespace nanquest {
namespace {

bool resembles(const Case& c, const Subject&) {
  const std::string name = c.op() ? plain_name(*c.op()) : "";
  return name.starts_with("linalg_") && name != "linalg_vector_norm";
}

}  // namespace

NANQUEST_CAUSE(degenerate_linalg) = {
    .label = Label::degenerate_linalg,
    .yields_to = {Label::norm_overflow},
    .resembles = resembles,
};

}  // namespace nanquest
