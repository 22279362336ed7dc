#include "viewer/model/replayed.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "replay/verdict/replayed_paths.h"
#include "viewer/model/numbers.h"

namespace nanquest::viewer {
namespace {

template <class T>
Status read_column(const SnapshotReader& file, const std::string& path, DType type, std::size_t ops,
                   std::vector<T>& out) {
  const Result<TensorData> data = file.read_tensor(path);
  if (!data) return data.error();
  if (data->dtype != type || data->bytes.size() != ops * sizeof(T))
    return Error{ErrorCode::bad_file,
                 file.path() + ": " + path + " is no column of " + std::to_string(ops) + " ops",
                 "make it again with nanquest-replay SNAPSHOT"};
  out.resize(ops);
  std::memcpy(out.data(), data->bytes.data(), data->bytes.size());
  return {};
}

Status read_run(const SnapshotReader& file, const std::string& name, std::size_t ops, ReplayedRun& run) {
  const auto path = [&](const char* column) { return replayed_column(name, column); };
  if (Status s = read_column(file, path("amax"), DType::float64, ops, run.amax); !s) return s;
  if (Status s = read_column(file, path("nan"), DType::int64, ops, run.nan); !s) return s;
  if (Status s = read_column(file, path("inf"), DType::int64, ops, run.inf); !s) return s;
  if (Status s = read_column(file, path("zero"), DType::int64, ops, run.zero); !s) return s;
  run.off.assign(ops, std::numeric_limits<double>::quiet_NaN());
  return file.has_tensor(path("off")) ? read_column(file, path("off"), DType::float64, ops, run.off)
                                      : Status{};
}

}  // namespace

bool changes_finiteness(const ReplayedValues& a, const ReplayedValues& b) {
  return (a.non_finite() > 0) != (b.non_finite() > 0);
}

double ReplayedValues::relative() const {
  return off == 0 ? 0 : amax > 0 ? off / amax : std::numeric_limits<double>::quiet_NaN();
}

std::optional<ReplayedValues> ReplayedRun::at(OpId op) const {
  const std::size_t i = op.index();
  if (!op || i >= nan.size() || nan[i] < 0) return std::nullopt;
  return ReplayedValues{amax[i], nan[i], inf[i], zero[i], off[i]};
}

bool far_off(const std::optional<ReplayedValues>& recorded, const std::optional<ReplayedValues>& fp64) {
  if (!recorded || !fp64) return false;
  return changes_finiteness(*recorded, *fp64) || fp64->relative() > kFarOff;
}

OpId Replayed::first_divergence() const {
  OpId far;
  for (std::size_t i = 0; i < recorded.nan.size(); ++i) {
    const auto was = recorded.at(OpId{i}), wide = fp64.at(OpId{i});
    if (!was || !wide) continue;
    if (changes_finiteness(*was, *wide)) return OpId{i};
    if (!far && far_off(was, wide)) far = OpId{i};
  }
  return far;
}

Result<std::optional<Replayed>> read_replayed(const SnapshotReader& file, std::size_t ops) {
  std::optional<Replayed> out;
  if (!file.has_tensor(replayed_column(kReplayedRuns[0], "amax"))) return out;
  out.emplace();
  ReplayedRun* runs[] = {&out->recorded, &out->fp32, &out->fp64};
  for (std::size_t i = 0; i < kReplayedRuns.size(); ++i)
    if (Status s = read_run(file, kReplayedRuns[i], ops, *runs[i]); !s) return s.error();
  return out;
}

std::string replayed_text(const std::optional<ReplayedValues>& values) {
  if (!values) return "-";
  if (values->non_finite() == 0) return short_number(values->amax);
  const std::string bad = bad_text(static_cast<std::uint64_t>(values->nan), 0, 0);
  const std::string inf = values->inf == 0 ? "" : grouped(static_cast<std::uint64_t>(values->inf)) + " Inf";
  return bad.empty() ? inf : inf.empty() ? bad : bad + ", " + inf;
}

std::string off_text(const std::optional<ReplayedValues>& recorded,
                     const std::optional<ReplayedValues>& fp64) {
  if (!recorded || !fp64) return "-";
  if (changes_finiteness(*recorded, *fp64))
    return fp64->non_finite() == 0 ? "finite in fp64 alone" : "finite as recorded alone";
  const double relative = fp64->relative();
  return std::isnan(relative) ? "-" : short_number(relative);
}

}  // namespace nanquest::viewer
