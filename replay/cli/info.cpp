#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "probe/snapshot/reader.h"
#include "probe/snapshot/sharing.h"
#include "probe/trace/culprit.h"
#include "replay/cli/commands.h"
#include "replay/history/columns.h"
#include "replay/history/growth.h"

namespace nanquest::cli {
namespace {

std::uint64_t twin_bytes(const SnapshotReader& reader) {
  std::uint64_t bytes = 0;
  const auto all = reader.tensors();
  for (const TwinValue& value : reader.doc().twin.values)
    for (const TensorInfo& tensor : *all)
      if (tensor.path == value.data) bytes += tensor.bytes;
  return bytes;
}

/// What the file has of the last healthy step; "" if nothing.
std::string twin_text(const SnapshotReader& reader) {
  const Twin& twin = reader.doc().twin;
  if (twin.step < 0) return "";
  return "the batch of healthy step " + std::to_string(twin.step) + ": " +
         std::to_string(twin.values.size()) + " tensors, " + std::to_string(twin_bytes(reader)) + " bytes; " +
         std::to_string(twin.ops) + " of " + std::to_string(reader.doc().ops.size()) + " ops are alike";
}

/// The steps on the file's tape: first and last; nothing if there are none that can be read.
std::optional<std::pair<std::int64_t, std::int64_t>> taped_steps(const SnapshotReader& reader) {
  if (!reader.has_tape()) return std::nullopt;
  const auto tape = reader.read_tape();
  if (!tape || tape->steps.empty()) return std::nullopt;
  return std::pair(tape->steps.front().step, std::max(tape->steps.back().step, reader.doc().step));
}

/// What the file needs from another one.
struct Needed {
  std::uint64_t bytes = 0;
  std::size_t tensors = 0;
  Result<std::string> where;  ///< path, or what is wrong with it
};

std::map<std::string, Needed> needed_files(const SnapshotReader& reader) {
  std::map<std::string, Needed> files;
  for (const FileReference& reference : reader.references()) {
    const auto at = files.try_emplace(reference.file, Needed{0, 0, reader.where(reference)}).first;
    at->second.bytes += bytes_of(reference);
    ++at->second.tensors;
  }
  return files;
}

void print_needed(const SnapshotReader& reader) {
  for (const auto& [file, needed] : needed_files(reader)) {
    std::printf("elsewhere   %s of frozen weights (%zu tensor%s) are in %s\n",
                size_text(needed.bytes).c_str(), needed.tensors, needed.tensors == 1 ? "" : "s",
                file.c_str());
    if (!needed.where)
      std::printf("            %s\n", needed.where.error().text().c_str());
    else if (*needed.where != file)
      std::printf("            found as %s\n", needed.where->c_str());
  }
}

void print_text(const SnapshotReader& reader) {
  const SnapshotDoc& doc = reader.doc();
  std::printf("snapshot    %s (format %d.%d, written by %s)\n", reader.path().c_str(), reader.format_major(),
              reader.format_minor(), doc.writer.c_str());
  std::printf("step        %lld, rank %d of %d%s%s\n", static_cast<long long>(doc.step), doc.rank,
              doc.world_size, doc.created_utc.empty() ? "" : ", ", doc.created_utc.c_str());
  std::printf("culprit     %s\n", describe_culprit(doc).c_str());
  for (const auto& [what, text] : sharing_lines(sharing_of(doc)))
    std::printf("%-11s %s\n", what.c_str(), text.c_str());
  std::printf("trace       %zu ops, %zu storages, %zu tensor uses, basis %s\n", doc.ops.size(),
              doc.slots.size(), doc.tensors.size(), doc.basis.c_str());
  std::printf(
      "state       %zu parameters, %zu buffers, %zu optimizer tensors, %zu batch tensors, %zu samples\n",
      doc.parameters.size(), doc.buffers.size(), doc.optimizer.size(), doc.batch.size(),
      doc.sample_ids.size());
  print_needed(reader);
  if (const std::string twin = twin_text(reader); !twin.empty())
    std::printf("twin        %s\n", twin.c_str());
  if (const auto steps = taped_steps(reader))
    std::printf("tape        steps %lld to %lld (nanquest-replay rewind)\n",
                static_cast<long long>(steps->first), static_cast<long long>(steps->second));
  for (const SeriesTable& t : doc.history)
    std::printf("history     %s: %zu steps × %zu columns\n", t.name.c_str(), t.rows(), t.columns.size());
  std::map<std::string, int> ops;
  for (const OpRow& op : doc.ops)
    ++ops[op.module == kNone ? "" : doc.modules[static_cast<std::size_t>(op.module)].path];
  for (const auto& [path, count] : ops)
    std::printf("module      %s: %d ops\n", path.empty() ? "(outside any)" : path.c_str(), count);
  for (const auto& [name, value] : doc.environment)
    std::printf("environment %s = %.120s\n", name.c_str(), value.c_str());
}

/// [step, loss] of the steps in the file's history, oldest first, without losses that are NaN.
nlohmann::ordered_json losses_of(const SnapshotDoc& doc) {
  nlohmann::ordered_json found = nlohmann::ordered_json::array();
  const std::vector<double> steps = column_named(doc, "scalars", "step"),
                            losses = column_named(doc, "scalars", "loss");
  for (std::size_t row = 0; row < std::min(steps.size(), losses.size()); ++row)
    if (std::isfinite(losses[row])) found.push_back({static_cast<std::int64_t>(steps[row]), losses[row]});
  return found;
}

void print_json(const SnapshotReader& reader) {
  const SnapshotDoc& doc = reader.doc();
  nlohmann::ordered_json modules = nlohmann::ordered_json::array();
  for (const ModuleRow& m : doc.modules) modules.push_back({{"path", m.path}, {"type", m.type}});
  nlohmann::ordered_json j = {
      {"snapshot", reader.path()},
      {"format_version", std::to_string(reader.format_major()) + "." + std::to_string(reader.format_minor())},
      {"writer", doc.writer},
      {"step", doc.step},
      {"rank", doc.rank},
      {"world_size", doc.world_size},
      {"created_utc", doc.created_utc},
      {"basis", doc.basis},
      {"ops", doc.ops.size()},
      {"slots", doc.slots.size()},
      {"tensors", doc.tensors.size()},
      {"parameters", doc.parameters.size()},
      {"samples", doc.sample_ids},
      {"modules", modules},
      {"environment", doc.environment},
      {"config", doc.config},
      {"losses", losses_of(doc)},
      {"growth", weights_grew(doc)},
      {"culprit", describe_culprit(doc)}};
  if (const Sharing sharing = sharing_of(doc); !sharing_lines(sharing).empty())
    j["shared"] = {{"redacted", sharing.redacted},
                   {"left_out", sharing.left_out},
                   {"verdict_before", sharing.verdict},
                   {"wrong", sharing.wrong}};
  for (const auto& [file, needed] : needed_files(reader))
    j["elsewhere"].push_back({{"file", file},
                              {"bytes", needed.bytes},
                              {"tensors", needed.tensors},
                              {"found", needed.where ? nlohmann::ordered_json(*needed.where) : nullptr}});
  if (doc.twin.step >= 0)
    j["twin"] = {{"step", doc.twin.step},
                 {"ops", doc.twin.ops},
                 {"tensors", doc.twin.values.size()},
                 {"bytes", twin_bytes(reader)}};
  if (const auto steps = taped_steps(reader))
    j["tape"] = {{"first_step", steps->first}, {"last_step", steps->second}};
  std::printf("%s\n", j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

}  // namespace

int info_command(const Common& common) {
  const auto reader = SnapshotReader::open(common.snapshot);
  if (!reader) return fail(reader.error());
  common.json ? print_json(*reader) : print_text(*reader);
  return static_cast<int>(ExitCode::ok);
}

}  // namespace nanquest::cli
