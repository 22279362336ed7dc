/// repro_program: the parts of the two programs that belong to one op. Private to replay/report.
#pragma once

#include <string>
#include <vector>

#include "probe/snapshot/model.h"
#include "replay/report/repro_call.h"
#include "replay/report/repro_values.h"

namespace nanquest {

/// Writes the parts of one program. Large tensors go into `store`, which both programs share.
class Program {
 public:
  Program(const Language& language, TensorStore& store) : is_(language), store_(store) {}

  /// The function `name`, which makes the arguments of the call (in Python also names the op, and returns
  /// `more`). Fails with `unsupported` if one of them can't be written as source. Tensors are stored under
  /// `prefix`.
  Result<std::string> call(const std::string& name, const OpRow& op, const RecordedCall& call,
                           const std::string& prefix = "", const std::string& more = "");
  /// The function `prepare`: sets threads, switches and the generator as recorded.
  std::string preparation(const SnapshotDoc& doc, const RecordedCall& call);
  /// Which arguments are results, what was recorded of the outputs, which formats are wider.
  std::string constants(const RecordedCall& call) const;
  /// The tensors as a list: "[…, None]".
  std::string tensors(const std::vector<at::Tensor>& tensors, const std::string& prefix);

 private:
  const Language& is_;
  TensorStore& store_;
};

/// `text` as both languages quote it.
std::string in_quotes(const std::string& text);

}  // namespace nanquest
