/// together: the result of replaying several ranks of a step together: which rank had the first bad value, by
/// which collectives it spread, what it reached, and whether every collective's recorded result follows from
/// the ranks' inputs.
///
///     std::puts(to_text(verdict).c_str());       // for people
///     write_file_atomically(path, to_json(verdict));
///
/// The file "nanquest.ranks", version 1. A new field may be added at any time; a change of meaning increases
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

/// How a recorded result agrees with the one computed from all ranks' inputs. `within`: a sum of more than
/// two ranks in unspecified order, no further off than any order can bring it. `unknown`: it could not be
/// computed.
enum class Follows : std::uint8_t { exact, within, differs, unknown };
std::string_view word(Follows follows);

/// What was found. `rank`: a rank made the bad value, or began the step with it; `collective`: all ranks
/// passed finite numbers and got bad ones; `unknown`: it came from a rank whose inputs are not here; `none`:
/// no harm was found.
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
  std::int64_t first = -1;                   ///< the first element that differs, counted through all of its
                                             ///< tensors
  double recorded = 0, computed = 0;         ///< the values there
};

struct CollectiveInfo {
  std::string op;                            ///< "c10d::allreduce_"
  std::string group;                         ///< "" if the files don't say
  std::string reduction;                     ///< "sum"; "" for one that does not reduce
  std::vector<std::int32_t> ranks, missing;  ///< members; those whose inputs are not here
  Follows follows = Follows::unknown;        ///< the worst of its ranks
  double distance = 0, bound = 0;            ///< `within`: the largest difference, and the limit
  std::string why_not;                       ///< `unknown`: why
  std::vector<CollectiveAtRank> at;          ///< by rank
};

/// A collective that carried the bad value to ranks that did not have it.
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

/// The ranks run once more, with only the first bad value made harmless and every collective computed anew.
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
  std::int64_t element = -1;  ///< index of its first element in which the first differing rank differs from
                              ///< the majority
  std::vector<std::int32_t> odd;  ///< ranks whose values differ from the others'; all, if there is no
                                  ///< majority
  bool known = false;             ///< more than half of the ranks hold the same
};

/// Why only one rank is bad.
enum class Alone : std::uint8_t {
  desynchronised,  ///< it began the step with other weights than all others
  hardware,        ///< from the same inputs another rank, and the replay, got a different result
};
std::string_view word(Alone alone);

struct AloneInfo {
  Alone why = Alone::desynchronised;
  std::int32_t rank = 0;
  std::int64_t index = -1;  ///< `hardware`: row of the operation with the different result
  std::string op, module;
  std::int32_t witness = -1;  ///< … and the rank whose result from the same inputs equals the replay's
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
  std::vector<std::int32_t> missing, rows;  ///< ranks without a file: those that left nothing; those that
                                            ///< left a row
  std::int32_t rows_name = -1;  ///< the rank that the rows name as the first, if its file is missing
  std::string writers;          ///< which files were written by which version, if not all by the same;
                                ///< otherwise ""
  std::vector<CollectiveInfo> collectives;  ///< in the order of the step
  RanksFinding finding = RanksFinding::none;
  std::optional<RankCulprit> first;
  BadValue value = BadValue::none;  ///< of `first`
  std::int64_t made_by = -1;        ///< `collective`: index of the one that made it
  std::string came_from;            ///< `unknown`: "ranks 2, 3, whose files are not here"
  std::vector<RankHop> path;
  std::vector<RankShown> shown;
  RanksProof proof;
  std::optional<ReplicasInfo> replicas;  ///< nothing if the files don't say that weights are alike
  std::optional<AloneInfo> alone;        ///< nothing if it is unknown

  bool any_differs() const;
  /// Whether weights that should be alike differ.
  bool replicas_differ() const { return replicas && replicas->different > 0; }
};

/// The file's content, indented, ends with a newline.
std::string to_json(const RanksVerdict& verdict);

/// For a terminal; ends with a newline.
std::string to_text(const RanksVerdict& verdict);

}  // namespace nanquest
