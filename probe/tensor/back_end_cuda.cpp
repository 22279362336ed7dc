// The back end of CUDA: ATen's memory and streams, with nanquest's kernel.
#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstring>
#include <vector>

#include "probe/tensor/back_end.h"
#include "probe/tensor/cuda_module.h"
#include "probe/tensor/torch_versions.h"

namespace nanquest {
namespace {

class PendingParts : public PendingStats {
 public:
  PendingParts(at::Tensor found, DType type, std::size_t n, bool hash)
      : found_(std::move(found)), type_(type), n_(n), hash_(hash) {}

  StatsRow read() const override {
    std::vector<PartFound> parts(part_count(type_, n_));
    if (!parts.empty()) std::memcpy(parts.data(), found_.const_data_ptr(), parts.size() * sizeof(PartFound));
    const ScanAndHash all = merge_parts(type_, n_, parts);
    StatsRow row = to_row(all.scan);
    row.has_hash = hash_;
    row.hash = hash_ ? all.hash : 0;
    return row;
  }
  std::size_t bytes() const override { return found_.nbytes(); }

 private:
  at::Tensor found_;  // on the host
  DType type_;
  std::size_t n_;
  bool hash_;
};

class CudaBackEnd : public BackEnd {
 public:
  StatsRow stats(const at::Tensor& tensor, DType type, bool hash) const override {
    const auto pending = begin(tensor, type, hash);
    if (!pending) return any_back_end().stats(tensor, type, hash);
    c10::impl::VirtualGuardImpl guard(tensor.device().type());
    guard.synchronizeStream(guard.getStream(tensor.device()));
    return pending->read();
  }

  std::unique_ptr<PendingStats> begin(const at::Tensor& tensor, DType type, bool hash) const override {
    const c10::DeviceGuard here(tensor.device());
    // Views marked as conjugate or negative do not have their bits in memory yet.
    const at::Tensor flat = tensor.detach().resolve_conj().resolve_neg().contiguous();
    const auto n = static_cast<std::size_t>(flat.numel());
    const auto bytes = static_cast<std::int64_t>(part_count(type, n) * sizeof(PartFound));
    at::Tensor host = pinned_memory({bytes}, at::kByte);
    if (!host.defined()) return any_back_end().begin(tensor, type, hash);
    if (bytes > 0) {
      // Both are released in the order of the stream that uses them, so they can be freed at once.
      const at::Tensor found = at::empty({bytes}, at::device(tensor.device()).dtype(at::kByte));
      const c10::Stream stream =
          c10::impl::VirtualGuardImpl(tensor.device().type()).getStream(tensor.device());
      const Status launched =
          (*cuda_kernels())->scan_parts(type, flat.const_data_ptr(), n, static_cast<PartFound*>(found.mutable_data_ptr()),
                          static_cast<CUstream_st*>(native_stream(stream)));
      if (!launched) return any_back_end().begin(tensor, type, hash);
      host.copy_(found, /*non_blocking=*/true);
    }
    return std::make_unique<PendingParts>(std::move(host), type, n, hash);
  }
};

}  // namespace

const BackEnd& cuda_back_end() {
  static const CudaBackEnd one;
  return one;
}

}  // namespace nanquest
