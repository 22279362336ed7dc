#include "replay/diff/others.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <iterator>

#include "probe/trace/collectives.h"

namespace nanquest::diff {

bool is_from_others(const Steps& steps, const OpPair& pair) {
  return is_collective(steps.graph_a.op(pair.a).name);
}

void put_in_results_of_others(const Steps& steps, const std::vector<OpPair>& pairs, Edits& edits) {
  std::vector<OpPair> collectives;
  std::copy_if(pairs.begin(), pairs.end(), std::back_inserter(collectives),
               [&](const OpPair& pair) { return is_from_others(steps, pair); });
  RunOptions as_recorded;
  as_recorded.precision = steps.precision;
  as_recorded.scan = false;
  const auto keep = [&](const OpPair& pair, const std::vector<at::Tensor>&,
                        const std::vector<at::Tensor>& b) {
    std::vector<at::Tensor> values;
    values.reserve(b.size());
    for (const at::Tensor& t : b) values.push_back(t.defined() ? t.detach().clone() : t);
    edits.written(pair.a, std::move(values));
  };
  (void)lockstep({&steps.a, &as_recorded}, {&steps.b, &as_recorded}, collectives, keep);
}

}  // namespace nanquest::diff
