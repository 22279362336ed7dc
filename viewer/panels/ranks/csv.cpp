#include <sstream>

#include "viewer/model/rank_grid.h"
#include "viewer/panels/records.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {

/// Every rank.
Result<std::string> ranks_csv(Session& session) {
  const RankGrid grid = rank_grid(session);
  std::ostringstream out;
  out << "step,rank,left,first,says,collectives_before,what,snapshot\n";
  for (const RankCell& cell : grid.cells)
    record(
        out, std::to_string(grid.step), std::to_string(cell.rank), std::string(words_of(cell.left)),
        std::string(cell.first ? "yes" : ""), one_line(cell.says),
        cell.row && cell.row->collectives >= 0 ? std::to_string(cell.row->collectives) : "",
        one_line(cell.about),
        cell.incident < 0 ? "" : session.incidents()[static_cast<std::size_t>(cell.incident)].files.snapshot);
  return out.str();
}

}  // namespace nanquest::viewer
