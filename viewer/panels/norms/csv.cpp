#include <sstream>

#include "viewer/model/numbers.h"
#include "viewer/model/session.h"
#include "viewer/panels/records.h"

namespace nanquest::viewer {

/// One row per step: scalars, then the selected statistic of every layer.
Result<std::string> norms_csv(Session& session) {
  const History& history = session.history();
  const Statistic s = session.selection().statistic;
  std::ostringstream out;
  out << "step";
  for (const std::string& name : history.scalar_names()) out << ',' << csv_field(name);
  for (const std::string& layer : history.layers(s))
    out << ',' << csv_field(std::string(statistic_table(s)) + ":" + layer);
  out << '\n';
  for (std::size_t r = 0; r < history.rows(); ++r) {
    out << exact_number(history.steps()[r]);
    for (const Pyramid& scalar : history.scalars()) out << ',' << exact_number(scalar[r]);
    for (std::size_t i = 0; i < history.layers(s).size(); ++i)
      out << ',' << exact_number(history.series(s, i)[r]);
    out << '\n';
  }
  return out.str();
}

}  // namespace nanquest::viewer
