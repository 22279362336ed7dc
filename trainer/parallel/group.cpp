#include "trainer/parallel/group.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>

namespace nanquest::trainer {
namespace {

class Nobody final : public Group {
 public:
  std::int32_t rank() const override { return 0; }
  std::int32_t size() const override { return 1; }
  std::int32_t local_rank() const override { return 0; }
  std::int32_t local_size() const override { return 1; }
  void sum(std::vector<at::Tensor>) override {}
  void largest(std::vector<at::Tensor>) override {}
  void take_first(std::vector<at::Tensor>) override {}
  std::int64_t least(std::int64_t value) override { return value; }
  void meet() override {}
  void end_all(int) override {}
};

constexpr std::array kCodes = {ErrorCode::usage, ErrorCode::bad_file, ErrorCode::io, ErrorCode::unsupported,
                               ErrorCode::internal};

}  // namespace

Group& nobody_else() {
  static Nobody nobody;
  return nobody;
}

Status agreed(Group& group, const Status& own) {
  if (group.alone()) return own;
  constexpr std::int64_t kWell = std::numeric_limits<std::int64_t>::max();
  constexpr auto kinds = static_cast<std::int64_t>(kCodes.size());
  std::int64_t said = kWell;
  if (!own)
    said =
        group.rank() * kinds + (std::find(kCodes.begin(), kCodes.end(), own.error().code) - kCodes.begin());
  const std::int64_t worst = group.least(said);
  if (worst == kWell) return {};
  if (worst / kinds == group.rank()) return own;
  return Error{kCodes[static_cast<std::size_t>(worst % kinds)], "", ""};
}

int processors_of_rank(Group& group) {
  cpu_set_t bound;
  const auto all = std::max<long>(1, sysconf(_SC_NPROCESSORS_ONLN));
  long own = sched_getaffinity(0, sizeof bound, &bound) == 0 ? CPU_COUNT(&bound) : all;
  if (own >= all) own = all / group.local_size();
  return static_cast<int>(group.least(std::max<long>(1, own)));
}

}  // namespace nanquest::trainer
