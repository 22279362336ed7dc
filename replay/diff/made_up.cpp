#include "replay/diff/made_up.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace nanquest::diff {
namespace {

bool is_number(const at::Tensor& t) {
  return t.is_floating_point() || t.is_complex();
}

class WaysToFit {
 public:
  WaysToFit(const at::Tensor& whole, const std::vector<at::Tensor>& parts, const Ways& ways,
            const std::function<bool(const Apart&)>& within)
      : whole_(whole), parts_(parts), ways_(ways), within_(within) {}

  Made made() && {
    const bool same_shapes = std::all_of(parts_.begin(), parts_.end(),
                                         [&](const at::Tensor& t) { return t.sizes() == whole_.sizes(); });
    if (same_shapes && (copies() || (ways_.sums && is_number(whole_) && added()))) return found_;
    for (std::int64_t dim = 0; dim < whole_.dim(); ++dim)
      if (is_part_along(dim) && (along(dim) || (dim == 0 && in_turn()))) return found_;
    return found_;
  }

 private:
  std::vector<double> scales() const {
    const auto ranks = static_cast<double>(parts_.size());
    return ways_.scaled && is_number(whole_) ? std::vector<double>{1, 1 / ranks, ranks}
                                             : std::vector<double>{1};
  }

  /// Whether this value is the whole, or what scaling allows of it.
  bool is(MadeUp how, std::int64_t dim, const at::Tensor& value) {
    const std::vector<double> all = scales();
    return std::any_of(all.begin(), all.end(), [&](double scale) {
      const at::Tensor scaled = scale == 1 ? value : value.to(at::kDouble) * scale;
      return is_within(how, dim, apart(whole_, scaled.to(whole_.scalar_type())));
    });
  }

  bool is_within(MadeUp how, std::int64_t dim, const Apart& distance) {
    const bool fits = within_(distance);
    if (fits || found_.how == MadeUp::other_shapes || distance.whole < found_.apart.whole)
      found_ = {fits ? how : MadeUp::nothing, dim, distance};
    return fits;
  }

  bool copies() {
    for (const double scale : scales()) {
      Apart farthest;
      for (const at::Tensor& part : parts_)
        farthest.at_least(
            apart(whole_, scale == 1 ? part : (part.to(at::kDouble) * scale).to(whole_.scalar_type())));
      if (is_within(MadeUp::copies, 0, farthest)) return true;
    }
    return false;
  }

  bool added() {
    at::Tensor sum = at::zeros(
        whole_.sizes(), whole_.options().dtype(whole_.is_complex() ? at::kComplexDouble : at::kDouble));
    for (const at::Tensor& part : parts_) sum += part;
    if (is(MadeUp::sum, 0, sum.to(whole_.scalar_type()))) return true;
    if (whole_.numel() != 1 || whole_.is_complex()) return false;
    sum.zero_();
    for (const at::Tensor& part : parts_) sum += part.to(at::kDouble).square();
    return is(MadeUp::norm, 0, sum.sqrt().to(whole_.scalar_type()));
  }

  bool is_part_along(std::int64_t dim) const {
    std::int64_t size = 0;
    for (const at::Tensor& part : parts_) {
      if (part.dim() != whole_.dim()) return false;
      for (std::int64_t d = 0; d < whole_.dim(); ++d)
        if (d != dim && part.size(d) != whole_.size(d)) return false;
      size += part.size(dim);
    }
    return size == whole_.size(dim);
  }

  bool along(std::int64_t dim) { return is(MadeUp::along, dim, at::cat(parts_, dim)); }

  /// Sample i of the whole is sample i / n of rank i modulo n, as DistributedSampler draws; a sample may have
  /// several rows.
  bool in_turn() {
    const std::int64_t rows = parts_.front().size(0), samples = ways_.samples;
    if (samples <= 0 || rows % samples != 0) return false;
    std::vector<at::Tensor> by_sample;
    for (const at::Tensor& part : parts_) {
      if (part.size(0) != rows) return false;
      by_sample.push_back(part.contiguous().view({samples, -1}));
    }
    return is(MadeUp::in_turn, 0, at::stack(by_sample, 1).reshape(whole_.sizes()));
  }

  const at::Tensor& whole_;
  const std::vector<at::Tensor>& parts_;
  const Ways& ways_;
  const std::function<bool(const Apart&)>& within_;
  Made found_;
};

}  // namespace

Made made_up(const at::Tensor& whole, const std::vector<at::Tensor>& parts, const Ways& ways,
             const std::function<bool(const Apart&)>& within) {
  if (!whole.defined() || parts.empty() ||
      std::any_of(parts.begin(), parts.end(), [](const at::Tensor& t) { return !t.defined(); }))
    return {};
  return WaysToFit(whole, parts, ways, within).made();
}

std::string in_words(const Made& made) {
  switch (made.how) {
    case MadeUp::copies:
      return "each rank has it";
    case MadeUp::along:
      return "each rank has a part of dimension " + std::to_string(made.dim);
    case MadeUp::in_turn:
      return "the ranks have the samples in turn";
    case MadeUp::sum:
      return "the ranks have parts of a sum";
    case MadeUp::norm:
      return "the ranks have the norms of parts";
    default:
      return "";
  }
}

}  // namespace nanquest::diff
