#include "probe/observe/module_scope.h"

#include <ATen/ATen.h>

struct Mlp {
  at::Tensor forward(at::Tensor x);
};

#include "examples/probe_observe_module_scope.inc"
