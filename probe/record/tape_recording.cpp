#include "probe/record/tape_recording.h"

#include <exception>
#include <string>
#include <utility>

namespace nanquest {
namespace {

std::int32_t loss_row(const SnapshotDoc& doc, std::int32_t op, std::uint32_t slot) {
  const OpRow& row = doc.ops[static_cast<std::size_t>(op)];
  std::int32_t found = kNone;
  for (std::int32_t i = 0; i < row.written_count; ++i) {
    const std::int32_t written =
        doc.written[static_cast<std::size_t>(row.first_written) + static_cast<std::size_t>(i)];
    if (doc.tensors[static_cast<std::size_t>(written)].slot == static_cast<std::int32_t>(slot))
      found = written;
  }
  return found;
}

/// Its path in the file of a tape.
void move_under_tape(SnapshotDoc& doc) {
  const auto move = [](std::string& path) {
    if (!path.empty()) path.insert(0, kTapePrefix);
  };
  for (Slot& slot : doc.slots) move(slot.data);
  for (OpRow& op : doc.ops) move(op.host_data);
  for (auto* group : {&doc.parameters, &doc.buffers, &doc.optimizer, &doc.batch})
    for (NamedTensor& named : *group) move(named.data);
  for (std::string& state : doc.rng_states) move(state);
  move(doc.rng_data);
}

}  // namespace

std::shared_ptr<TapeRecording> tape_recording(Recording recording, const record::Step& whole,
                                              const std::vector<std::int32_t>& rows) {
  auto made = std::make_shared<TapeRecording>();
  made->doc.trace = std::move(recording.doc);
  SnapshotDoc& doc = made->doc.trace;
  const auto row = [&](std::uint32_t op) {
    return op < rows.size() ? rows[op] : static_cast<std::int32_t>(doc.ops.size());
  };
  for (const record::TapeMark& mark : whole.marks) {
    if (!mark.gate) {
      if (!made->doc.steps.empty()) made->doc.steps.back().end = row(mark.op);
      continue;
    }
    // Several optimizers in one step: the first one's update begins it, the last one's ends it.
    if (!made->doc.steps.empty() && made->doc.steps.back().step == mark.note.step) continue;
    TapeStep& step = made->doc.steps.emplace_back();
    step.step = mark.note.step;
    step.gate = row(mark.op);
    step.rate = mark.note.rate;
    step.loss_value = mark.note.loss;
    step.clip = mark.note.clip;
    step.grad_norm = mark.note.grad_norm;
    if (mark.loss_op == UINT32_MAX) continue;
    step.loss = loss_row(doc, row(mark.loss_op), mark.loss_slot);
    if (step.loss != kNone) step.loss_op = row(mark.loss_op);
  }
  for (const record::HostRead& read : whole.reads)
    made->doc.reads.push_back({row(read.op), read.value, read.whole});
  move_under_tape(doc);
  for (auto& [path, tensor] : recording.data) made->data.emplace_back(kTapePrefix + path, std::move(tensor));
  for (FileReference& reference : recording.references) {
    reference.path.insert(0, kTapePrefix);
    made->references.push_back(std::move(reference));
  }
  return made;
}

std::shared_ptr<TapeRecording> tape_so_far(Recorder& recorder, std::unique_ptr<record::Step>& held,
                                           const std::function<StepTables(record::Step&)>& tables,
                                           bool embed_weights, std::string& complaint) {
  std::string why;
  try {
    held = recorder.taped();
    if (!held) return nullptr;
    StepTables made = tables(*held);
    made.finish({});  // named tensors have slots; the steps did not read one without a slot
    if (!embed_weights) made.refer_to_files();
    std::shared_ptr<TapeRecording> tape = made.tape();
    const Status sound = check_tape(tape->doc);
    if (sound) return tape;
    why = sound.error().message;
  } catch (const std::exception& e) {
    why = e.what();
  }
  complaint = "the file is without its tape, which could not be put together: " + why;
  return nullptr;
}

}  // namespace nanquest
