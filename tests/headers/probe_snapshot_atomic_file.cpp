#include "probe/snapshot/atomic_file.h"

using namespace nanquest;

void write(const std::string& text);

void write(const std::string& text) {
#include "examples/probe_snapshot_atomic_file.inc"
}
