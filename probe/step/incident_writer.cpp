#include "probe/step/incident_writer.h"

#include <ATen/core/Tensor.h>

#include <filesystem>

#include "probe/snapshot/run_dir.h"
#include "probe/step/one_line.h"
#include "probe/step/ranks_of_step.h"
#include "probe/trace/culprit.h"

namespace nanquest {
namespace {

std::uint64_t bytes_of(const NamedTensors& all) {
  std::uint64_t bytes = 0;
  for (const auto& [name, data] : all) bytes += data.defined() ? data.nbytes() : 0;
  return bytes;
}

}  // namespace

IncidentWriter::IncidentWriter(RunLog* log, IncidentWriterOptions options)
    : log_(log),
      options_(std::move(options)),
      election_(options_.run_dir, options_.rank, options_.world_size, options_.election),
      budget_(options_.max_disk) {}

void IncidentWriter::begin(std::int64_t step, bool muted) {
  in_wake_ = last_bad_ != kNever && step - last_bad_ <= options_.wake_steps;
  last_bad_ = step;
  counted(step, muted);
}

void IncidentWriter::begin_spike(std::int64_t step) {
  in_wake_ = true;
  counted(step, /*muted=*/false);
}

void IncidentWriter::counted(std::int64_t step, bool muted) {
  ++(muted ? muted_ : count_);
  last_muted_ = muted;
  last_ = step;
  carried_by_last_ = 0;
  repeated_last_ = 0;
}

bool IncidentWriter::may_write(Facts& told) const {
  if (files_ < options_.max_files) return true;
  told.push_back({.kind = Fact::files_used_up, .number = options_.max_files});
  return false;
}

void IncidentWriter::name_culprit(Recording& recording, Facts& told) const {
  add_process_groups(recording.doc);
  if (recording.doc.culprit.op != kNone)
    add_text(told, one_line(describe_culprit(recording.doc)));
  else if (told.empty() && recording.doc.basis == "every_output")
    told.push_back({Fact::no_culprit});
}

std::string IncidentWriter::write(const Reason& reason, StepPages& pages, Facts& told) {
  const bool finite = reason.gate == Gate::spike;
  if (!finite && !may_write(told)) return "";
  Recording* const recording = pages.tables(told);
  if (!recording) return "";
  if (!finite) ++files_;
  recording->doc.gate = reason.gate;
  if (finite) {
    add_process_groups(recording->doc);
    recording->doc.culprit = {};  // its infinities, if there are any, are meant
    if (reason.spike) note_spike(recording->doc, *reason.spike);
  } else {
    name_culprit(*recording, told);
  }
  if (election_.needed()) {
    const Seat seat = election_.hold(recording->doc.step, row_of(recording->doc, reason.loss_bad));
    if (!seat.whole) {
      told.push_back({.kind = Fact::left_to_rank, .name = seat.says, .number = seat.first});
      return "";
    }
  }
  const std::string path = free_incident_path(options_.run_dir, recording->doc.step, options_.rank);
  const Status written = write_file(*recording, pages, path,
                                    in_wake_ ? FileBudget::Kind::wake : FileBudget::Kind::incident, told);
  if (!written) told.push_back({Fact::file_not_written, one_line(written.error().text())});
  return written && std::filesystem::exists(path) ? path : "";
}

std::string IncidentWriter::record(std::int64_t step, Gate gate, StepPages& pages, Facts& told) {
  Facts more;
  Status written;
  std::string path;
  if (Recording* const recording = pages.tables(more)) {
    recording->doc.gate = gate;
    std::error_code error;
    std::filesystem::create_directories(recordings_dir(options_.run_dir), error);
    path = free_recording_path(options_.run_dir, step, options_.rank);
    more.push_back({.kind = Fact::recorded, .step = step});
    name_culprit(*recording, more);
    written = write_file(*recording, pages, path, FileBudget::Kind::recording, more);
  }
  if (written) {
    if (!std::filesystem::exists(path)) path.clear();
  } else {
    more = {{.kind = Fact::not_recorded, .name = one_line(written.error().text()), .step = step}};
    path.clear();
  }
  add(told, std::move(more));
  return path;
}

Status IncidentWriter::write_file(Recording& recording, StepPages& pages, const std::string& path,
                                  FileBudget::Kind kind, Facts& told) {
  pages.complete(told);
  const std::uint64_t bytes =
      bytes_of(recording.data) + (recording.tape ? bytes_of(recording.tape->data) : 0);
  // Tables, and what a file contains besides them.
  if (Status room = make_room(bytes + bytes / 16 + (std::uint64_t{256} << 10)); !room) return room;
  if (Status written = write_snapshot(recording, path); !written) return written;
  budget_.wrote(path, kind);
  // It may be larger than estimated.
  if (!budget_.over() || (make_room(0) && !budget_.over())) return {};
  log_->removed(path, budget_.remove(path), "max_disk: it is larger than what is left");
  told.push_back({Fact::file_too_large});
  return {};
}

Status IncidentWriter::make_room(std::uint64_t bytes) {
  if (!budget_.bounded()) return {};
  const auto go = budget_.to_go(bytes);
  if (!go) return go.error();
  for (const std::string& path : *go) {
    const std::uint64_t freed = budget_.remove(path);
    if (log_) log_->removed(path, freed, "max_disk: for a newer file");
  }
  return {};
}

Facts IncidentWriter::end(Gate gate, const std::string& file, const Facts& told) {
  const Status noted = log_ ? log_->incident(last_, gate, file, text_of(told), last_muted_) : Status();
  if (noted) return {};
  return {{Fact::manifest_not_written, one_line(noted.error().text())}};
}

bool IncidentWriter::repeat() {
  ++(last_muted_ ? muted_ : count_);
  if (last_muted_) return false;
  ++repeated_;
  ++repeated_last_;
  if (log_) log_->repeated(repeated_last_);
  return repeated_last_ == 1;
}

bool IncidentWriter::carry_on() {
  carried_on_ += last_muted_ ? 0 : 1;
  ++carried_by_last_;
  if (log_) log_->carried_on(carried_by_last_);
  return carried_by_last_ == 1 && !last_muted_;
}

}  // namespace nanquest
