#include "probe/trace/argument_tree.h"

namespace nanquest {
namespace {

constexpr int kDeepestList = 8;

class TokenReader {
 public:
  TokenReader(const SnapshotDoc& doc, std::int32_t first, std::int32_t end)
      : doc_(doc), at_(first), end_(end) {}

  bool more() const { return sound_ && at_ < end_; }
  bool sound() const { return sound_; }

  ArgumentTree next(int depth = 0) {
    ArgumentTree tree;
    if (at_ >= end_ || depth > kDeepestList) {
      sound_ = false;
      return tree;
    }
    tree.row = &doc_.args[static_cast<std::size_t>(at_++)];
    if (tree.row->kind == ArgKind::list)
      for (std::int64_t i = 0; i < tree.row->integer && sound_; ++i) tree.elements.push_back(next(depth + 1));
    return tree;
  }

 private:
  const SnapshotDoc& doc_;
  std::int32_t at_, end_;
  bool sound_ = true;
};

}  // namespace

std::vector<ArgumentTree> argument_trees(const SnapshotDoc& doc, const OpRow& op) {
  const auto all = static_cast<std::int64_t>(doc.args.size());
  if (op.first_arg < 0 || op.arg_count < 0 || op.first_arg + std::int64_t{op.arg_count} > all) return {};
  TokenReader reader(doc, op.first_arg, op.first_arg + op.arg_count);
  std::vector<ArgumentTree> trees;
  while (reader.more()) trees.push_back(reader.next());
  return reader.sound() ? trees : std::vector<ArgumentTree>();
}

}  // namespace nanquest
