#include "replay/rewind/numbers.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <map>
#include <optional>
#include <utility>

namespace nanquest {
namespace {

std::optional<std::size_t> position_in(const OpRow& op, const std::string& name) {
  const auto schema = c10::Dispatcher::singleton().findSchema({op.name, op.overload});
  if (!schema) return std::nullopt;
  const auto position = schema->schema().argumentIndexWithName(name);
  if (!position) return std::nullopt;
  const auto kind = schema->schema().arguments()[static_cast<std::size_t>(*position)].type()->kind();
  if (kind != c10::TypeKind::FloatType && kind != c10::TypeKind::NumberType) return std::nullopt;
  return static_cast<std::size_t>(*position);
}

}  // namespace

std::vector<NumberPlace> places_of(const std::vector<TapeStep>& steps, const SnapshotDoc& trace,
                                   const std::string& name) {
  std::vector<NumberPlace> found;
  std::map<std::pair<std::string, std::string>, std::optional<std::size_t>> known;
  for (const TapeStep& step : steps)
    for (std::int32_t i = step.gate; i < step.end; ++i) {
      const OpRow& op = trace.ops[static_cast<std::size_t>(i)];
      const auto [at, fresh] = known.try_emplace({op.name, op.overload});
      if (fresh) at->second = position_in(op, name);
      if (at->second) found.push_back({i, *at->second});
    }
  return found;
}

}  // namespace nanquest
