#include "viewer/model/trace.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "probe/numerics/format.h"
#include "probe/snapshot/frames.h"
#include "viewer/model/numbers.h"
#include "viewer/model/words.h"

namespace nanquest::viewer {
namespace {

/// More would not help a reader, and would cost much for memory that is written in many pieces.
constexpr std::size_t kMostPieces = 16;

/// Numbers from 0 on for values as they come.
template <class T>
class Numbers {
 public:
  std::uint32_t of(const T& value) {
    return numbers_.try_emplace(value, static_cast<std::uint32_t>(numbers_.size())).first->second;
  }

 private:
  std::unordered_map<T, std::uint32_t> numbers_;
};

/// Gives the values it reads, as a cast does.
bool is_copy(const OpRow& op) {
  return op.name == "aten::_to_copy" || op.name == "aten::copy_" || op.name == "aten::clone";
}

/// The parts of an op's searched text, as numbers.
using Parts = std::array<std::uint32_t, 8>;
struct PartsHash {
  std::size_t operator()(const Parts& parts) const {
    std::uint64_t hash = 0;
    for (const std::uint32_t part : parts) hash = (hash ^ part) * 0x9e3779b97f4a7c15ull, hash ^= hash >> 29;
    return hash;
  }
};

void add_once(std::vector<OpId>& list, OpId value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

}  // namespace

const char* mark_words(OpMark mark) {
  constexpr const char* words[] = {"", "culprit", "on the path", "first non-finite", "intended", "carries"};
  return words[static_cast<int>(mark)];
}

std::string amax_text(const ValueRange& range) {
  if (!range.known || !range.has_amax || (range.amax == 0 && range.non_finite() > 0 && !range.none_finite()))
    return "-";
  return range.none_finite() ? "none finite" : short_number(range.amax);
}

const char* room_words(const ValueRange& range) {
  return range.none_finite() ? "none finite" : range.non_finite() > 0 ? "finite ones zero" : "zeros";
}

std::vector<std::string> program_stack(const SnapshotDoc& doc, OpId op) {
  std::vector<std::string> frames;
  for (const OpId from : {OpId{get(doc, op).forward_op}, op}) {
    const std::int32_t stack = from ? get(doc, from).stack : kNone;
    if (stack == kNone) continue;
    const std::vector<std::string>& more = doc.stacks[static_cast<std::size_t>(stack)];
    frames.insert(frames.end(), more.begin(), more.end());
  }
  return frames;
}

std::string TraceView::source(OpId op) const {
  return program_frame(program_stack(*doc_, op));
}

std::vector<TensorId> TraceView::shown_writes(OpId op) const {
  const auto written = graph_->written(op);
  std::vector<TensorId> rows(written.begin(), written.end());
  std::erase(rows, TensorId{});
  if (rows.empty())  // a view computes nothing, but has a format and a shape
    for (const TensorId row : graph_->outputs(op)) rows.push_back(row);
  return rows;
}

ValueRange TraceView::range(std::span<const TensorId> rows) const {
  ValueRange out;
  for (const TensorId row : rows) {
    const StatsRow* stats = graph_->stats(row);
    if (!stats) continue;
    out.known = true;
    out.count += stats->count;
    out.nan += stats->nan;
    out.pos_inf += stats->pos_inf;
    out.neg_inf += stats->neg_inf;
    const auto format = format_of(graph_->tensor(row).dtype);
    if (!format) continue;
    out.has_amax = true;
    out.amax = std::max(out.amax, stats->amax);
    const double bits = headroom_bits(*format, stats->amax);
    if (!out.has_headroom || bits < out.headroom) out.headroom = bits;
    out.has_headroom = true;
  }
  return out;
}

TraceView::TraceView(const SnapshotDoc& doc)
    : doc_(&doc),
      graph_(doc),
      marks_(doc.ops.size(), OpMark::none),
      producers_(doc.ops.size()),
      consumers_(doc.ops.size()),
      text_of_(doc.ops.size()) {
  for (const OpId op : ops()) {
    std::vector<OpId>& makers = producers_[op];
    for (const TensorId row : graph_->reads(op)) {
      std::size_t pieces = 0;
      (void)graph_->each_write_behind(row, op, [&](const TraceGraph::Write& write) {
        add_once(makers, write.op);
        return ++pieces == kMostPieces;
      });
    }
    for (const OpId maker : makers) consumers_[maker].push_back(op);
    const ValueRange written = range(shown_writes(op));
    if (!first_tight_ && written.has_headroom && written.headroom < 1) first_tight_ = op;
    if (graph_->op(op).flags & kOpBirth)
      marks_[op] = OpMark::birth;
    else if (written.non_finite() > 0)
      marks_[op] = OpMark::carries;
  }
  const auto set = [&](std::int32_t op, OpMark mark) {
    if (marks_.holds(OpId{op})) marks_[OpId{op}] = mark;
  };
  for (const std::int32_t op : doc.culprit.suppressed) set(op, OpMark::suppressed);
  for (const std::int32_t op : doc.culprit.lineage) set(op, OpMark::lineage);
  set(doc.culprit.op, OpMark::culprit);
  note_searched();
}

std::string TraceView::searched(OpId op) const {
  const TraceLine l = line(op);
  return l.name + ' ' + l.module + ' ' + l.node + ' ' + std::string(phase_name(l.phase)) + ' ' +
         l.read_formats + ' ' + l.write_format + ' ' + mark_words(marks_[op]);
}

/// Ops with the same parts have the same text, which is made once.
void TraceView::note_searched() {
  Numbers<std::string_view> names;
  Numbers<std::string> formats;
  std::unordered_map<Parts, std::uint32_t, PartsHash> seen;
  std::string read;
  for (const OpId id : ops()) {
    const OpRow& op = graph_->op(id);
    read.clear();
    for (const TensorId row : graph_->reads(id)) {
      const char format = static_cast<char>(graph_->tensor(row).dtype);
      if (read.empty() || read.back() != format) read += format;
    }
    const std::vector<TensorId> writes = shown_writes(id);
    const auto written = writes.empty() ? 0 : 1 + static_cast<std::uint32_t>(graph_->tensor(writes[0]).dtype);
    const Parts parts{names.of(op.name),
                      names.of(op.overload),
                      names.of(op.node),
                      names.of(graph_->module_of(id)),
                      formats.of(read),
                      written,
                      static_cast<std::uint32_t>(op.phase),
                      static_cast<std::uint32_t>(marks_[id])};
    const auto [at, is_new] = seen.try_emplace(parts, static_cast<std::uint32_t>(texts_.size()));
    if (is_new) {
      texts_.push_back(searched(id));
      make_lower(texts_.back());
    }
    text_of_[id] = at->second;
  }
}

TraceLine TraceView::line(OpId id) const {
  const OpRow& op = graph_->op(id);
  TraceLine out;
  out.name = SnapshotDoc::qualified_name(op);
  out.module = graph_->module_of(id);
  out.node = op.node;
  out.phase = op.phase;
  const std::vector<TensorId> writes = shown_writes(id);
  std::string last;
  for (const TensorId row : graph_->reads(id)) {
    const std::string format = dtype_short(graph_->tensor(row).dtype);
    if (format != last) out.read_formats += (out.read_formats.empty() ? "" : ", ") + format;
    last = format;
  }
  if (!writes.empty()) {
    out.write_format = dtype_short(graph_->tensor(writes[0]).dtype);
    out.write_shape = shape_text(graph_->tensor(writes[0]).sizes);
  }
  out.read = range(graph_->reads(id));
  out.written = range(writes);
  return out;
}

OpId TraceView::walk_back(OpId op) const {
  OpId best;
  double best_rank = -1;
  for (const OpId p : producers_[op]) {
    const OpMark m = marks_[p];
    const ValueRange written = range(shown_writes(p));
    const double rank = m == OpMark::culprit || m == OpMark::lineage ? std::numeric_limits<double>::infinity()
                        : written.non_finite() > 0                   ? std::numeric_limits<double>::max()
                                                                     : written.amax;
    if (rank > best_rank) {
      best = p;
      best_rank = rank;
    }
  }
  return best;
}

OpId TraceView::walk_forward(OpId op) const {
  OpId bad;
  for (const OpId c : consumers_[op]) {
    if (marks_[c] == OpMark::lineage || marks_[c] == OpMark::culprit) return c;
    if (!bad && graph_->written_counts(c).total() > 0) bad = c;
  }
  return bad || consumers_[op].empty() ? bad : consumers_[op].front();
}

TraceView::Path TraceView::shortest(OpId from, const PerRow<OpRow, char>& ends) const {
  PerRow<OpRow, OpId> before(doc_->ops.size());
  std::vector<OpId> queue = {from};
  for (std::size_t at = 0; at < queue.size(); ++at) {
    if (ends[queue[at]] != 0) {
      Path path;
      for (OpId op = queue[at]; op; op = op == from ? OpId{} : before[op]) path.ops.push_back(op);
      std::ranges::reverse(path.ops);
      return path;
    }
    for (const OpId next : consumers_[queue[at]]) {
      if (next == from || before[next] || graph_->op(next).phase == Phase::optimizer) continue;
      before[next] = queue[at];
      queue.push_back(next);
    }
  }
  return {};
}

TraceView::Path TraceView::path_from(OpId op) const {
  PerRow<OpRow, char> ends(doc_->ops.size(), 0);
  const auto mark = [&](std::int32_t row) {
    if (row == kNone) return;
    (void)graph_->each_write_behind(TensorId{row}, graph_->end(), [&](const TraceGraph::Write& write) {
      if (graph_->op(write.op).phase != Phase::optimizer) ends[write.op] = 1;
      return graph_->op(write.op).phase != Phase::optimizer;
    });
  };
  mark(doc_->loss);
  Path path = shortest(op, ends);
  path.to_loss = !path.ops.empty();
  if (path.to_loss) return path;
  for (const std::int32_t row : doc_->gradients) mark(row);
  return shortest(op, ends);
}

std::vector<OpId> TraceView::filter(const std::string& words) const {
  const Words wanted(words);
  std::vector<char> matches(texts_.size());  // vector<bool> would be slower to ask a million times
  for (std::size_t i = 0; i < texts_.size(); ++i) matches[i] = wanted.in_lower(texts_[i]) ? 1 : 0;
  std::vector<OpId> out;
  out.reserve(size());
  for (const OpId op : ops())
    if (matches[text_of_[op]]) out.push_back(op);
  return out;
}

TensorId TraceView::copied(TensorId row, OpId before) const {
  while (get(*doc_, graph_->slot(row)).data.empty()) {
    const OpId maker = graph_->producer(row, before);
    if (!maker || !is_copy(graph_->op(maker)) || graph_->reads(maker).size() != 1) break;
    row = graph_->reads(maker)[0];
    before = maker;
  }
  return row;
}

std::string TraceView::stored_data(OpId id) const {
  const OpRow& op = graph_->op(id);
  if (!op.host_data.empty()) return op.host_data;
  std::string best;
  std::uint64_t most = 0;
  for (const TensorId row : graph_->reads(id)) {
    const Slot& slot = get(*doc_, graph_->slot(copied(row, id)));
    if (slot.data.empty()) continue;
    const bool is_float = dtype_is_float(graph_->tensor(row).dtype);
    const std::uint64_t weight = slot.bytes + (is_float ? 1ull << 40 : 0) + 1;
    if (weight > most) {
      best = slot.data;
      most = weight;
    }
  }
  return best;
}

}  // namespace nanquest::viewer
