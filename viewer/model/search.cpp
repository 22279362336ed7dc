#include "viewer/model/search.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>
#include <string_view>

#include "probe/trace/samples.h"
#include "viewer/model/words.h"

namespace nanquest::viewer {
namespace {

class Hits {
 public:
  Hits(const std::string& words, std::size_t most) : words_(words), most_(most) {}
  /// False once there are enough results of the current kind.
  bool wanted() const { return of_kind_ < most_ / kGroups; }
  void begin_kind() { of_kind_ = 0; }
  void offer(std::string label, Link link) {
    if (!wanted() || !words_.in(label + ' ' + kind_name(link.kind))) return;
    ++of_kind_;
    found_.push_back({std::move(label), std::move(link)});
  }
  std::vector<Hit> take() { return std::move(found_); }

 private:
  const Words words_;
  static constexpr std::size_t kGroups = 4;  ///< steps and samples, layers, tensors, ops
  std::size_t most_, of_kind_ = 0;
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
  for (const std::int64_t step : steps) hits.offer("step " + std::to_string(step), Link::to_step(step));
}

/// Blamed samples first.
void add_samples(const Session& session, Hits& hits) {
  if (session.incident() == nullptr) return;
  const OpenIncident& incident = *session.incident();
  const auto blamed = session.verdict() ? session.verdict()->poison : std::vector<std::int64_t>();
  const auto offer = [&](std::int64_t sample) {
    const std::string label = "sample " + std::to_string(sample);
    const std::string id = sample_id(incident.doc, sample);
    hits.offer(id.empty() ? label : label + " (" + id + ")",
               Link::to_sample(sample, incident.sample_tensor()));
  };
  const std::int64_t count = sample_count(incident.doc);
  for (const std::int64_t sample : blamed)
    if (sample >= 0 && sample < count) offer(sample);
  for (std::int64_t sample = 0; sample < count && hits.wanted(); ++sample)
    if (std::ranges::count(blamed, sample) == 0) offer(sample);
}

void add_layers(const Session& session, Hits& hits) {
  std::set<std::string> seen;
  for (int s = 0; s < kStatistics; ++s)
    for (const std::string& layer : session.history().layers(static_cast<Statistic>(s)))
      if (seen.insert(layer).second) hits.offer(layer, Link::to_layer(layer));
}

/// The words that only an op's name or module can contain: a number may be the op's own, and "in" and "op"
/// are beside every one.
std::string words_of_ops(const std::string& typed) {
  std::string out;
  std::istringstream stream(typed);
  for (std::string word; stream >> word;) {
    std::string lower = word;
    make_lower(lower);
    const bool number = word.find_first_not_of("0123456789") == std::string::npos;
    const bool beside = std::string_view("in").find(lower) != std::string_view::npos ||
                        std::string_view(kind_name(Link::Kind::op)).find(lower) != std::string_view::npos;
    if (!number && !beside) out += word + ' ';
  }
  return out;
}

void add_ops(const OpenIncident& incident, const std::string& typed, Hits& hits) {
  const auto offer = [&](OpId op) {
    const std::string module = incident.trace.module(op);
    hits.offer(
        std::to_string(op.row()) + " " + get(incident.doc, op).name + (module.empty() ? "" : " in " + module),
        Link::to_op(op.row()));
  };
  // Blamed ops first, then those with a mark, then the others.
  const OpId culprit{incident.doc.culprit.op};
  if (culprit) offer(culprit);
  const std::vector<OpId> likely = incident.trace.filter(words_of_ops(typed));
  for (const bool marked : {true, false})
    for (const OpId op : likely) {
      if (!hits.wanted()) return;
      if (op != culprit && (incident.trace.mark(op) != OpMark::none) == marked) offer(op);
    }
}

}  // namespace

std::vector<Hit> search(const Session& session, const std::string& words, std::size_t most) {
  Hits hits(words, most);
  add_steps(session, words, hits);
  add_samples(session, hits);
  hits.begin_kind();
  add_layers(session, hits);
  for (const HeadroomPlace& place : session.headroom().places())
    hits.offer(place.name, Link::to_place(place.name));
  const OpenIncident* incident = session.incident();
  if (incident == nullptr) return hits.take();
  hits.begin_kind();
  for (const StoredTensor& tensor : incident->tensors) hits.offer(tensor.name, Link::to_tensor(tensor.path));
  hits.begin_kind();
  add_ops(*incident, words, hits);
  return hits.take();
}

}  // namespace nanquest::viewer
