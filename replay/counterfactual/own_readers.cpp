#include "replay/counterfactual/own_readers.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>

#include "probe/trace/extent.h"
#include "probe/trace/regions.h"
#include "replay/case/derivative.h"

namespace nanquest {
namespace {

/// `op`, and the ops of its derivative.
std::vector<std::int32_t> own_readers(const Case& c, std::int32_t op) {
  std::vector<std::int32_t> found = {op};
  std::set<std::int32_t> own = {op};
  for (std::int32_t i = op + 1; i < static_cast<std::int32_t>(c.doc().ops.size()); ++i) {
    const OpRow& row = *c.row(i);
    if (row.phase != Phase::backward && row.node != kCompiledDerivative) continue;
    const std::int32_t differentiated = c.forward_of(i);
    const bool known = differentiated != kNone && !is_written_by_hand(row);
    if (known && !own.contains(differentiated)) continue;
    if (known) own.insert(i);
    found.push_back(i);
  }
  return found;
}

/// The op overwrites this argument: nothing else reads what it read.
bool overwrites(const Case& c, std::int32_t op, TensorId row) {
  const auto written = c.graph().written(OpId{op});
  return std::any_of(written.begin(), written.end(),
                     [&](TensorId other) { return other && c.graph().slot(other) == c.graph().slot(row); });
}

/// An argument as the op under trial reads it.
struct Read {
  const ReadInstead* what;
  TensorId row;
};

std::vector<Read> reads_of(const Case& c, std::int32_t op, const std::vector<ReadInstead>& what) {
  std::vector<Read> found;
  for (const Case::TensorArgument& a : c.tensor_arguments(op))
    for (const ReadInstead& w : what)
      if (static_cast<std::size_t>(a.position) == w.position && c.graph().slot(TensorId{a.tensor}))
        found.push_back({&w, TensorId{a.tensor}});
  return found;
}

/// `row`, read by `at`, holds what `op` read.
bool is_same(const Case& c, std::int32_t op, const Read& read, std::int32_t at, TensorId row) {
  const TraceGraph& graph = c.graph();
  if (graph.slot(row) != graph.slot(read.row)) return false;
  if (read.what->of_this_view && !same_view(graph.tensor(row), graph.tensor(read.row))) return false;
  return c.producer(row.row(), at) == c.producer(read.row.row(), op);
}

void put(c10::IValue& argument, const ReadInstead& what, bool in_place) {
  const auto instead = [&](const at::Tensor& t) {
    if (!t.defined()) return t;
    at::Tensor value = what.value(t);
    if (!in_place) return value;
    t.copy_(value);
    return t;
  };
  if (argument.isTensor()) {
    argument = instead(argument.toTensor());
  } else if (argument.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& t : argument.toTensorVector()) list.push_back(instead(t));
    argument = list;
  }
}

}  // namespace

bool others_read(const Case& c, std::int32_t op, std::size_t position) {
  const std::vector<ReadInstead> what = {{position, {}, false}};
  const std::vector<std::int32_t> own = own_readers(c, op);
  for (const Read& read : reads_of(c, op, what))
    for (const TraceGraph::Read& other : c.graph().reads(c.graph().slot(read.row)))
      if (std::find(own.begin(), own.end(), other.op.row()) == own.end() &&
          is_same(c, op, read, other.op.row(), other.row))
        return true;
  return false;
}

RunOptions reading_instead(const Case& c, std::int32_t op, const std::vector<ReadInstead>& what) {
  struct Here {
    std::size_t position;
    ReadInstead what;
    bool in_place;
  };
  RunOptions options;
  const std::vector<Read> reads = reads_of(c, op, what);
  for (const std::int32_t at : own_readers(c, op)) {
    std::vector<Here> here;
    if (at == op)  // also where the argument is no tensor of the trace
      for (const ReadInstead& w : what)
        here.push_back({w.position, w, std::any_of(reads.begin(), reads.end(), [&](const Read& r) {
                          return r.what == &w && overwrites(c, op, r.row);
                        })});
    else
      for (const Case::TensorArgument& a : c.tensor_arguments(at))
        for (const Read& r : reads)
          if (is_same(c, op, r, at, TensorId{a.tensor})) {
            here.push_back({static_cast<std::size_t>(a.position), *r.what, false});
            break;
          }
    if (here.empty()) continue;
    options.edit.op_edit[at] = [here](std::vector<c10::IValue>& stack) {
      for (const Here& h : here)
        if (h.position < stack.size()) put(stack[h.position], h.what, h.in_place);
      return false;
    };
  }
  return options;
}

}  // namespace nanquest
