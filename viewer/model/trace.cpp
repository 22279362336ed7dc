#include "viewer/model/trace.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <sstream>

#include "probe/numerics/format.h"
#include "viewer/model/numbers.h"

namespace nanquest::viewer {
namespace {

void add_once(std::vector<std::int32_t>& list, std::int32_t value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

const char* mark_words(OpMark mark) {
  constexpr const char* words[] = {"", "first bad", "on the way", "born here", "intended", "carries"};
  return words[static_cast<int>(mark)];
}

std::vector<std::int32_t> TraceView::read_rows(const OpRow& op) const {
  std::vector<std::int32_t> rows;
  for (std::int32_t i = op.first_arg; i < op.first_arg + op.arg_count; ++i)
    if (doc_->args[i].kind == ArgKind::tensor && doc_->args[i].tensor != kNone)
      rows.push_back(doc_->args[i].tensor);
  return rows;
}

std::vector<std::int32_t> TraceView::written_rows(const OpRow& op) const {
  std::vector<std::int32_t> rows(doc_->written.begin() + op.first_written,
                                 doc_->written.begin() + op.first_written + op.written_count);
  if (rows.empty())
    for (std::int32_t i = 0; i < op.output_count; ++i) rows.push_back(op.first_output + i);
  return rows;
}

ValueRange TraceView::range(const std::vector<std::int32_t>& rows) const {
  ValueRange out;
  for (const std::int32_t row : rows) {
    const TensorRow& tensor = doc_->tensors[row];
    if (tensor.stats == kNone) continue;
    const StatsRow& stats = doc_->stats[tensor.stats];
    out.known = true;
    out.count += stats.count;
    out.nan += stats.nan;
    out.pos_inf += stats.pos_inf;
    out.neg_inf += stats.neg_inf;
    const auto format = format_of(tensor.dtype);
    if (!format) continue;
    out.amax = std::max(out.amax, stats.amax);
    const double bits = headroom_bits(*format, stats.amax);
    if (!out.has_headroom || bits < out.headroom) out.headroom = bits;
    out.has_headroom = true;
  }
  return out;
}

TraceView::TraceView(const SnapshotDoc& doc)
    : doc_(&doc),
      marks_(doc.ops.size(), OpMark::none),
      producers_(doc.ops.size()),
      consumers_(doc.ops.size()) {
  std::vector<std::int32_t> writer(doc.slots.size(), kNone);
  for (std::size_t i = 0; i < doc.ops.size(); ++i) {
    const OpRow& op = doc.ops[i];
    const auto self = static_cast<std::int32_t>(i);
    for (const std::int32_t row : read_rows(op)) {
      const std::int32_t slot = doc.tensors[row].slot;
      if (slot == kNone || writer[slot] == kNone || writer[slot] == self) continue;
      add_once(producers_[i], writer[slot]);
      if (consumers_[writer[slot]].empty() || consumers_[writer[slot]].back() != self)
        consumers_[writer[slot]].push_back(self);
    }
    for (const std::int32_t row : written_rows(op))
      if (const std::int32_t slot = doc.tensors[row].slot; slot != kNone && !(op.flags & kOpViewOnly))
        writer[slot] = self;
    const ValueRange written = range(written_rows(op));
    if (first_tight_ == kNone && written.has_headroom && written.headroom < 1) first_tight_ = self;
    if (op.flags & kOpBirth)
      marks_[i] = OpMark::birth;
    else if (written.non_finite() > 0)
      marks_[i] = OpMark::carries;
  }
  const auto set = [&](std::int32_t op, OpMark mark) {
    if (op >= 0 && static_cast<std::size_t>(op) < marks_.size()) marks_[op] = mark;
  };
  for (const std::int32_t op : doc.culprit.suppressed) set(op, OpMark::suppressed);
  for (const std::int32_t op : doc.culprit.lineage) set(op, OpMark::lineage);
  set(doc.culprit.op, OpMark::culprit);
}

TraceLine TraceView::line(std::size_t index) const {
  const OpRow& op = doc_->ops[index];
  TraceLine out;
  out.name = SnapshotDoc::qualified_name(op);
  if (op.module != kNone) out.module = doc_->modules[op.module].path;
  out.node = op.node;
  out.phase = op.phase;
  const std::vector<std::int32_t> reads = read_rows(op), writes = written_rows(op);
  std::string last;
  for (const std::int32_t row : reads) {
    const std::string format = dtype_short(doc_->tensors[row].dtype);
    if (format != last) out.read_formats += (out.read_formats.empty() ? "" : ", ") + format;
    last = format;
  }
  if (!writes.empty()) {
    out.write_format = dtype_short(doc_->tensors[writes[0]].dtype);
    out.write_shape = shape_text(doc_->tensors[writes[0]].sizes);
  }
  out.read = range(reads);
  out.written = range(writes);
  return out;
}

std::int32_t TraceView::walk_back(std::size_t op) const {
  std::int32_t best = kNone;
  double best_rank = -1;
  for (const std::int32_t p : producers_[op]) {
    const OpMark m = marks_[p];
    const ValueRange written = range(written_rows(doc_->ops[p]));
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

std::int32_t TraceView::walk_forward(std::size_t op) const {
  std::int32_t bad = kNone;
  for (const std::int32_t c : consumers_[op]) {
    if (marks_[c] == OpMark::lineage || marks_[c] == OpMark::culprit) return c;
    if (bad == kNone && range(written_rows(doc_->ops[c])).non_finite() > 0) bad = c;
  }
  return bad != kNone ? bad : consumers_[op].empty() ? kNone : consumers_[op].front();
}

std::vector<std::int32_t> TraceView::filter(const std::string& words) const {
  std::vector<std::string> wanted;
  std::istringstream stream(lower(words));
  for (std::string word; stream >> word;) wanted.push_back(word);
  std::vector<std::int32_t> out;
  for (std::size_t i = 0; i < size(); ++i) {
    const auto matches = [&] {
      if (wanted.empty()) return true;
      const TraceLine l = line(i);
      const std::string text =
          lower(l.name + ' ' + l.module + ' ' + l.node + ' ' + phase_name(l.phase) + ' ' + l.read_formats +
                ' ' + l.write_format + ' ' + mark_words(marks_[i]));
      return std::all_of(wanted.begin(), wanted.end(),
                         [&](const std::string& word) { return text.find(word) != std::string::npos; });
    };
    if (matches()) out.push_back(static_cast<std::int32_t>(i));
  }
  return out;
}

std::string TraceView::stored_data(std::size_t index) const {
  const OpRow& op = doc_->ops[index];
  if (!op.host_data.empty()) return op.host_data;
  std::string best;
  std::uint64_t most = 0;
  for (const std::int32_t row : read_rows(op)) {
    const std::int32_t slot = doc_->tensors[row].slot;
    if (slot == kNone || doc_->slots[slot].data.empty()) continue;
    const bool is_float = dtype_is_float(doc_->tensors[row].dtype);
    const std::uint64_t weight = doc_->slots[slot].bytes + (is_float ? 1ull << 40 : 0) + 1;
    if (weight > most) {
      best = doc_->slots[slot].data;
      most = weight;
    }
  }
  return best;
}

}  // namespace nanquest::viewer
