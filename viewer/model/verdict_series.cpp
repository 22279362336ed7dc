#include "viewer/model/verdict_series.h"

#include <algorithm>

namespace nanquest::viewer {
namespace {

constexpr std::size_t kMostLayers = 4;

/// True if `name` stands in the text as a word of its own.
bool names(const std::string& text, const std::string& name) {
  constexpr std::string_view part = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool begins = at == 0 || part.find(text[at - 1]) == std::string_view::npos;
    const bool ends =
        end == text.size() || part.find(text[end]) == std::string_view::npos || text[end] == '.';
    const bool child =
        end + 1 < text.size() && text[end] == '.' && part.find(text[end + 1]) != std::string_view::npos;
    if (begins && ends && !child) return true;
  }
  return false;
}

/// Every layer that has a series, once.
std::vector<std::string> layers_of(const History& history) {
  std::vector<std::string> all;
  for (int i = 0; i < kStatistics; ++i)
    for (const std::string& layer : history.layers(static_cast<Statistic>(i)))
      if (std::ranges::find(all, layer) == all.end()) all.push_back(layer);
  return all;
}

void add(std::vector<LayerSeries>& out, const History& history, const std::string& layer) {
  for (const auto& choice : {std::vector{Statistic::gradient, Statistic::gradient_amax},
                             std::vector{Statistic::weight, Statistic::weight_amax}}) {
    const auto found = std::ranges::find_if(choice, [&](Statistic s) { return history.has(s, layer); });
    if (found != choice.end()) out.push_back({layer, *found});
  }
}

}  // namespace

std::vector<LayerSeries> series_of(const Session& session, const Verdict& verdict) {
  const History& history = session.history();
  std::vector<std::string> layers;
  const auto note = [&](const std::string& layer) {
    if (!layer.empty() && layers.size() < kMostLayers && std::ranges::find(layers, layer) == layers.end())
      layers.push_back(layer);
  };
  if (!verdict.culprit.module.empty()) note(session.layer_of(verdict.culprit.module));
  for (const std::string& layer : layers_of(history))
    for (const Evidence& evidence : verdict.evidence)
      if (names(evidence.name, layer) || names(evidence.value, layer)) note(layer);
  std::vector<LayerSeries> out;
  for (const std::string& layer : layers) add(out, history, layer);
  return out;
}

}  // namespace nanquest::viewer
