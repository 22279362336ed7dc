#include "viewer/model/rank_grid.h"

#include <algorithm>

#include "viewer/model/numbers.h"

namespace nanquest::viewer {
namespace {

const char* words_of(Standing standing) {
  switch (standing) {
    case Standing::made_here:
      return "had something bad of its own";
    case Standing::loss_bad:
      return "had a bad loss";
    case Standing::arrived:
      return "got it by a collective";
    case Standing::unknown:
      break;
  }
  return "had bad gradients of unknown origin";
}

/// The largest stated number of ranks; a rank that has left something counts as well.
std::int32_t world_of(const Session& session) {
  std::int32_t size = session.manifest() ? session.manifest()->world_size : 1;
  if (session.incident() != nullptr) size = std::max(size, session.incident()->doc.world_size);
  if (session.verdict() && session.verdict()->ranks)
    size = std::max(size, session.verdict()->ranks->world_size);
  for (const auto& [rank, row] : session.rank_rows()) size = std::max({size, row.world_size, rank + 1});
  for (const IncidentEntry& e : session.incidents())
    if (e.files.rank < kMostRanks) size = std::max(size, e.files.rank + 1);
  return size;
}

/// Their files; of a step that was tried again the last of each.
void add_files(const Session& session, RankGrid& grid) {
  for (std::size_t i = 0; i < session.incidents().size(); ++i) {
    const IncidentEntry& e = session.incidents()[i];
    const auto rank = static_cast<std::size_t>(e.files.rank);
    if (e.files.step != grid.step || e.files.rank < 0 || rank >= grid.cells.size()) continue;
    RankCell& cell = grid.cells[rank];
    if (e.snapshot == Snapshot::never_written && cell.row) continue;
    cell.incident = static_cast<int>(i);
    cell.left = e.snapshot == Snapshot::here   ? RankLeft::file
                : e.snapshot == Snapshot::lost ? RankLeft::lost
                                               : RankLeft::nothing;
    cell.says = e.standing();
    cell.about = e.summary.empty() ? e.files.snapshot : e.summary;
  }
}

void add_rows(const Session& session, RankGrid& grid) {
  for (const auto& [rank, row] : session.rank_rows()) {
    if (rank < 0 || static_cast<std::size_t>(rank) >= grid.cells.size()) continue;
    RankCell& cell = grid.cells[static_cast<std::size_t>(rank)];
    cell.row = row;
    cell.left = RankLeft::row;
    cell.says = words_of(row.standing);
    cell.about = row.text;
  }
}

/// The verdict has compared the files; the rows only show which rank reported first.
std::optional<std::int32_t> first_of(const Session& session, RankGrid& grid) {
  if (session.verdict() && session.verdict()->ranks && session.verdict()->ranks->first) {
    const RankCulprit& first = *session.verdict()->ranks->first;
    grid.first_text = "rank " + std::to_string(first.rank) + ", says the verdict";
    if (!first.op.empty())
      grid.first_text += ": " + first.op + (first.module.empty() ? "" : " in " + first.module);
    return first.rank;
  }
  for (const auto& [rank, row] : session.rank_rows())
    if (row.first >= 0) {
      grid.first_text = "rank " + std::to_string(row.first) +
                        ", say the rows: no other said earlier that a bad value was its own";
      return row.first;
    }
  return std::nullopt;
}

}  // namespace

const char* words_of(RankLeft left) {
  switch (left) {
    case RankLeft::row:
      return "a row";
    case RankLeft::file:
      return "a whole file";
    case RankLeft::lost:
      return "a file that is not here";
    case RankLeft::nothing:
      break;
  }
  return "nothing";
}

std::string RankCell::text() const {
  std::string words =
      "rank " + std::to_string(rank) + (first ? ", the first," : "") + " left " + words_of(left);
  if (!says.empty()) words += ": " + says;
  return words;
}

std::size_t RankGrid::count(RankLeft left) const {
  return static_cast<std::size_t>(std::ranges::count(cells, left, &RankCell::left));
}

std::string RankGrid::headline() const {
  if (step < 0) return "No incident is selected, so no rank has left anything of it";
  if (cells.empty()) return "Step " + std::to_string(step) + ": the run is one process";
  std::string parts;
  for (const RankLeft left : {RankLeft::file, RankLeft::row, RankLeft::lost, RankLeft::nothing})
    if (const std::size_t ranks = count(left); ranks > 0) {
      parts += parts.empty() ? ": " : ", ";
      parts += grouped(ranks) +
               (parts == ": " ? " of " + counted(static_cast<std::uint64_t>(world_size), "rank") + " left "
                              : " ") +
               words_of(left);
    }
  return "Step " + std::to_string(step) + parts;
}

RankGrid rank_grid(const Session& session) {
  RankGrid grid;
  if (session.entry() == nullptr) return grid;
  grid.step = session.entry()->files.step;
  grid.world_size = world_of(session);
  if (session.verdict() && session.verdict()->ranks) grid.verdict_text = session.verdict()->ranks->text;
  if (grid.world_size <= 1) return grid;
  grid.cut = grid.world_size > kMostRanks;
  grid.cells.resize(static_cast<std::size_t>(std::min(grid.world_size, kMostRanks)));
  for (std::size_t i = 0; i < grid.cells.size(); ++i) grid.cells[i].rank = static_cast<std::int32_t>(i);
  add_rows(session, grid);
  add_files(session, grid);
  if (const auto first = first_of(session, grid);
      first && *first >= 0 && *first < kMostRanks && static_cast<std::size_t>(*first) < grid.cells.size())
    grid.cells[static_cast<std::size_t>(*first)].first = true;
  return grid;
}

}  // namespace nanquest::viewer
