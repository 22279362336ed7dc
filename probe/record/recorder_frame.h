/// What the recorder keeps of an op between its beginning and its end. Private to the recorder.
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
  std::uint32_t known = 0;          // slots before the op's outputs
  std::vector<at::Tensor> written;  // mutable arguments, held until the op is done
  std::vector<at::Tensor> inner;    // memory inside written arguments that are no plain memory themselves
  std::unique_ptr<record::WatchedOp> watched;
  bool of_model = false;  // SlotRecord::of_model of what it writes
  bool takes_tensors = false;
  bool arrives_later = false;  // a copy to the host that is not waited for: nobody can look at it yet
  bool host_wrote = false;     // behind the dispatcher, what the op reads
};

}  // namespace nanquest
