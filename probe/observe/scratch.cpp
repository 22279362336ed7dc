#include "probe/observe/scratch.h"

namespace nanquest {

bool is_scratch(std::string_view op, std::size_t output) {
  // _ctc_loss: log_alpha, beyond the end of targets shorter than the longest. The others: the library's
  // workspace.
  return (op == "aten::_ctc_loss" && output == 1) || (op == "aten::mkldnn_rnn_layer" && output == 3) ||
         (op == "aten::_cudnn_rnn" && output == 3) || (op == "aten::miopen_rnn" && output == 4);
}

bool reads_scratch(std::string_view op, std::string_view argument) {
  return (op == "aten::_ctc_loss_backward" && argument == "log_alpha") ||
         (op == "aten::mkldnn_rnn_layer_backward" && argument == "workspace") ||
         ((op == "aten::_cudnn_rnn_backward" || op == "aten::miopen_rnn_backward") && argument == "reserve");
}

}  // namespace nanquest
