#include "probe/step/history.h"

#include <algorithm>
#include <limits>

namespace nanquest {
namespace {

constexpr std::size_t kRepeated = static_cast<std::size_t>(Scalar::resident);  // and all columns after it
constexpr std::string_view kLayerTableNames[kLayerTables] = {"grad_norm", "weight_norm", "update_ratio",
                                                             "grad_amax", "weight_amax"};

bool repeats(LayerTable table) {
  return table != LayerTable::grad_norm && table != LayerTable::grad_amax;
}

}  // namespace

History::History(int rows, const std::vector<std::string>& layers,
                 const std::vector<std::string>& user_columns)
    : rows_(static_cast<std::size_t>(std::max(rows, 1))), samples_(rows_) {
  Ring scalars{"scalars", {std::begin(kScalarNames), std::end(kScalarNames)}, {}};
  scalars.columns.insert(scalars.columns.end(), user_columns.begin(), user_columns.end());
  rings_.push_back(std::move(scalars));
  for (const std::string_view name : kLayerTableNames) rings_.push_back({std::string(name), layers, {}});
  for (Ring& ring : rings_) ring.values.assign(rows_ * ring.columns.size(), 0);
  current_.resize(rings_.size());
}

void History::begin_row() {
  const std::size_t before = head_;
  const bool first = count_ == 0;
  if (!first) head_ = (head_ + 1) % rows_;
  count_ = std::min(count_ + 1, rows_);
  for (std::size_t t = 0; t < rings_.size(); ++t) {
    const std::span<double> now = at(rings_[t], head_);
    const std::span<double> last = at(rings_[t], before);
    if (t == 0) {
      std::fill(now.begin(), now.begin() + kRepeated, 0.0);
      for (std::size_t c = kRepeated; c < now.size(); ++c)
        now[c] = first ? std::numeric_limits<double>::quiet_NaN() : last[c];
    } else if (first || !repeats(static_cast<LayerTable>(t - 1))) {
      std::fill(now.begin(), now.end(), 0.0);
    } else {
      std::copy(last.begin(), last.end(), now.begin());
    }
  }
  samples_[head_].clear();
}

void History::set(Scalar column, double value) {
  at(rings_[0], head_)[static_cast<std::size_t>(column)] = value;
}

double History::get(Scalar column) const {
  return rings_[0].values[head_ * rings_[0].columns.size() + static_cast<std::size_t>(column)];
}

bool History::set_user(std::string_view column, double value) {
  const std::vector<std::string>& names = rings_[0].columns;
  const auto found = std::find(names.begin() + kScalars, names.end(), column);
  if (found == names.end()) return false;
  at(rings_[0], head_)[static_cast<std::size_t>(found - names.begin())] = value;
  return true;
}

void History::set_samples(const std::vector<std::string>& ids) {
  samples_[head_] = ids;
}

std::span<double> History::row(LayerTable table) {
  return at(rings_[static_cast<std::size_t>(table) + 1], head_);
}

const std::vector<std::span<const double>>& History::current() {
  for (std::size_t t = 0; t < rings_.size(); ++t) current_[t] = at(rings_[t], head_);
  return current_;
}

std::vector<SeriesTable> History::columns() const {
  std::vector<SeriesTable> out;
  for (const Ring& ring : rings_) out.push_back({ring.name, ring.columns, {}});
  return out;
}

std::vector<SeriesTable> History::tables() const {
  std::vector<SeriesTable> out = columns();
  for (std::size_t t = 0; t < rings_.size(); ++t) {
    const std::size_t width = rings_[t].columns.size();
    out[t].values.reserve(count_ * width);
    for (std::size_t i = 0; i < count_; ++i) {
      const std::size_t row = (head_ + rows_ + 1 + i - count_) % rows_;
      const double* values = rings_[t].values.data() + row * width;
      out[t].values.insert(out[t].values.end(), values, values + width);
    }
  }
  return out;
}

std::vector<std::vector<std::string>> History::samples() const {
  std::vector<std::vector<std::string>> out;
  out.reserve(count_);
  for (std::size_t i = 0; i < count_; ++i) out.push_back(samples_[(head_ + rows_ + 1 + i - count_) % rows_]);
  return out;
}

}  // namespace nanquest
