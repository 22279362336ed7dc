#include "probe/capture/record.h"

#include <ATen/ATen.h>
#include <ATen/Version.h>
#include <unistd.h>

#include <exception>

#include "probe/capture/finish.h"
#include "probe/capture/recorder.h"
#include "probe/capture/step_recording.h"
#include "probe/tensor/tensor_scan.h"
#include "probe/snapshot/manifest.h"
#include "probe/snapshot/writer.h"
#include "probe/trace/culprit.h"

namespace nanquest {
namespace {

std::string host_name() {
  char text[256] = {};
  return gethostname(text, sizeof text - 1) == 0 ? text : "unknown";
}

void run(const std::function<at::Tensor()>& step, Recording& recording) {
  try {
    recording.loss = step();
  } catch (const std::exception& e) {
    recording.failure = e.what();
  } catch (...) {
    recording.failure = "an exception that is no std::exception";
  }
}

}  // namespace

void fill_header(SnapshotDoc& doc, const StepState& state) {
  doc.step = state.step;
  doc.rank = state.rank;
  doc.world_size = state.world_size;
  doc.loss_scale = state.loss_scale;
  doc.created_utc = utc_now();
  doc.host = host_name();
  doc.writer = "nanquest " NANQUEST_VERSION;
  doc.environment = capture_environment();
  doc.config = state.config;
  doc.history = state.history;
  doc.history_samples = state.history_samples;
  doc.sample_ids = state.sample_ids;
  doc.sample_texts = state.sample_texts;
}

bool find_and_symbolise_culprit(SnapshotDoc& doc, const TraceRecorder& recorder) {
  if (!find_culprit(doc) || doc.culprit.op == kNone) return false;
  const auto words = [&](std::int32_t index) {
    if (index == kNone) return;
    OpRow& op = doc.ops[static_cast<std::size_t>(index)];
    const auto& stack = recorder.stacks()[static_cast<std::size_t>(index)];
    if (!stack || op.stack != kNone) return;
    auto frames = stack->symbolise();
    if (frames.empty()) return;
    op.stack = static_cast<std::int32_t>(doc.stacks.size());
    doc.stacks.push_back(std::move(frames));
  };
  words(doc.culprit.op);
  words(doc.ops[static_cast<std::size_t>(doc.culprit.op)].forward_op);
  return true;
}

void symbolise_all(SnapshotDoc& doc, const std::vector<std::shared_ptr<Stack>>& stacks) {
  std::map<std::vector<std::string>, std::int32_t> known;
  for (std::size_t i = 0; i < doc.ops.size() && i < stacks.size(); ++i) {
    const auto& stack = stacks[i];
    if (!stack || doc.ops[i].stack != kNone) continue;
    std::vector<std::string> frames = stack->symbolise();
    if (frames.empty()) continue;
    const auto [at, fresh] = known.emplace(std::move(frames), static_cast<std::int32_t>(doc.stacks.size()));
    if (fresh) doc.stacks.push_back(at->first);
    doc.ops[i].stack = at->second;
  }
}

Recording record_step(const StepState& state, const std::function<at::Tensor()>& step,
                      const RecordOptions& options) {
  Recording recording;
  try {
    StepRecording recorded(state, options);
    run(step, recorded.recording());
    recorded.stop();
    try {
      recorded.computed(recorded.recording().loss, state.parameters);
      return recorded.end(state);
    } catch (...) {
      recording = std::move(recorded.recording());
      throw;
    }
  } catch (const std::exception& e) {
    recording.notes.push_back(std::string("recording is incomplete: ") + e.what());
  } catch (...) {
    recording.notes.push_back("recording is incomplete: unknown exception");
  }
  return recording;
}

Status write_snapshot(const Recording& recording, const std::string& path) {
  auto writer = SnapshotWriter::create(path);
  if (!writer) return writer.error();
  for (const auto& [name, tensor] : recording.data) {
    const auto type = dtype_of(tensor.scalar_type());
    if (!type) return Error{ErrorCode::internal, name + ": element type can't be stored", ""};
    const at::Tensor flat = tensor.contiguous();
    const Status stored =
        writer->write_tensor(name, {*type, flat.sizes(), flat.numel() ? flat.const_data_ptr() : nullptr});
    if (!stored) return stored;
  }
  if (Status stored = writer->write_doc(recording.doc); !stored) return stored;
  return writer->commit();
}

}  // namespace nanquest
