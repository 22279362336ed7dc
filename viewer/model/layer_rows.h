/// LayerRows: the rows of the map of layers. A row is one layer, or all layers of a module that is folded, as
/// "model.layers.3" of "model.layers.3.self_attn.q_proj.weight" and its like.
///
///     rows.fit(history.layers(statistic), words);          // every frame; folds them when they are new
///     rows.unfold(3);                                       // the module of row 3
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace nanquest::viewer {

class LayerRows {
 public:
  struct Row {
    std::string name;                   ///< of the layer or module
    std::vector<std::uint32_t> layers;  ///< of the statistic, in the order of the file
    std::size_t node = 0;               ///< in the tree of modules
    bool is_module() const { return layers.size() > 1; }
  };

  /// Makes the rows of the layers whose name holds all of `words`, if layers or words are other ones than at
  /// the last call: at most kFew rows if that leaves at least kLeast, else the next level of modules.
  void fit(const std::vector<std::string>& layers, const std::string& words);
  static constexpr std::size_t kFew = 64, kLeast = 8;

  /// In the order of the file; layers of one module are together.
  const std::vector<Row>& rows() const { return rows_; }
  /// True if some row is a module.
  bool folded() const;
  /// The row that shows a layer, or -1 if the words leave it out.
  std::ptrdiff_t row_of(std::uint32_t layer) const;
  /// The same; unfolds modules until the row is the layer's own, if it is another layer than at the last
  /// call.
  std::ptrdiff_t show(std::ptrdiff_t layer);

  /// Shows what is inside of a row's module; nothing for a layer.
  void unfold(std::size_t row);
  /// Folds the module that a row is in.
  void fold(std::size_t row);
  void unfold_all();
  /// As when the layers were new.
  void fold_all();
  /// Changes whenever the rows do.
  std::uint64_t version() const { return version_; }

 private:
  struct Node {
    std::string name;
    std::size_t parent = 0;
    std::vector<std::size_t> children;
    std::vector<std::uint32_t> layers;
    int depth = 0;
    bool open = false;
  };
  void grow(const std::vector<std::string>& layers, const std::string& words);
  void join_chains();
  void remake();
  void put(std::size_t node);
  std::size_t rows_at(int depth) const;
  bool can_unfold(std::size_t row) const;

  std::vector<std::string> of_;  ///< layers that the tree is of
  std::string words_;
  std::vector<Node> nodes_ = std::vector<Node>(1);  ///< the first is the root
  std::vector<Row> rows_;
  std::vector<std::ptrdiff_t> row_of_;
  std::ptrdiff_t shown_ = -1;
  std::uint64_t version_ = 0;
  bool made_ = false;
};

}  // namespace nanquest::viewer
