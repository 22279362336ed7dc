#include "probe/tensor/device_ops_cuda.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <vector>

#include "probe/tensor/cuda_module.h"
#include "probe/tensor/tensor_scan.h"
#include "probe/tensor/torch_versions.h"

namespace nanquest {
namespace {

CUstream_st* stream_of(at::Device device) {
  return static_cast<CUstream_st*>(
      native_stream(c10::impl::VirtualGuardImpl(device.type()).getStream(device)));
}

}  // namespace

// NOLINTNEXTLINE(performance-unnecessary-value-param): the operator's own signature
void look_on_cuda(at::TensorList tensors, at::TensorList numbers, at::Tensor found, at::Tensor word) {
  const c10::DeviceGuard here(found.device());
  std::vector<LookTable> tables(1);
  std::uint32_t parts = 0;
  for (const at::Tensor& tensor : tensors) {
    const DType type = *dtype_of(c10::toRealValueType(tensor.scalar_type()));
    const auto count = static_cast<std::uint64_t>(tensor.numel()) * (tensor.is_complex() ? 2 : 1);
    const auto* const data = count > 0 ? tensor.const_data_ptr() : nullptr;
    if (!tables.back().add(type, data, count)) (void)tables.emplace_back().add(type, data, count);
  }
  for (const LookTable& table : tables) parts += table.parts();
  LookNumbers read;
  TORCH_CHECK(numbers.size() <= LookNumbers::kMost, "a look reads at most ", LookNumbers::kMost, " numbers");
  std::vector<at::Tensor> kept;  // of their stream: they may go when their kernels are queued
  for (const at::Tensor& number : numbers) {
    const auto type = dtype_of(number.scalar_type());
    kept.push_back(type && has_gate_loop(*type) ? number : number.to(at::kDouble));
    read.data[read.count] = kept.back().const_data_ptr();
    read.type[read.count++] = *dtype_of(kept.back().scalar_type());
  }
  const auto bytes = static_cast<std::int64_t>(parts * sizeof(LookFound));
  const at::Tensor room = at::empty({bytes}, at::device(found.device()).dtype(at::kByte));
  const Status done =
      (*cuda_kernels())
          ->look(tables, read, static_cast<LookFound*>(room.mutable_data_ptr()),
                 found.mutable_data_ptr<double>(), word.mutable_data_ptr<float>(), stream_of(found.device()));
  TORCH_CHECK(done, done.error().message);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the operator's own signature
void copy_if_on_cuda(at::TensorList to, at::TensorList from, at::Tensor word) {
  const c10::DeviceGuard here(word.device());
  std::vector<CopyTable> tables(1);
  for (std::size_t i = 0; i < to.size(); ++i) {
    void* const target = to[i].data_ptr();
    const void* const source = from[i].const_data_ptr();
    if (!tables.back().add(target, source, to[i].nbytes()))
      (void)tables.emplace_back().add(target, source, to[i].nbytes());
  }
  const Status done =
      (*cuda_kernels())->copy_if(tables, word.const_data_ptr<float>(), stream_of(word.device()));
  TORCH_CHECK(done, done.error().message);
}

}  // namespace nanquest
