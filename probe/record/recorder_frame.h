/// What the recorder keeps about an op between its start and its end. Private to the recorder.
#pragma once

#include <memory>
#include <vector>

#include "probe/base/pooled.h"
#include "probe/record/recorder.h"
#include "probe/record/value_watch.h"

namespace nanquest {

struct Recorder::Frame final : OpFrame, Pooled<Recorder::Frame> {
  record::Step* step = nullptr;
  std::int64_t number = 0;
  std::uint32_t op = 0;
  std::uint32_t known = 0;          // number of slots before the op's outputs
  std::vector<at::Tensor> written;  // mutable arguments, held until the op is done
  std::vector<at::Tensor> inner;    // plain memory inside written arguments that are no plain tensors
                                    // themselves
  std::unique_ptr<record::WatchedOp> watched;
  bool of_model = false;  // SlotRecord::of_model for what it writes
  bool takes_tensors = false;
  bool arrives_later = false;  // a copy to the host that has not finished: its values can't be read yet
  bool host_wrote = false;     // written by the host, and read by the op
};

}  // namespace nanquest
