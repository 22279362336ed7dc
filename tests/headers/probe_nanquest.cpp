#include "probe/nanquest.h"

#include <torch/ordered_dict.h>

#include <iostream>
#include <memory>

#include <ATen/ATen.h>

/// Parts of a loop: a model like torch::nn's, a loss, an optimizer.
struct Model {
  torch::OrderedDict<std::string, at::Tensor> named_parameters();
  torch::OrderedDict<std::string, at::Tensor> named_buffers();
};
struct Optimizer {
  void step();
};
at::Tensor loss_of(const std::shared_ptr<Model>& model, const at::Tensor& x, const at::Tensor& y);
void scale_gradients(double factor);
void train(std::shared_ptr<Model> model, Optimizer optimizer, at::Tensor x, at::Tensor y, double lr, std::int64_t steps);

void train(std::shared_ptr<Model> model, Optimizer optimizer, at::Tensor x, at::Tensor y, double lr, std::int64_t steps) {
#include "examples/probe_nanquest.inc"
}
