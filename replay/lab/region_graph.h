/// region_graph: the graph that torch.compile compiled, run operator by operator, without Python.
///
///     const auto graph = RegionGraph::parse(text);        // a file's "regions/000003"
///     std::vector<at::Tensor> outputs = graph->run(inputs, sizes, [](const RegionNode& node) { … });
///
/// The text is JSON, written by region_graph.py of the Python package, whose head describes the form. It is
/// not trusted: operators that reach outside of tensors are refused, and whatever else is wrong with it is an
/// error.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "probe/base/result.h"

namespace nanquest {

/// One operator of a graph.
struct RegionNode {
  std::int64_t number = 0;   ///< in the order of the graph
  std::string op, overload;  ///< "aten::add", "Tensor"
  std::string module;        ///< path below what was compiled, "" for itself or unknown
  std::string module_type;   ///< "Linear", "" if unknown
  std::int32_t stack = -1;   ///< of RegionGraph::stacks; -1: unknown
  bool derivative = false;   ///< part of the derivative of another operator, which is not named
};

class RegionGraph {
 public:
  /// `bad_file` with the reason if the text is no such graph, or says itself why it could not be written.
  static Result<RegionGraph> parse(const std::string& text);
  RegionGraph(RegionGraph&&) noexcept;
  RegionGraph& operator=(RegionGraph&&) noexcept;
  ~RegionGraph();

  const std::vector<RegionNode>& nodes() const;
  /// Stacks of the nodes, frames innermost first: "file:line function".
  const std::vector<std::vector<std::string>>& stacks() const;
  /// Some random numbers were drawn in kernels, where they can't be drawn again: a run has other numbers.
  bool draws() const;

  /// Runs it on `tensors` (which it may write, as the region did) and `sizes`, the inputs that are numbers,
  /// each in order. `before` is called for each operator before it runs. Returns one tensor per output,
  /// undefined if it is none or a number. `stood_in` gets the names of operators whose own kernel is not here
  /// and which were computed in another way. Throws what ATen throws, and std::runtime_error for a graph that
  /// doesn't fit.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& tensors, const std::vector<std::int64_t>& sizes,
                              const std::function<void(const RegionNode&)>& before,
                              std::set<std::string>* stood_in = nullptr) const;

 private:
  struct Impl;
  explicit RegionGraph(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace nanquest
