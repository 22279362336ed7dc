/// viewer/model: what is shown. No ImGui, no OpenGL, no torch.
///
///     Result<Session> session = Session::open("runs/story");   // a run directory or one snapshot
///     std::string text = panel_text(*session, Panel::verdict);
///
/// A Session holds one run (or one snapshot), the incident that is open, and the selection that all panels
/// share. Nothing here writes a file. One thread per session; a copy is cheap, because what was read is
/// shared and never changed: a Loader reads into a copy on another thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "probe/base/result.h"
#include "probe/snapshot/manifest.h"
#include "viewer/model/incident.h"
#include "viewer/model/incident_values.h"
#include "viewer/model/note.h"
#include "viewer/model/progress.h"
#include "viewer/model/read_incident.h"
#include "viewer/model/run_files.h"
#include "viewer/model/run_folder.h"
#include "viewer/model/run_series.h"
#include "viewer/model/runs_beside.h"
#include "viewer/model/selection.h"
#include "viewer/model/step_diff.h"

namespace nanquest::viewer {

class Session {
 public:
  /// Opens a run directory (or its manifest) or a snapshot; a replay's file (".json", ".replay.h5") opens its
  /// snapshot, and a verdict alone is enough. `bad_file` for anything else. `opens_before` decides which of a
  /// run's incidents is opened; one with neither a readable snapshot nor verdict is skipped
  /// (IncidentEntry::error) if another can be read. A directory that is no run but holds some gives a session
  /// without data and with a `folder`; what `nanquest diff --json` wrote gives one with a `diff`. `progress`,
  /// if given, is updated and may stop it: then the result is invalid.
  static Result<Session> open(const std::string& path, Progress* progress = nullptr);
  /// A session without data, while it is being read or if it could not be. `why`: a sentence, or "" while it
  /// is being read.
  static Session nothing(const std::string& path, const std::string& why = "");
  /// True for the result of `nothing`; `nothing_because` is its sentence.
  bool is_nothing() const { return nothing_; }
  const std::string& nothing_because() const { return nothing_because_; }
  /// The runs of a directory that is no run itself; null for everything else.
  const RunFolder* folder() const { return folder_.get(); }
  /// The comparison of two steps, if that is what was opened; else null. The session has no data then.
  const StepDiff* diff() const { return diff_.get(); }
  /// Reports progress of later readings to this; null for none. Must outlive them.
  void report_to(Progress* progress) { progress_ = progress; }
  Progress* progress() const { return progress_; }

  const std::string& path() const { return files_.path(); }
  /// "story" for runs/story.
  const std::string& title() const { return title_; }
  bool is_run() const { return files_.is_run(); }
  const std::optional<Manifest>& manifest() const { return manifest_; }
  const std::string& manifest_error() const { return manifest_error_; }
  const std::vector<IncidentEntry>& incidents() const { return *incidents_; }
  /// The open incident, or null; its verdict may be there although its snapshot can't be read.
  const OpenIncident* incident() const { return shown_->open.get(); }
  /// The same, to be held: the file stays open as long as there is an owner.
  const std::shared_ptr<const OpenIncident>& held_incident() const { return shown_->open; }
  /// The selected line of the incident list, or null.
  const IncidentEntry* entry() const {
    return selection_.incident < 0 ? nullptr : &(*incidents_)[static_cast<std::size_t>(selection_.incident)];
  }
  const std::string& incident_error() const { return shown_->error; }
  /// The verdict of the selected incident, if there is one.
  const std::optional<Verdict>& verdict() const { return shown_->verdict; }
  /// Why there is no verdict, if its file is there but bad.
  std::string verdict_error() const { return entry() == nullptr ? "" : entry()->verdict_error; }
  /// That the run was moved or removed while it was shown; "" while it is there.
  const std::string& lost() const { return lost_; }
  /// The same of this run, else of the first beside it that is gone.
  const std::string& lost_of_any() const;
  /// True if the manifest says that the run is over: no news are expected.
  bool is_over() const { return manifest_ && manifest_->status != "running"; }
  /// "finished: went on in fp32", that it is gone, or for how long a running run has written nothing; "" if
  /// the run's state is unknown.
  std::string status() const;
  /// Files that are there and can't be read, one line each: manifest, series, snapshots that were tried.
  std::vector<std::string> complaints() const;
  /// The frames from which the blamed op was called, innermost first; empty if none are recorded.
  const std::vector<std::string>& culprit_stack() const { return shown_->stack; }
  /// The program's lines there, as they are on this machine.
  const Source& source() const { return shown_->source; }
  /// What other ranks wrote of the step of the selected incident instead of a file, by rank.
  const std::map<std::int32_t, RankRow>& rank_rows() const { return shown_->rank_rows; }
  /// The rehearsed runs of the selected incident; none if there are none, or the file can't be read.
  const std::vector<RehearsedCurve>& rehearsed() const { return shown_->rehearsed; }
  /// The run's series, otherwise the open snapshot's history; empty if there is neither.
  const History& history() const;
  const std::string& series_error() const { return series_.error(); }
  /// That the run's series file is missing, and what is shown instead; "" if it is there, and for a snapshot.
  std::string lost_series() const;
  /// How far the values of every place reached; empty if not recorded.
  const Headroom& headroom() const { return series_.headroom(); }
  const std::string& headroom_error() const { return series_.headroom_error(); }
  /// Summaries of the series: all of them if no incident is known, otherwise only the one that is shown.
  const std::vector<SeriesWord>& series_words() const { return series_.words(); }
  /// True if the series or an incident contains that step.
  bool has_step(double step) const;
  /// True if a statistic has a series of that name.
  bool has_layer(const std::string& layer) const;
  /// The layer of the series that belongs to a module or parameter: itself, its first child, or its nearest
  /// parent; "" if there is none.
  std::string layer_of(const std::string& name) const;
  /// How long ago manifest or series were last written, in whole units: "under a minute", "3 hours"; "" if
  /// unknown.
  std::string age_text() const;
  /// Command that replays the open incident; works from any folder.
  const std::string& replay_command() const { return shown_->replay_command; }

  /// A number that changes whenever an incident or the list of them is read again, and differs between
  /// sessions.
  std::uint64_t reading() const { return reading_; }
  /// The same for everything shown, including the series.
  std::uint64_t content() const { return content_; }

  const Selection& selection() const { return selection_; }
  /// Opens incident `row` and selects its culprit.
  void select_incident(int row);
  /// Selects an op, its module's layer, its step and the stored tensor that it reads.
  void select_op(std::int32_t op);
  /// Selects a layer ("" for all) and, where there is one, its stored weight.
  void select_layer(const std::string& layer);
  void select_step(double step);
  /// Selects a place with recorded headroom ("" for the place with the least), and the layer that it belongs
  /// to.
  void select_place(const std::string& place);
  /// True if `select_step` would open another incident, and so read files.
  bool opens_another(double step) const { return incident_to_open(step) >= 0; }
  /// Selects a stored tensor and the layer it belongs to.
  void select_tensor(const std::string& path);
  /// Restores an earlier selection, as far as it still exists.
  void restore(const Selection& before);
  /// Copies what a user has selected in an older state of this session while this one was being read; reads
  /// nothing.
  void keep(const Session& older);
  void select_statistic(Statistic s) { selection_.statistic = s; }

  /// Puts these runs (or snapshots) beside this one: RunsBeside::choose.
  Status compare_with(const std::vector<std::string>& paths);
  /// The runs beside this one, and what differs; null while there is none.
  const std::vector<std::shared_ptr<const Session>>& others() const { return beside_.runs(); }
  const Comparison* comparison() const { return beside_.comparison(); }
  /// First and last step that are shown: of the series of all runs, and of this one's incidents; nothing
  /// without any.
  std::optional<std::pair<double, double>> steps_shown() const;

  /// Reads everything again from disk; the selection stays as far as its targets still exist. If the run is
  /// gone, what was read stays.
  Status reload();
  /// Reads again what changed on disk: only series and manifest if no incident or verdict is new, so that the
  /// open incident stays open. True if something is new, and if the run went away or came back.
  bool poll();

  /// The selected stored tensor with its statistics, loaded on first use; null if none is selected or it is
  /// unreadable.
  const TensorDetail* tensor_detail();
  const TensorSlice* tensor_slice(std::int64_t plane);
  /// What was read of it already; these two read nothing.
  const TensorDetail* read_detail() const { return values_.detail(selection_.tensor); }
  const TensorSlice* read_slice(std::int64_t plane) const { return values_.slice(selection_.tensor, plane); }
  /// True if `tensor_slice` would read: the selected tensor is there, and neither it nor an error was read.
  bool tensor_waits(std::int64_t plane) const;
  const std::string& tensor_error() const { return values_.error(); }

  /// The current element of the selected tensor: the selected one, otherwise the first that is not finite,
  /// otherwise the first. `select_element`: does nothing if the tensor does not have it.
  std::uint64_t shown_element() const;
  void select_element(std::uint64_t element);
  /// Selects the next element that is not finite, or the one before, wrapping around. Returns its position in
  /// words, or that there is none. Reads.
  Result<std::string> select_bad(Direction direction);
  /// The elements around the current one, loaded on first use; null if the tensor is unreadable or empty. The
  /// other two read nothing; `elements_wait`: true if `elements` would.
  const ElementPage* elements();
  const ElementPage* read_elements() const { return values_.elements(selection_.tensor, shown_element()); }
  bool elements_wait() const;
  /// "parameters/head.weight[1, 6] = nan  0x7e00  0 11111 1000000000", of what was read; "" for nothing.
  std::string element_text() const;
  /// The culprit's values that are shown side by side (shown_values), loaded on first use; null if the file
  /// holds none. The other two read nothing; `culprit_waits`: true if `culprit_side` would.
  const SideBySide* culprit_side();
  const SideBySide* read_culprit_side() const { return values_.side(culprit_name()); }
  bool culprit_waits() const { return !culprit_name().empty() && read_culprit_side() == nullptr; }
  /// The weight by which curves are smoothed (smoothing.h), 0 for not at all; kept below 1.
  void select_smoothing(double weight);
  /// The format with which its values are compared.
  void select_what_if(const WhatIf& what) { selection_.what_if = what; }

  /// The user's notes on places of this run; they are stored elsewhere (desk.h), never in the run.
  const std::vector<Note>& notes() const { return notes_; }
  void set_notes(std::vector<Note> notes) { notes_ = std::move(notes); }

  /// Selects a sample of the batch.
  void select_sample(std::int64_t sample);
  /// The batch of the open incident, loaded on first use; null if none is open. `read_batch` reads nothing.
  const Batch* batch();
  const Batch* read_batch() const { return values_.batch(); }
  /// True if `batch` would read.
  bool batch_waits() const { return incident() != nullptr && read_batch() == nullptr; }

 private:
  Session() = default;
  // session.cpp: opening
  Status load();
  Status load_file();
  Status load_run();
  void load_incident(int row);
  void load_series(std::int32_t rank);
  std::vector<int> opening_order() const;
  void start_selection();
  int rank_that_made_it();
  void note_reading(bool incidents = true);
  /// The list, for changing: other copies keep theirs.
  std::vector<IncidentEntry>& own_incidents();
  bool stopped() const { return progress_ != nullptr && progress_->stopped(); }

  // session_follow.cpp: a run that changes while it is shown
  Status reload_own();
  bool poll_own();
  bool poll_folder();
  bool poll_beside();
  bool read_manifest_again();

  // selection.cpp, selected_values.cpp
  int incident_to_open(double step) const;
  void keep_statistic();
  void show_tensor(const std::string& path);
  const StoredTensor* stored_tensor() const;
  std::string culprit_name() const;
  void start_sample();

  /// What was read: shared by copies, and replaced, never changed.
  template <class T>
  using Read = std::shared_ptr<const T>;

  std::string title_, nothing_because_;
  bool nothing_ = false;
  Read<RunFolder> folder_;
  Read<StepDiff> diff_;
  RunFiles files_;
  std::optional<Manifest> manifest_;
  std::string manifest_error_, lost_;
  Read<std::vector<IncidentEntry>> incidents_ = std::make_shared<std::vector<IncidentEntry>>();
  Read<ReadIncident> shown_ = std::make_shared<ReadIncident>();  ///< the selected incident
  IncidentValues values_;
  RunSeries series_;
  Selection selection_;
  std::uint64_t reading_ = 0, content_ = 0;
  RunsBeside beside_;
  std::vector<Note> notes_;
  Progress* progress_ = nullptr;
};

}  // namespace nanquest::viewer
