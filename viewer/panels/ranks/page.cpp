#include <algorithm>

#include "viewer/model/numbers.h"
#include "viewer/model/rank_grid.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

/// Ranks that are listed one by one, the most informative first.
constexpr std::size_t kRanksAtAGlance = 12;

int telling(const RankCell& cell) {
  return cell.first                                            ? 0
         : cell.left == RankLeft::file                         ? 1
         : cell.row && cell.row->standing != Standing::arrived ? 2
         : cell.left != RankLeft::row                          ? 3
                                                               : 4;
}

/// "4,090 got it by a collective, 2 had a bad loss": summary of the ranks that left a row.
std::string rows_text(const RankGrid& grid) {
  std::vector<std::pair<std::string, std::size_t>> kinds;
  for (const RankCell& cell : grid.cells) {
    if (cell.left != RankLeft::row) continue;
    auto kind = std::ranges::find(kinds, cell.says, &std::pair<std::string, std::size_t>::first);
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {cell.says, 0});
    ++kind->second;
  }
  std::string text;
  for (const auto& [says, count] : kinds) text += (text.empty() ? "" : ", ") + grouped(count) + " " + says;
  return text;
}

/// Ranks that left nothing, as ranges: "5, 9 to 12".
std::string missing_text(const RankGrid& grid) {
  std::string text;
  int ranges = 0;
  for (std::size_t i = 0; i < grid.cells.size(); ++i) {
    if (grid.cells[i].left != RankLeft::nothing) continue;
    std::size_t last = i;
    while (last + 1 < grid.cells.size() && grid.cells[last + 1].left == RankLeft::nothing) ++last;
    if (++ranges > 8) return text + ", …";
    text += (text.empty() ? "" : ", ") + std::to_string(i) + (last > i ? " to " + std::to_string(last) : "");
    i = last;
  }
  return text;
}

}  // namespace

PanelPage page_of_ranks(Session& session, Extent extent) {
  const RankGrid grid = rank_grid(session);
  PanelPage page;
  page.headline = grid.headline();
  const auto add = [&](const char* label, const std::string& text) {
    if (!text.empty()) page.facts.push_back({label, text});
  };
  add("First", grid.first_text);
  add("Verdict", grid.verdict_text);
  add("Rows", rows_text(grid));
  add("Missing", missing_text(grid));
  if (grid.cut) add("Listed", "the first " + grouped(static_cast<std::uint64_t>(kMostRanks)) + " ranks");
  if (grid.cells.empty()) return page;
  std::vector<const RankCell*> cells;
  for (const RankCell& cell : grid.cells) cells.push_back(&cell);
  const std::size_t most = extent == Extent::whole ? kWholeRows : kRanksAtAGlance;
  std::ranges::stable_sort(cells, {}, [](const RankCell* cell) { return telling(*cell); });
  const std::size_t others = cells.size() > most ? cells.size() - most : 0;
  cells.resize(cells.size() - others);
  std::ranges::sort(cells, {}, &RankCell::rank);
  PageTable table{
      PageTable::Kind::plain,
      others == 0 ? "Ranks" : "Ranks that tell the most; " + grouped(others) + " more are in the CSV",
      {{"Rank", true}, {"Left"}, {"Says"}, {"Collectives before it", true}, {"What"}},
      {}};
  for (const RankCell* cell : cells)
    table.rows.push_back({{std::to_string(cell->rank), words_of(cell->left),
                           (cell->first ? "was the first; " : "") + cell->says,
                           cell->row && cell->row->collectives >= 0
                               ? grouped(static_cast<std::uint64_t>(cell->row->collectives))
                               : "",
                           cell->about},
                          cell->first ? Sign::non_finite : Sign::none,
                          std::nullopt,
                          0,
                          cell->rank});
  page.tables.push_back(std::move(table));
  return page;
}

}  // namespace nanquest::viewer
