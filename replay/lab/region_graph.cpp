#include "replay/lab/region_graph.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "replay/lab/region_elsewhere.h"
#include "replay/lab/region_operators.h"
#include "replay/lab/region_values.h"
#include "replay/trace/operators.h"

namespace nanquest {

using region::Json;
using region::Results;

struct RegionGraph::Impl {
  std::vector<bool> inputs;  ///< true: a tensor
  std::vector<RegionNode> nodes;
  std::vector<std::vector<std::string>> stacks;
  std::vector<Json> arguments;  ///< of the nodes
  std::vector<Json> told;       ///< of the nodes: their results if they were on a device; otherwise null
  std::vector<Json> outputs;
  std::vector<std::size_t> last_reader;  ///< of each value: the node after which it is not needed
  bool draws = false;
};

namespace {

constexpr std::size_t kMaxNodes = 1u << 20;
constexpr const char* kSizes = "sizes::";
constexpr const char* kConstant = "constant";

/// Calls `use` with the number of every value that the JSON refers to.
template <class Use>
void each_reference(const Json& j, const Use& use) {
  if (region::is_reference(j)) {
    use(j.at("value").get<std::size_t>());
  } else if (j.is_array()) {
    for (const Json& each : j) each_reference(each, use);
  }
}

RegionNode node_of(const Json& j, const Json& modules, std::size_t stacks, std::int64_t number) {
  RegionNode node;
  node.number = number;
  node.op = j.at("op").get<std::string>();
  node.overload = j.value("overload", "");
  if (j.contains("module")) {
    const Json& module = modules.at(j.at("module").get<std::size_t>());
    node.module = module.at(0).get<std::string>();
    node.module_type = module.at(1).get<std::string>();
  }
  node.derivative = j.value("derivative", false);
  if (j.contains("stack")) node.stack = j.at("stack").get<std::int32_t>();
  if (node.stack < -1 || node.stack >= static_cast<std::int64_t>(stacks))
    throw std::runtime_error("a stack that is not there");
  return node;
}

constexpr int kDeepest = 64;  // depth of lists in lists; real ones go to 8

/// Throws for text that is no JSON, or whose lists are nested so deeply that reading them would overflow the
/// stack.
Json parsed(const std::string& text) {
  return Json::parse(text, [](int depth, Json::parse_event_t, const Json&) {
    if (depth > kDeepest) throw std::runtime_error("its lists are nested too deep");
    return true;
  });
}

Error bad(const std::string& what) {
  return {ErrorCode::bad_file, "the graph of a compiled region: " + what, ""};
}

/// The operator's reference in plain PyTorch, if there is one here. An operator that writes its inputs may
/// have done so before it failed.
std::optional<c10::OperatorHandle> reference_of(const c10::OperatorName& name) {
  auto& dispatcher = c10::Dispatcher::singleton();
  auto found = dispatcher.findSchema({trace::reference_name(name.name), name.overload_name});
  if (found)
    for (const c10::Argument& argument : found->schema().arguments())
      if (argument.alias_info() && argument.alias_info()->isWrite()) return std::nullopt;
  return found;
}

/// The first lines of the exception, without the Python location.
std::string reason(const std::exception& error) {
  const std::string all = error.what();
  return all.substr(0, std::min<std::size_t>(all.find("\n\nAt:"), 300));
}

/// Calls the operator on `stack`. True if its own kernel ran.
bool call_here(const c10::OperatorHandle& op, const Json& told, std::int64_t draw, c10::Device here,
               std::vector<c10::IValue>& stack) {
  const std::vector<c10::IValue> arguments = stack;
  try {
    if (told.is_array() && here.is_cpu()) return region::call_elsewhere(op, told, draw, stack);
    op.callBoxed(stack);
    return true;
  } catch (const std::exception& error) {  // a kernel of a device, written in Python, is there and fails
    const auto reference = reference_of(op.operator_name());
    if (!reference) throw std::runtime_error(op.schema().name() + ": " + reason(error));
    stack = arguments;
    reference->callBoxed(stack);
    return false;
  }
}

/// The operator's results, one value each. Results on a device are put `here`; `told` describes them.
Results called(const RegionNode& node, const Json& arguments, const Json& told,
               const std::vector<Results>& values, c10::Device here, std::set<std::string>* stood_in) {
  const std::string name = node.overload.empty() ? node.op : node.op + "." + node.overload;
  const region::OwnOperator* own = region::own_operator(node.op);
  if (!own && trace::is_refused(node.op, node.overload))
    throw std::runtime_error(name + " is never run from a file");
  // What the region kept for its backward may have other strides than when its graph was traced.
  const bool view = node.op == "aten::view" && node.overload.empty();
  const c10::OperatorName called{view ? "aten::reshape" : node.op, node.overload};
  auto handle = own ? std::nullopt : c10::Dispatcher::singleton().findSchema(called);
  const bool missing = !own && !handle;
  if (missing) handle = reference_of(called);
  if (!own && !handle)
    throw std::runtime_error("there is no operator " + name +
                             " here: if it is of a library, --load it; one written in Python runs with "
                             "nanquest replay --import MODULE");
  const auto& wanted = (own ? own->schema : handle->schema()).arguments();
  if (arguments.size() != wanted.size()) throw std::runtime_error(name + " has other arguments here");
  std::vector<c10::IValue> stack;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    stack.push_back(region::argument(arguments[i], wanted[i], values));
    if (stack.back().isDevice() && !stack.back().toDevice().is_cpu()) stack.back() = here;
  }
  if (own) return own->run(stack);
  const bool own_kernel = call_here(*handle, told, node.number, here, stack);
  if (stood_in && (missing || !own_kernel)) stood_in->insert(node.op);
  // Several results of one operator are a list, as for operators that return several.
  if (stack.size() == 1 && stack[0].isTensorList()) {
    Results results;
    for (const at::Tensor& t : stack[0].toTensorVector()) results.emplace_back(t);
    return results;
  }
  return stack;
}

}  // namespace

RegionGraph::RegionGraph(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RegionGraph::RegionGraph(RegionGraph&&) noexcept = default;
RegionGraph& RegionGraph::operator=(RegionGraph&&) noexcept = default;
RegionGraph::~RegionGraph() = default;

Result<RegionGraph> RegionGraph::parse(const std::string& text) {
  try {
    const Json j = parsed(text);
    if (j.contains("refused")) return bad(j.at("refused").get<std::string>());
    auto impl = std::make_unique<Impl>();
    for (const Json& input : j.at("inputs")) impl->inputs.push_back(input.get<std::string>() == "tensor");
    const Json& nodes = j.at("nodes");
    if (nodes.size() > kMaxNodes) return bad("it has more than a million operators");
    impl->stacks = j.at("stacks").get<std::vector<std::vector<std::string>>>();
    impl->last_reader.assign(impl->inputs.size() + nodes.size(), 0);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      impl->nodes.push_back(
          node_of(nodes[i], j.at("modules"), impl->stacks.size(), static_cast<std::int64_t>(i)));
      impl->arguments.push_back(nodes[i].at("arguments"));
      impl->told.push_back(nodes[i].value("results", Json()));
      each_reference(impl->arguments.back(), [&](std::size_t value) {
        if (value >= impl->inputs.size() + i) throw std::runtime_error("a value is read before it is made");
        impl->last_reader[value] = i;
      });
    }
    for (const Json& output : j.at("outputs")) {
      impl->outputs.push_back(output);
      each_reference(output, [&](std::size_t value) { impl->last_reader.at(value) = nodes.size(); });
    }
    impl->draws = j.at("draws").get<bool>();
    return RegionGraph(std::move(impl));
  } catch (const std::exception& e) {
    return bad(std::string(e.what()).substr(0, 200));
  }
}

const std::vector<RegionNode>& RegionGraph::nodes() const {
  return impl_->nodes;
}

const std::vector<std::vector<std::string>>& RegionGraph::stacks() const {
  return impl_->stacks;
}

bool RegionGraph::draws() const {
  return impl_->draws;
}

std::vector<at::Tensor> RegionGraph::run(const std::vector<at::Tensor>& tensors,
                                         const std::vector<std::int64_t>& sizes,
                                         const std::function<void(const RegionNode&)>& before,
                                         std::set<std::string>* stood_in) const {
  const c10::NoGradGuard no_gradients;
  std::vector<Results> values;
  const c10::Device here = tensors.empty() ? c10::Device(c10::kCPU) : tensors.front().device();
  std::size_t next_tensor = 0, next_size = 0;
  for (const bool is_tensor : impl_->inputs) {
    if (is_tensor ? next_tensor >= tensors.size() : next_size >= sizes.size())
      throw std::runtime_error("the region was called with fewer inputs than its graph has");
    values.push_back({is_tensor ? c10::IValue(tensors[next_tensor++]) : c10::IValue(sizes[next_size++])});
  }
  for (std::size_t i = 0; i < impl_->nodes.size(); ++i) {
    const RegionNode& node = impl_->nodes[i];
    const Json& arguments = impl_->arguments[i];
    before(node);
    if (node.op == kConstant)
      values.push_back({c10::IValue(region::constant(arguments.at(0), here))});
    else if (node.op.starts_with(kSizes))
      values.push_back({region::arithmetic(node.op.substr(std::string(kSizes).size()), arguments, values)});
    else
      values.push_back(called(node, arguments, impl_->told[i], values, here, stood_in));
    each_reference(arguments, [&](std::size_t value) {
      if (impl_->last_reader[value] == i) values[value].clear();
    });
  }
  std::vector<at::Tensor> outputs;
  for (const Json& output : impl_->outputs) {
    const c10::IValue value = output.is_null() ? c10::IValue() : region::referred(output, values);
    outputs.push_back(value.isTensor() ? value.toTensor() : at::Tensor());
  }
  return outputs;
}

}  // namespace nanquest
