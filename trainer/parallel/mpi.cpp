#include "trainer/parallel/mpi.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <mpi.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/parallel/process_group.h"

namespace nanquest::trainer {
namespace {

/// MPI counts with an int.
constexpr std::int64_t kMostAtOnce = std::int64_t{1} << 30;

constexpr const char* kName = "ranks";  // name of the process group in snapshots

MPI_Datatype type_of(const at::Tensor& t) {
  switch (t.scalar_type()) {
    case at::kFloat:
      return MPI_FLOAT;
    case at::kDouble:
      return MPI_DOUBLE;
    case at::kLong:
      return MPI_INT64_T;
    case at::kInt:
      return MPI_INT32_T;
    default:
      TORCH_CHECK(false, "MPI has no ", t.scalar_type(), " to compute with");
  }
}

MPI_Op operation_of(const c10d::ReduceOp& op) {
  switch (static_cast<c10d::ReduceOp::RedOpType>(op)) {
    case c10d::ReduceOp::SUM:
      return MPI_SUM;
    case c10d::ReduceOp::MIN:
      return MPI_MIN;
    case c10d::ReduceOp::MAX:
      return MPI_MAX;
    default:
      TORCH_CHECK(false, "ranks of mpirun add up or take the least or the largest, nothing else");
  }
}

void must(int code, const char* what) {
  TORCH_CHECK(code == MPI_SUCCESS, what, " failed with MPI's error ", code);
}

/// Whether its bytes are contiguous here.
bool is_plain(const at::Tensor& t) {
  return t.is_cpu() && t.is_contiguous();
}

/// Passes the bytes of `t` to `work` on the CPU, contiguous, and copies them back.
template <class Work>
void in_place(const at::Tensor& t, const Work& work) {
  const at::NoGradGuard no_grad;
  const at::Tensor flat = is_plain(t) ? t : t.to(at::kCPU).contiguous();
  work(flat);
  if (!flat.is_same(t)) at::Tensor(t).copy_(flat);
}

/// Waits until all ranks are here. MPI itself waits by polling without a pause, which takes a processor from
/// the ranks that are waited for: the others of this machine, or `nanquest prepare`, which one of them has
/// started. Here the pauses are a tenth of the waiting time so far, and at most a millisecond.
void arrive() {
  using Clock = std::chrono::steady_clock;
  constexpr Clock::duration kLongest = std::chrono::milliseconds(1), kAtOnce = std::chrono::microseconds(50);
  MPI_Request all_here = MPI_REQUEST_NULL;
  must(MPI_Ibarrier(MPI_COMM_WORLD, &all_here), "MPI_Ibarrier");
  const auto begin = Clock::now();
  for (int here = 0;;) {
    must(MPI_Test(&all_here, &here, MPI_STATUS_IGNORE), "MPI_Test");
    if (here != 0) return;
    const auto waited = Clock::now() - begin;
    if (waited > kAtOnce) std::this_thread::sleep_for(std::min(kLongest, waited / 10));
  }
}

/// Small tensors sent in one message: a separate message costs more than copying them twice.
class Packed {
 public:
  /// Adds it if it is small, of the same type, and there is room.
  bool takes(const at::Tensor& t) {
    if (!is_small(t) ||
        (!tensors_.empty() && (t.scalar_type() != tensors_.front().scalar_type() || !has_room(t))))
      return false;
    const at::Tensor flat = t.to(at::kCPU).contiguous();
    const auto* from = static_cast<const char*>(flat.const_data_ptr());
    bytes_.insert(bytes_.end(), from, from + t.nbytes());
    tensors_.push_back(t);
    return true;
  }
  /// Whether it would be added if those in the message had been sent.
  bool is_full_for(const at::Tensor& t) const { return !tensors_.empty() && is_small(t); }

  void* data() { return bytes_.data(); }
  MPI_Datatype type() const { return type_of(tensors_.front()); }
  std::int64_t count() const {
    return tensors_.empty() ? 0 : static_cast<std::int64_t>(bytes_.size() / tensors_.front().element_size());
  }
  /// Copies everything back.
  void unpack() {
    const at::NoGradGuard no_grad;
    char* from = bytes_.data();
    for (const at::Tensor& t : tensors_) {
      if (is_plain(t)) {
        std::memcpy(t.mutable_data_ptr(), from, t.nbytes());
      } else {
        at::Tensor(t).copy_(at::from_blob(from, t.sizes(), t.scalar_type()));
      }
      from += t.nbytes();
    }
    bytes_.clear();
    tensors_.clear();
  }

 private:
  static constexpr std::size_t kSmall = std::size_t{1} << 18, kRoom = std::size_t{1} << 22;
  /// By number and type of its elements only, which are equal on all ranks; strides may differ.
  static bool is_small(const at::Tensor& t) { return t.nbytes() > 0 && t.nbytes() <= kSmall; }
  bool has_room(const at::Tensor& t) const { return bytes_.size() + t.nbytes() <= kRoom; }

  std::vector<char> bytes_;
  std::vector<at::Tensor> tensors_;
};

/// Complete when it is returned.
class Done final : public c10d::Work {
 public:
  explicit Done(c10d::OpType type) : c10d::Work(-1, type) { finish(); }
};

c10::intrusive_ptr<c10d::Work> done(c10d::OpType type) {
  return c10::make_intrusive<Done>(type);
}

class MpiBackend final : public c10d::Backend {
 public:
  MpiBackend(int rank, int size)
      : c10d::Backend(rank, size), given_(c10::make_intrusive<Options>("mpi", kBackendDefaultTimeout)) {}

  const std::string getBackendName() const override { return "mpi"; }
  c10::intrusive_ptr<Options> getBackendOptions() override { return given_; }

  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override {
    arrive();
    reduce_each(tensors, options.reduceOp);
    return done(c10d::OpType::ALLREDUCE);
  }
  c10::intrusive_ptr<c10d::Work> allreduce_coalesced(
      std::vector<at::Tensor>& tensors, const c10d::AllreduceCoalescedOptions& options) override {
    arrive();
    reduce_each(tensors, options.reduceOp);
    return done(c10d::OpType::ALLREDUCE_COALESCED);
  }
  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override {
    arrive();
    for (const at::Tensor& tensor : tensors)
      in_place(tensor, [&](const at::Tensor& t) {
        auto* bytes = static_cast<char*>(t.mutable_data_ptr());
        const auto all = static_cast<std::int64_t>(t.nbytes());
        for (std::int64_t at = 0; at < all; at += kMostAtOnce)
          must(MPI_Bcast(bytes + at, static_cast<int>(std::min(kMostAtOnce, all - at)), MPI_BYTE,
                         static_cast<int>(options.rootRank), MPI_COMM_WORLD),
               "MPI_Bcast");
      });
    return done(c10d::OpType::BROADCAST);
  }
  c10::intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions&) override {
    arrive();
    return done(c10d::OpType::BARRIER);
  }

 private:
  static void reduce_each(const std::vector<at::Tensor>& tensors, const c10d::ReduceOp& op) {
    const MPI_Op operation = operation_of(op);
    Packed packed;
    for (const at::Tensor& tensor : tensors) {
      if (packed.takes(tensor)) continue;
      if (packed.is_full_for(tensor)) {
        reduce(packed.data(), packed.count(), packed.type(), operation);
        packed.unpack();
        if (packed.takes(tensor)) continue;
      }
      in_place(tensor,
               [&](const at::Tensor& t) { reduce(t.mutable_data_ptr(), t.numel(), type_of(t), operation); });
    }
    if (packed.count() == 0) return;
    reduce(packed.data(), packed.count(), packed.type(), operation);
    packed.unpack();
  }

  static void reduce(void* data, std::int64_t count, MPI_Datatype type, MPI_Op operation) {
    int width = 1;
    MPI_Type_size(type, &width);
    for (std::int64_t at = 0; at < count; at += kMostAtOnce)
      must(
          MPI_Allreduce(MPI_IN_PLACE, static_cast<char*>(data) + at * width,
                        static_cast<int>(std::min(kMostAtOnce, count - at)), type, operation, MPI_COMM_WORLD),
          "MPI_Allreduce");
  }

  c10::intrusive_ptr<Options> given_;
};

/// Rank and size among the ranks of this machine.
std::pair<int, int> on_this_machine() {
  MPI_Comm local = MPI_COMM_NULL;
  int rank = 0, size = 1;
  must(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local),
       "MPI_Comm_split_type");
  MPI_Comm_rank(local, &rank);
  MPI_Comm_size(local, &size);
  MPI_Comm_free(&local);
  return {rank, size};
}

}  // namespace

Result<std::unique_ptr<Group>> join_mpi() try {
  int given = 0;
  must(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given), "MPI_Init_thread");
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const auto [local_rank, local_size] = on_this_machine();
  auto group = c10::make_intrusive<c10d::ProcessGroup>(rank, size);
  const auto backend = c10::make_intrusive<MpiBackend>(rank, size);
  using Type = c10d::ProcessGroup::BackendType;
  for (const at::DeviceType device : {at::kCPU, at::kCUDA})
    group->setBackend(device, Type::MPI, c10::intrusive_ptr<c10d::Backend>(backend));
  group->setDefaultBackend(Type::MPI);
  group->setGroupName(kName);
  c10d::register_process_group(kName, group);  // so that the probe finds its members
  ProcessGroupOptions options;
  options.local_rank = local_rank;
  options.local_size = local_size;
  options.end_all = [](int exit_code) { MPI_Abort(MPI_COMM_WORLD, exit_code); };
  options.leave = [] {
    c10d::unregister_process_group(kName);
    MPI_Finalize();
  };
  return group_of(std::move(group), std::move(options));
} catch (const std::exception& e) {
  return Error{ErrorCode::internal, std::string("MPI can't be begun: ") + e.what(), ""};
}

}  // namespace nanquest::trainer
