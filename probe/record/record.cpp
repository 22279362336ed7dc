#include "probe/record/record.h"

#include <ATen/ATen.h>
#include <ATen/Version.h>
#include <unistd.h>

#include <exception>

#include "probe/record/header.h"
#include "probe/record/record_session.h"
#include "probe/snapshot/manifest.h"
#include "probe/snapshot/writer.h"
#include "probe/tensor/tensor_scan.h"

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

Recording record_step(const StepState& state, const std::function<at::Tensor()>& step,
                      const RecordOptions& options) {
  Recording recording;
  try {
    const auto recorder =
        std::make_shared<Recorder>(RecorderOptions{.keep_steps = 0, .stacks = options.stacks});
    RecordSession recorded(*recorder, state, options);
    Recording ran;
    run(step, ran);
    recorded.stop();
    recorded.computed(ran.loss, state.parameters);
    recording = recorded.end_and_own(state, recorder);
    recording.loss = std::move(ran.loss);
    recording.failure = std::move(ran.failure);
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
  const NamedTensors none;
  for (const NamedTensors* data : {&recording.data, recording.tape ? &recording.tape->data : &none})
    for (const auto& [name, tensor] : *data) {
      const auto type = dtype_of(tensor.scalar_type());
      if (!type) return Error{ErrorCode::internal, name + ": element type can't be stored", ""};
      const at::Tensor flat = tensor.contiguous();
      Status stored =
          writer->write_tensor(name, {*type, flat.sizes(), flat.numel() ? flat.const_data_ptr() : nullptr});
      if (!stored) return stored;
    }
  const std::vector<FileReference> no_references;
  for (const auto* references :
       {&recording.references, recording.tape ? &recording.tape->references : &no_references})
    for (const FileReference& reference : *references)
      if (Status stored = writer->write_reference(reference); !stored) return stored;
  if (Status stored = writer->write_doc(recording.doc, recording.tape ? &recording.tape->doc : nullptr);
      !stored)
    return stored;
  return writer->commit();
}

}  // namespace nanquest
