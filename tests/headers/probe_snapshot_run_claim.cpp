#include "probe/snapshot/run_claim.h"

using namespace nanquest;

void say(const std::string& words);
void claim_a_run();

void claim_a_run() {
#include "examples/probe_snapshot_run_claim.inc"
}
