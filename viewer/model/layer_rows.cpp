#include "viewer/model/layer_rows.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "viewer/model/words.h"

namespace nanquest::viewer {
namespace {

constexpr int kMostParts = 32;  // of a name; what follows is one part

}  // namespace

/// A node for each part of the names. A name that is also the beginning of others gets a child of its own.
void LayerRows::grow(const std::vector<std::string>& layers, const std::string& words) {
  nodes_.assign(1, Node{});
  std::map<std::string, std::size_t> known;
  const Words wanted(words);
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const std::string& name = layers[layer];
    if (!wanted.in(name)) continue;
    const auto index = static_cast<std::uint32_t>(layer);
    std::size_t at = 0;
    nodes_[0].layers.push_back(index);
    int parts = 1;
    for (std::size_t dot = name.find('.');; dot = name.find('.', dot + 1)) {
      if (parts++ == kMostParts) dot = std::string::npos;
      const std::string path = name.substr(0, dot);
      const auto [found, fresh] = known.try_emplace(path, nodes_.size());
      if (fresh) {
        nodes_.push_back({path, at, {}, {}, 0, false});
        nodes_[at].children.push_back(found->second);
      }
      at = found->second;
      nodes_[at].layers.push_back(index);
      if (dot == std::string::npos) break;
    }
  }
  for (std::size_t node = nodes_.size(); node-- > 1;) {
    if (nodes_[node].children.empty()) continue;
    Node own{nodes_[node].name, node, {}, {}, 0, false};
    for (const std::uint32_t layer : nodes_[node].layers)
      if (layers[layer] == own.name) own.layers.push_back(layer);
    if (own.layers.empty()) continue;
    nodes_[node].children.insert(nodes_[node].children.begin(), nodes_.size());
    nodes_.push_back(std::move(own));
  }
}

/// A module that only holds one other thing is that thing.
void LayerRows::join_chains() {
  const auto end_of_chain = [&](std::size_t node) {
    while (nodes_[node].children.size() == 1) node = nodes_[node].children.front();
    return node;
  };
  if (const std::size_t end = end_of_chain(0); end != 0)
    nodes_[0].children =
        nodes_[end].children.empty() ? std::vector<std::size_t>{end} : std::vector(nodes_[end].children);
  const std::function<void(std::size_t, int)> visit = [&](std::size_t node, int depth) {
    nodes_[node].depth = depth;
    for (std::size_t& child : nodes_[node].children) {
      child = end_of_chain(child);
      nodes_[child].parent = node;
      visit(child, depth + 1);
    }
  };
  visit(0, 0);
}

/// Rows if all modules above that depth are unfolded.
std::size_t LayerRows::rows_at(int depth) const {
  std::size_t count = 0;
  const std::function<void(std::size_t)> visit = [&](std::size_t node) {
    const Node& n = nodes_[node];
    if (n.children.empty() || n.depth >= depth) {
      count += node != 0;
      return;
    }
    for (const std::size_t child : n.children) visit(child);
  };
  visit(0);
  return count;
}

void LayerRows::fold_all() {
  int depth = 1;
  for (std::size_t now = rows_at(1), next = rows_at(2); next > now && (now < kLeast || next <= kFew);
       now = next, next = rows_at(depth + 1))
    ++depth;
  for (Node& node : nodes_) node.open = node.depth < depth;
  remake();
}

void LayerRows::unfold_all() {
  for (Node& node : nodes_) node.open = true;
  remake();
}

void LayerRows::fit(const std::vector<std::string>& layers, const std::string& words) {
  if (made_ && words == words_ && layers == of_) return;
  made_ = true;
  of_ = layers;
  words_ = words;
  shown_ = -1;
  grow(layers, words);
  join_chains();
  fold_all();
}

void LayerRows::put(std::size_t node) {
  const Node& n = nodes_[node];
  if (n.children.empty() || (!n.open && node != 0)) {
    if (node == 0) return;  // no layer holds the words
    const std::string& name = n.layers.size() == 1 ? of_[n.layers.front()] : n.name;
    for (const std::uint32_t layer : n.layers) row_of_[layer] = std::ssize(rows_);
    rows_.push_back({name, n.layers, node});
    return;
  }
  for (const std::size_t child : n.children) put(child);
}

void LayerRows::remake() {
  rows_.clear();
  row_of_.assign(of_.size(), -1);
  put(0);
  ++version_;
}

bool LayerRows::folded() const {
  return std::ranges::any_of(rows_, &Row::is_module);
}

std::ptrdiff_t LayerRows::row_of(std::uint32_t layer) const {
  return layer < row_of_.size() ? row_of_[layer] : -1;
}

std::ptrdiff_t LayerRows::show(std::ptrdiff_t layer) {
  if (layer < 0) {
    shown_ = layer;
    return -1;
  }
  const auto index = static_cast<std::uint32_t>(layer);
  if (std::exchange(shown_, layer) != layer)
    for (std::ptrdiff_t row = row_of(index); row >= 0 && can_unfold(static_cast<std::size_t>(row));
         row = row_of(index))
      unfold(static_cast<std::size_t>(row));
  return row_of(index);
}

bool LayerRows::can_unfold(std::size_t row) const {
  return row < rows_.size() && !nodes_[rows_[row].node].children.empty();
}

void LayerRows::unfold(std::size_t row) {
  if (!can_unfold(row)) return;
  nodes_[rows_[row].node].open = true;
  remake();
}

void LayerRows::fold(std::size_t row) {
  if (row >= rows_.size()) return;
  const std::size_t parent = nodes_[rows_[row].node].parent;
  if (parent == 0) return;
  nodes_[parent].open = false;
  remake();
}

}  // namespace nanquest::viewer
