// Operators of a library that the process which replays doesn't have: two outputs with a derivative, and one
// that writes its argument and returns nothing.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

namespace {

std::tuple<at::Tensor, at::Tensor> split_sign(const at::Tensor& x) {
  const at::Tensor source = x.contiguous();
  at::Tensor low = at::empty_like(source), high = at::empty_like(source);
  const float* from = source.const_data_ptr<float>();
  for (std::int64_t i = 0; i < source.numel(); ++i) {
    low.data_ptr<float>()[i] = from[i] < 0 ? from[i] : 0;
    high.data_ptr<float>()[i] = from[i] < 0 ? 0 : from[i];
  }
  return {low, high};
}

void count(const at::Tensor& counter, const at::Tensor& x) {
  *counter.data_ptr<float>() += static_cast<float>(x.numel());
}

class SplitSign : public torch::autograd::Function<SplitSign> {
 public:
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context,
                                                const at::Tensor& x) {
    context->save_for_backward({x});
    const at::AutoDispatchBelowAutograd below;
    static const auto op = c10::Dispatcher::singleton()
                               .findSchemaOrThrow("nanquest_test_cpp::split_sign", "")
                               .typed<std::tuple<at::Tensor, at::Tensor>(const at::Tensor&)>();
    const auto [low, high] = op.call(x);
    return {low, high};
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const at::Tensor x = context->get_saved_variables()[0];
    return {at::where(x < 0, gradients[0], gradients[1])};
  }
};

std::tuple<at::Tensor, at::Tensor> split_sign_with_derivative(const at::Tensor& x) {
  const auto both = SplitSign::apply(x);
  return {both[0], both[1]};
}

}  // namespace

TORCH_LIBRARY(nanquest_test_cpp, m) {
  m.def("split_sign(Tensor x) -> (Tensor, Tensor)");
  m.def("count_(Tensor(a!) counter, Tensor x) -> ()");
}
TORCH_LIBRARY_IMPL(nanquest_test_cpp, CPU, m) {
  m.impl("split_sign", &split_sign);
  m.impl("count_", &count);
}
TORCH_LIBRARY_IMPL(nanquest_test_cpp, Autograd, m) {
  m.impl("split_sign", &split_sign_with_derivative);
}
