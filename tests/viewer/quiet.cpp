// The tests open damaged files; libhdf5 would tell of them when the process ends.
#include "probe/snapshot/version.h"

namespace {

const bool quiet = (nanquest::quiet_hdf5(), true);

}  // namespace
