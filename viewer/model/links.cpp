#include "viewer/model/links.h"

#include <algorithm>
#include <charconv>

namespace nanquest::viewer {
namespace {

std::string key_of(const std::string& name, const std::string& module) {
  return name + '\n' + module;
}

/// A word of a text: [begin, end) without the marks around it.
struct Word {
  std::size_t begin = 0, end = 0;
};

std::vector<Word> spelt_words(const std::string& text) {
  constexpr std::string_view apart = " \n\t,;()[]\"'";
  std::vector<Word> words;
  for (std::size_t at = 0; (at = text.find_first_not_of(apart, at)) != std::string::npos;) {
    const std::size_t end = std::min(text.find_first_of(apart, at), text.size());
    std::size_t last = end;
    while (last > at && (text[last - 1] == ':' || text[last - 1] == '.')) --last;
    if (last > at) words.push_back({at, last});
    at = end;
  }
  return words;
}

/// True for "1", "20" and "0.1": a module of an nn.Sequential may have such a name, but so may any number in
/// the text.
bool is_number(const std::string& word) {
  return word.find_first_not_of("0123456789.") == std::string::npos;
}

/// True if these two words of a text introduce a name: "module 2", "aten::mm in 2".
bool names_next(const std::string& before, const std::string& last) {
  for (const char* word : {"module", "layer", "parameter", "buffer", "tensor"})
    if (last == word) return true;
  return last == "in" && before.find("::") != std::string::npos;
}

}  // namespace

const char* kind_name(Link::Kind kind) {
  constexpr const char* names[] = {"op", "layer", "step", "sample", "tensor", "place"};
  return names[static_cast<int>(kind)];
}

Names::Names(const Session& session) : session_(&session) {
  const OpenIncident* incident = session.incident();
  if (incident == nullptr) return;
  const SnapshotDoc& doc = incident->doc;
  for (std::size_t i = 0; i < doc.ops.size(); ++i) {
    const auto row = static_cast<std::int32_t>(i);
    const std::string module = incident->trace.module(OpId{i});
    ops_.try_emplace(key_of(doc.ops[i].name, module), row);
    ops_.try_emplace(key_of(doc.ops[i].name, ""), row);
    if (!module.empty()) modules_.try_emplace(module, row);
  }
  // A module whose ops all belong to its children: "blocks.3". One without a dot is an ordinary word.
  for (std::size_t i = 0; i < doc.ops.size(); ++i) {
    std::string above = incident->trace.module(OpId{i});
    for (std::size_t dot; (dot = above.rfind('.')) != std::string::npos && above.find('.') != dot;) {
      above.resize(dot);
      if (!modules_.try_emplace(above, static_cast<std::int32_t>(i)).second) break;
    }
  }
  for (const StoredTensor& tensor : incident->tensors)
    if (!tensor.name.empty()) tensors_.try_emplace(tensor.name, tensor.path);
  culprit_ = doc.culprit.op;
}

std::optional<Link> Names::culprit() const {
  if (culprit_ == kNone || session_->incident() == nullptr) return std::nullopt;
  return Link::to_op(culprit_);
}

std::optional<Link> Names::op(const std::string& name, const std::string& module) const {
  if (const OpenIncident* incident = session_->incident(); incident != nullptr && culprit_ != kNone) {
    const bool same = get(incident->doc, OpId{culprit_}).name == name;
    if (same && (module.empty() || incident->trace.module(OpId{culprit_}) == module)) return culprit();
  }
  const auto found = ops_.find(key_of(name, module));
  if (found == ops_.end()) return module.empty() ? std::nullopt : op(name, "");
  return Link::to_op(found->second);
}

std::optional<Link> Names::word(const std::string& word) const {
  if (session_->has_layer(word)) return Link::to_layer(word);
  if (const auto tensor = tensors_.find(word); tensor != tensors_.end())
    return Link::to_tensor(tensor->second);
  const auto module = modules_.find(word);
  if (module == modules_.end()) return std::nullopt;
  if (const std::string layer = session_->layer_of(word); !layer.empty()) return Link::to_layer(layer);
  return Link::to_op(module->second);
}

std::optional<Link> Names::numbered(std::string_view what, const std::string& number) const {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc() || end != number.data() + number.size() || value < 0) return std::nullopt;
  const OpenIncident* incident = session_->incident();
  if (what == "op" && incident != nullptr && static_cast<std::size_t>(value) < incident->trace.size())
    return Link::to_op(value);
  if ((what == "step" || what == "Step") && session_->has_step(static_cast<double>(value)))
    return Link::to_step(value);
  if (what != "sample" || incident == nullptr) return std::nullopt;
  const std::int64_t samples = sample_count(incident->doc);
  if (samples > 0 ? value < samples : !incident->sample_tensor().empty())
    return Link::to_sample(value, incident->sample_tensor());
  return std::nullopt;
}

/// The place with the name at this position; "" if there is none.
std::string Names::place_at(const std::string& text, std::size_t at) const {
  const std::size_t end = text.find(')', at);
  if (end == std::string::npos) return "";
  const std::string name = text.substr(at, end + 1 - at);
  return session_->headroom().bits(name) == nullptr || name.find('\n') != std::string::npos ? "" : name;
}

std::vector<Span> Names::linked(const std::string& text) const {
  std::vector<Span> spans;
  std::size_t done = 0;
  const auto add = [&](std::size_t begin, std::size_t end, const Link& link) {
    if (begin > done) spans.push_back({text.substr(done, begin - done), std::nullopt});
    spans.push_back({text.substr(begin, end - begin), link});
    done = end;
  };
  const std::vector<Word> words = spelt_words(text);
  const auto spelt = [&](std::size_t i) {
    return i < words.size() ? text.substr(words[i].begin, words[i].end - words[i].begin) : std::string();
  };
  std::optional<Statistic> statistic;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = spelt(i);
    if (const auto named = statistic_from_name(word)) statistic = named;
    if (const auto link = numbered(word, spelt(i + 1))) {
      add(words[i].begin, words[i + 1].end, *link);
      ++i;
    } else if (const std::string name = place_at(text, words[i].begin); !name.empty()) {
      const std::size_t end = words[i].begin + name.size();
      add(words[i].begin, end, Link::to_place(name));
      while (i + 1 < words.size() && words[i + 1].begin < end) ++i;
    } else if (word.find("::") != std::string::npos) {
      const std::string module = spelt(i + 1) == "in" ? spelt(i + 2) : "";
      if (const auto op_link = op(word, module)) add(words[i].begin, words[i].end, *op_link);
    } else if (is_number(word) && !(i > 0 && names_next(i > 1 ? spelt(i - 2) : "", spelt(i - 1)))) {
      continue;
    } else if (auto place = this->word(word)) {
      if (place->kind == Link::Kind::layer) place->statistic = statistic;
      add(words[i].begin, words[i].end, *place);
    }
  }
  if (done < text.size() || spans.empty()) spans.push_back({text.substr(done), std::nullopt});
  return spans;
}

void follow(Session& session, const Link& link) {
  switch (link.kind) {
    case Link::Kind::op:
      return session.select_op(static_cast<std::int32_t>(link.number));
    case Link::Kind::step:
      return session.select_step(static_cast<double>(link.number));
    case Link::Kind::sample:
      session.select_sample(link.number);
      return session.select_tensor(link.name);
    case Link::Kind::tensor:
      return session.select_tensor(link.name);
    case Link::Kind::place:
      return session.select_place(link.name);
    case Link::Kind::layer:
      session.select_layer(link.name);
      if (link.statistic) session.select_statistic(*link.statistic);
      if (session.history().has(session.selection().statistic, link.name)) return;
      for (int i = kStatistics - 1; i >= 0; --i)
        if (const auto s = static_cast<Statistic>(i); session.history().has(s, link.name))
          session.select_statistic(s);
      return;
  }
}

}  // namespace nanquest::viewer
