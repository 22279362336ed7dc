#include "probe/step/election.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include "probe/snapshot/new_file.h"

namespace nanquest {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kFirstLook{10}, kLongestLook{160};

/// Waits for the first rank's answer until `until`, looking less and less often.
std::optional<RankRow> wait_for_first(const std::string& path, Clock::time_point until) {
  for (auto pause = kFirstLook;; pause = std::min(2 * pause, kLongestLook)) {
    if (auto first = read_rank_row(path)) return first;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) return std::nullopt;
    std::this_thread::sleep_for(std::min(pause, left));
  }
}

bool says_its_own(Standing standing) {
  return standing == Standing::made_here || standing == Standing::loss_bad;
}

}  // namespace

Seat Election::seat(const RankRow& own, const RankRow& first) const {
  const std::int32_t behind =
      (rank_ - first.rank + world_size_) % world_size_;  // ranks from the first one to this one
  const bool near = behind == 0 || behind == 1 || behind == world_size_ - 1 || behind == world_size_ / 2;
  const bool earlier =
      own.standing == Standing::made_here && own.collectives >= 0 && first.collectives > own.collectives;
  if (near || earlier) return {};
  return {false, first.rank, first.text};
}

Seat Election::hold(std::int64_t step, RankRow row) {
  if (!needed()) return {};
  const int times = ++held_[step];
  std::string attempt = options_.restart || times > 1 ? std::to_string(options_.restart + 1) : "";
  if (times > 1) attempt.append("-").append(std::to_string(times));
  row.step = step;
  row.rank = rank_;
  row.world_size = world_size_;
  const std::string path = first_rank_path(run_dir_, step, attempt);
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  if (says_its_own(row.standing) && make_new_file(path, to_line(row)) != NewFile::exists) return {};
  const auto first = wait_for_first(path, Clock::now() + options_.patience);
  if (!first || first->step != step || first->world_size != world_size_) return {};
  Seat found = seat(row, *first);
  if (found.whole) return found;
  row.first = first->rank;
  // One operation, in the directory in which thousands of ranks write at once. A half-written row is ignored.
  const NewFile made = make_new_file(rank_row_path(run_dir_, step, rank_, attempt), to_line(row));
  return made == NewFile::failed ? Seat{} : found;
}

}  // namespace nanquest
