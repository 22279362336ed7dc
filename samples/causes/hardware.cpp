// HARDWARE: a bit flips in the result of one matrix product. A faulty kernel simulates the faulty machine: it
// replaces LibTorch's kernel in this process, computes the product and then sets the exponent of one element.
#include <ATen/ops/mm_cpu_dispatch.h>
#include <torch/library.h>

#include <cstdint>
#include <cstring>

#include "samples/causes/incident.h"

namespace {

int calls = 0;

at::Tensor faulty_mm(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor product = at::cpu::mm(a, b);
  if (++calls == 2) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, product.data_ptr<float>() + 3, sizeof bits);
    bits |= 0x7f800000u;
    std::memcpy(product.data_ptr<float>() + 3, &bits, sizeof bits);
  }
  return product;
}

TORCH_LIBRARY_IMPL(aten, CPU, library) {
  library.impl("mm", faulty_mm);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace samples;
  at::manual_seed(18);
  const at::Tensor w1 = parameter(at::randn({12, 16}) * 0.2), w2 = parameter(at::randn({16, 1}) * 0.2);
  const at::Tensor x = at::randn({6, 12}), y = at::randn({6, 1});

  nanquest::StepState state;
  state.step = 41000;
  state.parameters = {{"fc1", w1}, {"fc2", w2}};
  state.batch = {{"x", x}, {"y", y}};
  return record_incident(argc, argv, state, [&] {
    at::Tensor h;
    {
      nanquest::ModuleScope scope("fc1", "Linear");
      h = at::relu(at::mm(x, w1));
    }
    nanquest::ModuleScope scope("fc2", "Linear");
    const at::Tensor loss = (at::mm(h, w2) - y).pow(2).mean();
    loss.backward();
    return loss;
  });
}
