#include "replay/diff/rank_inputs.h"

#include <map>
#include <string>

#include "replay/diff/align.h"
#include "replay/diff/made_up.h"

namespace nanquest::diff {
namespace {

using NamedTensors = std::vector<NamedTensor> SnapshotDoc::*;

class GivenToRanks {
 public:
  GivenToRanks(const Replayer& one, const std::vector<Replayer>& ranks) : one_(one), ranks_(ranks) {}

  Given given() && {
    group(&SnapshotDoc::batch, Kind::batch);
    for (const NamedTensors persists :
         {&SnapshotDoc::parameters, &SnapshotDoc::buffers, &SnapshotDoc::optimizer})
      group(persists, Kind::state);
    return std::move(given_);
  }

 private:
  at::Tensor stored(const Replayer& replayer, const NamedTensor& value) const {
    if (value.data.empty()) return {};
    const auto found = replayer.tensor(value.data);
    return found ? *found : at::Tensor();
  }

  void group(NamedTensors values, Kind kind) {
    std::vector<std::map<std::string, const NamedTensor*>> by_name(ranks_.size());
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      for (const NamedTensor& value : ranks_[i].doc().*values)
        by_name[i].emplace(plain_path(value.name), &value);
    for (const NamedTensor& value : one_.doc().*values) {
      const std::string name = plain_path(value.name);
      const at::Tensor whole = stored(one_, value);
      std::vector<at::Tensor> parts;
      for (std::size_t i = 0; i < ranks_.size(); ++i)
        if (const auto found = by_name[i].find(name); found != by_name[i].end())
          if (const at::Tensor part = stored(ranks_[i], *found->second); part.defined())
            parts.push_back(part);
      if (!whole.defined() || parts.empty()) continue;
      judge(name, kind, whole, parts);
    }
  }

  void judge(const std::string& name, Kind kind, const at::Tensor& whole,
             const std::vector<at::Tensor>& parts) {
    const bool is_batch = kind == Kind::batch;
    const std::int64_t rows = is_batch && parts.front().dim() > 0 ? parts.front().size(0) : 0;
    const Made made =
        made_up(whole, parts, {false, false, rows}, [](const Apart& found) { return !found.any(); });
    if (is_batch && (made.how == MadeUp::in_turn || (made.how == MadeUp::along && made.dim == 0)))
      given_.samples = rows;
    if (made.how != MadeUp::nothing && !(is_batch && made.how == MadeUp::other_shapes)) return;
    if (given_.differ.empty() || given_.differ.back().kind != kind) {
      Finding& finding = given_.differ.emplace_back();
      finding.kind = kind;
      finding.name = name, finding.distance = {made.apart.whole, 0};
    }
    ++given_.differ.back().places;
  }

  const Replayer& one_;
  const std::vector<Replayer>& ranks_;
  Given given_;
};

}  // namespace

Given compare_given(const Replayer& one, const std::vector<Replayer>& ranks) {
  return GivenToRanks(one, ranks).given();
}

}  // namespace nanquest::diff
