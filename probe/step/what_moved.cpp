#include "probe/step/what_moved.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "probe/step/history.h"
#include "probe/step/one_line.h"

namespace nanquest {
namespace {

constexpr std::int64_t kEarlier = 32,
                       kAround = 16;  // steps before `since`: those compared with; those looked at
constexpr double kRate = 1.5, kNorm = 3, kWeights = 1.2;

struct Change {
  std::int64_t step = 0;
  std::string what;
  double times = 0;
};

const SeriesTable* named(const std::vector<SeriesTable>& tables, std::string_view name) {
  const auto found =
      std::find_if(tables.begin(), tables.end(), [&](const SeriesTable& t) { return t.name == name; });
  return found == tables.end() ? nullptr : &*found;
}

double value(const SeriesTable& table, std::size_t row, std::size_t column) {
  return table.values[row * table.columns.size() + column];
}

std::string in_words(const Change& change, std::string_view verb) {
  char times[32];
  std::snprintf(times, sizeof times, "%.2g", change.times);
  return change.what + " " + std::string(verb) + " " + times + "-fold at step " + std::to_string(change.step);
}

}  // namespace

std::string what_moved(const std::vector<SeriesTable>& tables, std::int64_t since) {
  const SeriesTable* const scalars = named(tables, "scalars");
  if (!scalars || scalars->columns.size() < kScalars) return "";
  const std::size_t rows = scalars->values.size() / scalars->columns.size();
  std::vector<std::int64_t> steps;
  steps.reserve(rows);
  for (std::size_t r = 0; r < rows; ++r)
    steps.push_back(static_cast<std::int64_t>(value(*scalars, r, static_cast<std::size_t>(Scalar::step))));
  if (steps.empty()) return "";
  // Where the run has no earlier rows, its first one is compared with.
  const std::int64_t last_usual = std::max(since - kAround, steps.front());

  std::vector<std::pair<Change, std::string_view>> found;
  // The first row from there on at which a column exceeds `times` its largest usual value; and by how much at
  // most.
  const auto look = [&](const SeriesTable& table, std::size_t column, double times, const std::string& what,
                        std::string_view verb) {
    double usual = 0, most = 0;
    std::int64_t first = -1;
    for (std::size_t r = 0; r < rows; ++r) {
      const double v = value(table, r, column);
      if (!std::isfinite(v) || steps[r] < last_usual - kEarlier) continue;
      if (steps[r] <= last_usual) {
        usual = std::max(usual, v);
      } else if (usual > 0 && v > times * usual) {
        if (first < 0) first = steps[r];
        most = std::max(most, v / usual);
      }
    }
    if (first >= 0) found.push_back({{first, what, most}, verb});
  };
  look(*scalars, static_cast<std::size_t>(Scalar::lr), kRate, "the learning rate", "rose");
  look(*scalars, static_cast<std::size_t>(Scalar::grad_norm), kNorm, "the gradient norm", "grew");
  if (const SeriesTable* const weights = named(tables, "weight_norm")) {
    const std::size_t before = found.size();
    for (std::size_t c = 0;
         c < weights->columns.size() && weights->values.size() == rows * weights->columns.size(); ++c)
      look(*weights, c, kWeights, "the weights of " + weights->columns[c], "grew");
    const auto layers = found.begin() + static_cast<std::ptrdiff_t>(before);
    if (layers != found.end()) {  // the one that grew most stands for all
      const auto most = std::max_element(
          layers, found.end(), [](const auto& a, const auto& b) { return a.first.times < b.first.times; });
      std::iter_swap(layers, most);
      found.erase(layers + 1, found.end());
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first.step < b.first.step; });
  std::string text;
  for (const auto& [change, verb] : found) text += (text.empty() ? "" : ", then ") + in_words(change, verb);
  return text;
}

}  // namespace nanquest
