/// Links: places in a run that words name. "aten::mm in blocks.3.mlp", "op 55", "step 131", "sample 3", a
/// module, a layer, a weight: each is a link to that place.
///
///     const Names names(session);                       // once per reading
///     for (const Span& span : names.linked(sentence)) …   // a link, or plain text
///     follow(session, *span.link);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "viewer/model/link.h"
#include "viewer/model/session.h"

namespace nanquest::viewer {

/// The names that texts of a session may contain. Made for what the session holds now (Session::reading).
class Names {
 public:
  /// One pass over ops, layers and tensors.
  explicit Names(const Session& session);
  /// Cuts a text into plain stretches and links; together they are the text.
  std::vector<Span> linked(const std::string& text) const;
  /// The op of that name in that module ("" for any): the culprit, otherwise the first; none if there is
  /// none.
  std::optional<Link> op(const std::string& name, const std::string& module) const;
  /// What a single word means: a layer, a tensor, a module; nothing else.
  std::optional<Link> word(const std::string& word) const;
  /// The op that the verdict or the recording blames.
  std::optional<Link> culprit() const;

 private:
  std::string place_at(const std::string& text, std::size_t at) const;
  std::optional<Link> numbered(std::string_view what, const std::string& number) const;

  const Session* session_;
  std::unordered_map<std::string, std::int32_t> ops_;      ///< the first by name, and by name and module
  std::unordered_map<std::string, std::int32_t> modules_;  ///< the first op of each
  std::unordered_map<std::string, std::string> tensors_;   ///< path by name
  std::int32_t culprit_ = kNone;
};

/// Selects what the link leads to.
void follow(Session& session, const Link& link);

}  // namespace nanquest::viewer
