#include "probe/base/check.h"

#include <vector>

void look_at(const std::vector<int>& rows, std::size_t row);

void look_at(const std::vector<int>& rows, std::size_t row) {
#include "examples/probe_base_check.inc"
}
