#include "probe/trace/op_facts.h"

#include "probe/base/one_of.h"
#include "probe/trace/collectives.h"

namespace nanquest {
namespace {

/// Arguments that kernels write although their schema does not say so: a batch norm its running statistics, a
/// recurrent network of cuDNN the random state of its dropout.
bool writes_unsaid(std::string_view op, std::string_view argument) {
  if (argument == "dropout_state") return is_one_of(op, {"aten::_cudnn_rnn", "aten::miopen_rnn"});
  return (argument == "running_mean" || argument == "running_var") &&
         is_one_of(op, {"aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::miopen_batch_norm",
                        "aten::batch_norm_update_stats", "aten::batch_norm_gather_stats",
                        "aten::batch_norm_gather_stats_with_counts"});
}

/// Kernels that use only the size of this argument, no element.
bool takes_shape_only(std::string_view op, std::size_t position) {
  if (!op.starts_with("aten::")) return false;
  if (position == 0) return op.ends_with("_like") || op.starts_with("aten::new_");
  return position == 1 &&
         is_one_of(op, {"aten::nll_loss_backward", "aten::nll_loss2d_backward", "aten::avg_pool2d_backward",
                        "aten::avg_pool3d_backward", "aten::_adaptive_avg_pool2d_backward",
                        "aten::_adaptive_avg_pool3d_backward", "aten::adaptive_max_pool2d_backward",
                        "aten::max_pool2d_with_indices_backward", "aten::max_pool3d_with_indices_backward",
                        "aten::reflection_pad1d_backward", "aten::reflection_pad2d_backward",
                        "aten::replication_pad1d_backward", "aten::replication_pad2d_backward"});
}

/// The buffer of a gather of sharded weights: each rank's part is copied in, the rest is received. Its schema
/// says neither.
bool is_gather_buffer(std::string_view op, std::size_t position) {
  return op == "fsdp::all_gather_copy_in" && position == 1;
}

}  // namespace

bool is_fsdp_copy(std::string_view op) {
  return is_one_of(op, {"fsdp::all_gather_copy_in", "fsdp::split_with_sizes_copy", "fsdp::chunk_cat",
                        "fsdp::chunk_cat_mixed_dtype"});
}

bool returns_what_it_wrote(std::string_view op) {
  return op == "fsdp::all_gather_copy_in";
}

bool overwrites_blindly(std::string_view op) {
  return is_one_of(op, {"aten::fill_", "aten::zero_", "aten::copy_", "aten::normal_", "aten::uniform_",
                        "aten::random_", "aten::bernoulli_", "aten::exponential_", "aten::log_normal_",
                        "aten::geometric_", "aten::cauchy_", "aten::set_", "aten::resize_",
                        "aten::resize_as_", "aten::_foreach_zero_", "aten::_foreach_copy_"});
}

bool is_for_the_allocator(std::string_view op) {
  return op == "aten::record_stream";
}

bool changes_metadata_only(std::string_view op) {
  return is_one_of(op, {"aten::set_", "aten::set_data", "aten::requires_grad_", "aten::detach_"});
}

bool returns_uninitialised(std::string_view op) {
  return is_one_of(op, {"aten::empty", "aten::empty_like", "aten::empty_strided", "aten::empty_permuted",
                        "aten::new_empty", "aten::new_empty_strided", "aten::resize_", "aten::resize_as_",
                        "aten::_resize_output_"});
}

ArgumentUse argument_use(std::string_view op, const DeclaredArgument& argument) {
  const bool first = argument.position == 0;
  ArgumentUse use;
  const bool gathers = is_gather_buffer(op, argument.position);
  use.written =
      argument.mutated || gathers || writes_unsaid(op, argument.name) || (first && collective_writes(op));
  const bool overwritten =
      gathers ||
      (use.written && (argument.out || overwrites_blindly(op) || (first && collective_overwrites(op))));
  use.read = !overwritten && !awaits_collective(op) && !reads_scratch(op, argument.name) &&
             !takes_shape_only(op, argument.position);
  return use;
}

bool is_scratch(std::string_view op, std::size_t output) {
  // _ctc_loss: log_alpha, beyond the end of targets shorter than the longest. The others: the library's
  // workspace.
  return (op == "aten::_ctc_loss" && output == 1) || (op == "aten::mkldnn_rnn_layer" && output == 3) ||
         (op == "aten::_cudnn_rnn" && output == 3) || (op == "aten::miopen_rnn" && output == 4);
}

bool draws_nothing_if_zero(std::string_view argument) {
  return argument == "dropout_p" || argument == "dropout";
}

bool tells_what_was_drawn(std::string_view op, std::size_t output) {
  return op != "aten::native_dropout" || output != 0;
}

bool reads_scratch(std::string_view op, std::string_view argument) {
  return (op == "aten::_ctc_loss_backward" && argument == "log_alpha") ||
         (op == "aten::mkldnn_rnn_layer_backward" && argument == "workspace") ||
         ((op == "aten::_cudnn_rnn_backward" || op == "aten::miopen_rnn_backward") && argument == "reserve");
}

}  // namespace nanquest
