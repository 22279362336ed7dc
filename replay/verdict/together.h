/// together: what came of replaying several ranks of a step together: whose bad value was first, by which
/// collectives it went on, what it reached, and whether every collective's recorded result follows from what
/// the ranks gave.
///
///     std::puts(to_text(verdict).c_str());       // for people
///     write_file_atomically(path, to_json(verdict));
///
/// The file "nanquest.ranks", version 1. A new field may be added at any time; a change of meaning bumps
/// kRanksVersion.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "replay/verdict/verdict.h"

namespace nanquest {

inline constexpr std::int64_t kRanksVersion = 1;

/// How a recorded result agrees with the one that was computed of what all ranks gave. `within`: a sum of
/// more than two ranks in unspecified order, and no further off than any order can bring it. `unknown`:
/// it could not be computed.
enum class Follows : std::uint8_t { exact, within, differs, unknown };
std::string_view word(Follows follows);

/// What was found. `rank`: a rank made the bad value, or began the step with it; `collective`: all ranks gave
/// finite numbers and got bad ones; `unknown`: it came from a rank whose inputs are not here; `none`: no harm
/// was seen.
enum class RanksFinding : std::uint8_t { none, rank, collective, unknown };
std::string_view word(RanksFinding finding);

/// A collective as one rank had it.
struct CollectiveAtRank {
  std::int32_t rank = 0;
  std::int64_t index = -1;  ///< row of that rank's trace
  std::string module;       ///< "" is the root
  bool gave_bad = false, got_bad = false;
  Follows follows = Follows::unknown;
  std::int64_t elements = 0, different = 0;  ///< of its result
  std::int64_t first = -1;                   ///< the first that differs, counted through all of its tensors
  double recorded = 0, computed = 0;         ///< there
};

struct CollectiveInfo {
  std::string op;                            ///< "c10d::allreduce_"
  std::string group;                         ///< "" if the files don't say
  std::string reduction;                     ///< "sum"; "" for one that does not reduce
  std::vector<std::int32_t> ranks, missing;  ///< members; those whose inputs are not here
  Follows follows = Follows::unknown;        ///< the worst of its ranks
  double distance = 0, bound = 0;    ///< `within`: the largest that was seen, and what was allowed there
  std::string why_not;               ///< `unknown`: why
  std::vector<CollectiveAtRank> at;  ///< by rank
};

/// A collective that brought the bad value to ranks that did not have it.
struct RankHop {
  std::int64_t collective = -1;  ///< index in RanksVerdict::collectives
  std::vector<std::int32_t> from, to;
};

/// What is bad at the end of a rank's step.
struct RankShown {
  std::int32_t rank = 0;
  bool loss = false;
  std::vector<std::string> gradients;  ///< names of their parameters
};

/// The ranks run once more, the first bad value alone made harmless, every collective computed anew.
struct RanksProof {
  bool tried = false, healed = false;
  std::string change;   ///< what was made harmless
  std::string why_not;  ///< why it was not tried
};

/// Weights that the ranks should hold alike when the step begins, as the files say, and whether they do.
struct ReplicasInfo {
  std::vector<std::int32_t> ranks;           ///< that were compared
  std::int64_t compared = 0, different = 0;  ///< weights
  std::string tensor;                        ///< the first that differs, in the order of the model
  std::int64_t element = -1;  ///< of it, the first on which the first rank that differs is not as the most
  std::vector<std::int32_t> odd;  ///< ranks whose values of it are not those of the others; all, if not known
  bool known = false;             ///< more than half of the ranks hold the same
};

/// Why a rank is bad that no other is.
enum class Alone : std::uint8_t {
  desynchronised,  ///< it began the step with other weights than all others
  hardware,        ///< of the same inputs another rank, and the replay, made something else
};
std::string_view word(Alone alone);

struct AloneInfo {
  Alone why = Alone::desynchronised;
  std::int32_t rank = 0;
  std::int64_t index = -1;  ///< `hardware`: row of the operation that came out otherwise
  std::string op, module;
  std::int32_t witness = -1;  ///< … and the rank that made of the same inputs what the replay makes of them
};

struct RankFile {
  std::int32_t rank = 0;
  std::string file;
  Reproduction reproduction;
};

struct RanksVerdict {
  std::int64_t step = 0;
  std::int32_t world_size = 1;
  std::vector<RankFile> files;              ///< by rank
  std::vector<std::int32_t> missing, rows;  ///< ranks without a file: that left nothing; that left a row
  std::int32_t rows_name = -1;  ///< the rank that the rows name as the first, if its file is not there
  std::string writers;          ///< where not all files were written by the same: whose by what; else ""
  std::vector<CollectiveInfo> collectives;  ///< in the order of the step
  RanksFinding finding = RanksFinding::none;
  std::optional<RankCulprit> first;
  BadValue value = BadValue::none;  ///< of `first`
  std::int64_t made_by = -1;        ///< `collective`: index of the one that made it
  std::string came_from;            ///< `unknown`: "ranks 2, 3, whose files are not here"
  std::vector<RankHop> path;
  std::vector<RankShown> shown;
  RanksProof proof;
  std::optional<ReplicasInfo> replicas;  ///< nothing where the files don't say that weights are alike
  std::optional<AloneInfo> alone;        ///< nothing where it is not known

  bool any_differs() const;
  /// Weights that should be alike are not.
  bool replicas_differ() const { return replicas && replicas->different > 0; }
};

/// The file's content, indented, ends with a newline.
std::string to_json(const RanksVerdict& verdict);

/// For a terminal; ends with a newline.
std::string to_text(const RanksVerdict& verdict);

}  // namespace nanquest
