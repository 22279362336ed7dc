// Recorder: what goes onto the tape besides the ops of steps, and where the update of a step ends.
#include <ATen/ATen.h>

#include "probe/record/recorder.h"
#include "probe/record/recorder_frame.h"
#include "probe/record/rows.h"
#include "probe/record/value_watch.h"
#include "probe/tensor/each_tensor.h"

namespace nanquest {

using record::TapeMark;

void Recorder::put_on_tape() {
  if (tape_ && into_ && !put_) tape_->append(*into_);
  put_ = true;
}

void Recorder::record_between() {
  between_.clear();
  into_ = &between_;
  put_ = updating_ = false;
  recording_ = tape_ && tape_->running() && error_.empty();
  if (recording_) return;
  into_ = current_;
  put_ = true;
}

void Recorder::cut_tape(const std::string& why, bool every_step) {
  const std::lock_guard lock(mutex_);
  end_tape(why, every_step);
}

void Recorder::end_tape(const std::string& why, bool every_step) {
  if (!tape_) return;
  tape_->cut(why, every_step);
  if (into_ == current_) return;
  recording_ = false;
  into_ = current_;
  put_ = true;
}

void Recorder::note_for_tape(const OpTraits& op, const Frame& frame,
                             c10::ArrayRef<const c10::IValue> outputs) {
  record::Step& step = *into_;
  const bool opaque = step.ops[frame.op].opaque;
  if (opaque || op.foreign || op.collective) {
    const char* const why = op.collective ? "it talks to other processes"
                            : opaque      ? "it can't be run again from its record"
                                          : "it is not PyTorch's own";
    tape_->cut(op.name + ": " + why);
    return;
  }
  if (into_ != current_ && !frame.takes_tensors)
    for (const c10::IValue& output : outputs)
      each_tensor(output, [&](const at::Tensor& t) {
        if (can_record(t) && t.is_cpu() && t.storage().data()) tape_->made(t);
      });
  for (const c10::IValue& output : outputs)
    if (output.isDouble())
      step.reads.push_back({frame.op, output.toDouble(), false});
    else if (output.isInt() || output.isBool())
      step.reads.push_back({frame.op, output.toScalar().to<double>(), true});
}

void Recorder::passed_gate(const record::GateNote& note, const at::Tensor& loss) {
  const std::lock_guard lock(mutex_);
  if (!tape_ || !tape_->running() || !into_ || !recording_) return;
  TapeMark mark;
  mark.op = static_cast<std::uint32_t>(into_->ops.size());
  mark.note = note;
  if (loss.defined() && can_record(loss)) {
    const std::uint32_t slot = into_->slots.find(loss.storage().unsafeGetStorageImpl());
    if (slot != record::SlotIndex::kMissing) {
      mark.loss_op = into_->slots[slot].writer;
      mark.loss_slot = slot;
    }
  }
  into_->marks.push_back(mark);
}

void Recorder::drop_lead() {
  if (!leads_.drop(kept_)) return;
  recording_ = false;
  into_ = current_;
}

bool Recorder::leads_on() const {
  return options_.lead && !tape_ && into_ == current_ && current_->usable &&
         current_->updated_at < current_->ops.size() && update_cost_.bytes <= record::kMostLeadBytes;
}

void Recorder::updated() {
  const std::lock_guard lock(mutex_);
  if (recording_ && into_ && into_ == current_) {
    current_->updated_at = static_cast<std::uint32_t>(current_->ops.size());
  } else if (options_.lead && !recording_ && !tape_ && current_ && error_.empty()) {
    drop_lead();
    if (record::Step* lead = leads_.begin(current_->number)) {
      into_ = lead;
      recording_ = true;
    }
  }
  if (!tape_ || !tape_->running() || !into_ || !recording_) return;
  TapeMark mark;
  mark.op = static_cast<std::uint32_t>(into_->ops.size());
  mark.gate = false;
  into_->marks.push_back(mark);
}

std::unique_ptr<record::Step> Recorder::taped() {
  const std::lock_guard lock(mutex_);
  return tape_ ? tape_->whole(put_ ? nullptr : into_) : nullptr;
}

}  // namespace nanquest
