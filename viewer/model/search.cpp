#include "viewer/model/search.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>
#include <sstream>

#include "viewer/model/numbers.h"

namespace nanquest::viewer {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

class Hits {
 public:
  Hits(const std::string& words, std::size_t most) : most_(most) {
    std::istringstream stream(lower(words));
    for (std::string word; stream >> word;) words_.push_back(word);
  }
  /// False once no more are wanted of the kind at hand.
  bool wanted() const { return of_kind_ < most_ / 3; }
  void begin_kind() { of_kind_ = 0; }
  void offer(std::string label, const char* kind, Link link) {
    if (!wanted() || !fits(label + ' ' + kind)) return;
    ++of_kind_;
    found_.push_back({std::move(label), kind, std::move(link)});
  }
  bool fits(const std::string& text) const {
    const std::string small = lower(text);
    return std::all_of(words_.begin(), words_.end(),
                       [&](const std::string& word) { return small.find(word) != std::string::npos; });
  }
  std::vector<Hit> take() {
    found_.resize(std::min(found_.size(), most_));
    return std::move(found_);
  }

 private:
  std::size_t most_, of_kind_ = 0;
  std::vector<std::string> words_;
  std::vector<Hit> found_;
};

/// Incidents, and the step whose number was typed.
void add_steps(const Session& session, const std::string& words, Hits& hits) {
  std::set<std::int64_t> steps;
  for (const IncidentEntry& e : session.incidents()) steps.insert(e.files.step);
  std::istringstream stream(words);
  for (std::string word; stream >> word;) {
    std::int64_t step = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), step);
    const bool whole = error == std::errc() && end == word.data() + word.size();
    if (whole && session.has_step(static_cast<double>(step))) steps.insert(step);
  }
  for (const std::int64_t step : steps)
    hits.offer("step " + std::to_string(step), "step", {Link::Kind::step, step, "", {}});
}

void add_samples(const Session& session, Hits& hits) {
  if (!session.verdict() || session.verdict()->poison.empty() || session.incident() == nullptr) return;
  const Names names(session);
  const Verdict& v = *session.verdict();
  for (std::size_t i = 0; i < v.poison.size(); ++i) {
    const std::string label = "sample " + std::to_string(v.poison[i]);
    const auto link = names.linked(label).front().link;
    if (link)
      hits.offer(i < v.poison_ids.size() ? label + " (" + v.poison_ids[i] + ")" : label, "sample", *link);
  }
}

void add_layers(const Session& session, Hits& hits) {
  std::set<std::string> seen;
  for (int s = 0; s < kStatistics; ++s)
    for (const std::string& layer : session.history().layers(static_cast<Statistic>(s)))
      if (seen.insert(layer).second) hits.offer(layer, "layer", {Link::Kind::layer, kNone, layer, {}});
}

void add_ops(const OpenIncident& incident, Hits& hits) {
  const auto offer = [&](OpId op) {
    const std::string module = incident.trace.module(op);
    hits.offer(
        std::to_string(op.row()) + " " + get(incident.doc, op).name + (module.empty() ? "" : " in " + module),
        "op", {Link::Kind::op, op.row(), "", {}});
  };
  // Who is to blame first, then those with a mark, then the others.
  const OpId culprit{incident.doc.culprit.op};
  if (culprit) offer(culprit);
  for (const bool marked : {true, false})
    for (const OpId op : incident.trace.ops()) {
      if (!hits.wanted()) return;
      if (op != culprit && (incident.trace.mark(op) != OpMark::none) == marked) offer(op);
    }
}

}  // namespace

bool has_words(const std::string& text, const std::string& words) {
  return Hits(words, 1).fits(text);
}

std::vector<Hit> search(const Session& session, const std::string& words, std::size_t most) {
  Hits hits(words, most);
  add_steps(session, words, hits);
  add_samples(session, hits);
  hits.begin_kind();
  add_layers(session, hits);
  const OpenIncident* incident = session.incident();
  if (incident == nullptr) return hits.take();
  hits.begin_kind();
  for (const StoredTensor& tensor : incident->tensors)
    hits.offer(tensor.name, "tensor", {Link::Kind::tensor, kNone, tensor.path, {}});
  hits.begin_kind();
  add_ops(*incident, hits);
  return hits.take();
}

}  // namespace nanquest::viewer
