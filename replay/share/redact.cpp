#include "replay/share/redact.h"

#include <algorithm>
#include <cmath>

#include "probe/trace/collectives.h"
#include "probe/trace/optimizer_settings.h"
#include "probe/trace/origins.h"
#include "probe/trace/placement.h"
#include "replay/share/scramble.h"

namespace nanquest {
namespace {

/// True if readers of the slot take it for a number in the program's text: "x * 2".
bool is_constant(const SnapshotDoc& doc, std::int32_t slot, const std::vector<bool>& numbers) {
  return doc.slots[static_cast<std::size_t>(slot)].origin == SlotOrigin::loss_scale ||
         numbers[static_cast<std::size_t>(slot)];
}

/// Per slot: all of its rows are wrapped numbers.
std::vector<bool> wrapped_numbers(const SnapshotDoc& doc) {
  std::vector<bool> any(doc.slots.size()), all(doc.slots.size(), true);
  for (const TensorRow& row : doc.tensors) {
    if (row.slot == kNone) continue;
    const auto slot = static_cast<std::size_t>(row.slot);
    any[slot] = true;
    if (!(row.flags & kTensorWrappedNumber)) all[slot] = false;
  }
  for (std::size_t i = 0; i < any.size(); ++i) all[i] = all[i] && any[i];
  return all;
}

/// A magnitude by its first five binary digits.
double coarse(double value) {
  if (!std::isfinite(value) || value == 0) return value;
  constexpr double kSteps = 32;
  int exponent = 0;
  const double digits = std::frexp(value, &exponent);
  return std::ldexp(std::trunc(digits * kSteps) / kSteps, exponent);
}

bool names_a_place(const std::string& text) {
  return text.find('/') != std::string::npos || text.find('\\') != std::string::npos;
}

/// Series about weights and gradients; of the scalars, only norms and largest values.
bool is_of_weights(const std::string& table, const std::string& column) {
  if (table != "scalars") return column != "step";
  return column.find("norm") != std::string::npos || column.find("amax") != std::string::npos;
}

/// Entries of the environment that a replay sets or compares and that are the same on many machines.
bool needed_to_replay(const std::string& key) {
  return !key.starts_with("env.") && key != "cpu_model" && key.find("name") == std::string::npos;
}

}  // namespace

const std::vector<std::pair<Private, std::string>>& private_things() {
  static const std::vector<std::pair<Private, std::string>> things = {
      {Private::texts, "texts"},     {Private::samples, "samples"}, {Private::weights, "weights"},
      {Private::paths, "paths"},     {Private::machine, "machine"}, {Private::settings, "settings"},
      {Private::history, "history"}, {Private::names, "names"}};
  return things;
}

Redactor::Redactor(const SnapshotReader& file, const SnapshotDoc& doc, RedactOptions options)
    : file_(file), doc_(doc), options_(std::move(options)), paths_(named_paths(file, doc)) {
  if (values_go()) {
    find_contents(doc);
    find_shapes(doc);
    find_vocabularies(doc);
    if (options_.drop) drop_contents();
    clear_statistics();
  }
  if (doc_.hash_kind != HashKind::contents) {
    for (StatsRow& row : doc_.stats) row.has_hash = false, row.hash = 0;
    doc_.hash_kind = HashKind::contents;
  }
  // A graph contains places and names of the program's code, and small constants.
  if (values_go() || asked(Private::paths) || asked(Private::names))
    for (const std::string& path : region_graph_paths(doc)) graphs_go_ = paths_.erase(path) > 0 || graphs_go_;
  clear_words();
  if (asked(Private::names)) rename_all();
}

/// A value that may belong to either belongs to both: one without a name may be a target or a frozen model's
/// weight.
bool Redactor::goes(SlotOrigin origin, DType dtype) const {
  const bool of_text = asked(Private::texts) && !dtype_has_nan(dtype);
  switch (origin) {
    case SlotOrigin::parameter:
    case SlotOrigin::buffer:
    case SlotOrigin::optimizer_state:
      return asked(Private::weights);
    case SlotOrigin::input:
      return asked(Private::samples) || of_text;
    case SlotOrigin::loss_scale:
      return false;
    default:
      return asked(Private::samples) || asked(Private::weights) || of_text;
  }
}

void Redactor::find_contents(const SnapshotDoc& original) {
  const auto take = [&](const std::string& path, DType dtype, bool gone) {
    if (gone && !path.empty()) contents_[path].dtype = dtype;
  };
  const auto named = [&](const std::vector<NamedTensor>& rows, SlotOrigin origin) {
    for (const NamedTensor& row : rows) take(row.data, row.dtype, goes(origin, row.dtype));
  };
  named(original.parameters, SlotOrigin::parameter);
  named(original.buffers, SlotOrigin::buffer);
  named(original.optimizer, SlotOrigin::optimizer_state);
  named(original.batch, SlotOrigin::input);
  const TraceGraph graph(original);
  const std::vector<bool> numbers = wrapped_numbers(original);
  for (const SlotId slot : ids_of<Slot>(original)) {
    const Slot& facts = get(original, slot);
    if (is_constant(original, slot.row(), numbers)) continue;
    take(facts.data, facts.dtype,
         goes(facts.origin, facts.dtype) || goes(origin_of(graph, slot), facts.dtype));
  }
  for (const TwinValue& value : original.twin.values) {
    const DType dtype =
        value.slot == kNone ? DType::uint8 : original.slots[static_cast<std::size_t>(value.slot)].dtype;
    take(value.data, dtype, goes(SlotOrigin::input, dtype));
  }
  // What the host wrote, and results of ops that can't be run again, may depend on everything that the step
  // read.
  for (const OpRow& op : original.ops) {
    const bool whole = op.first_output >= 0 && op.output_count > 0;
    const DType dtype =
        whole ? original.tensors[static_cast<std::size_t>(op.first_output)].dtype : DType::uint8;
    take(op.host_data, dtype, goes(SlotOrigin::external, dtype));
  }
  for (const auto& [path, target] : paths_)
    if (opaque_op(path) != kNone) contents_[path].dtype = DType::float32;
}

/// Storages are kept flat: rows and samples are those of the first tensor that covers one completely.
void Redactor::find_shapes(const SnapshotDoc& original) {
  for (const TensorRow& row : original.tensors) {
    if (row.slot == kNone || row.storage_offset != 0 || row.sizes.size() < 2) continue;
    const Slot& slot = original.slots[static_cast<std::size_t>(row.slot)];
    const auto content = contents_.find(slot.data);
    if (content == contents_.end() || !content->second.shape.empty() || row.dtype != slot.dtype) continue;
    std::int64_t count = 1;
    bool contiguous = true;
    for (std::size_t i = row.sizes.size(); i-- > 0; count *= row.sizes[i])
      contiguous = contiguous && (row.sizes[i] == 1 || row.strides[i] == count);
    if (contiguous && static_cast<std::uint64_t>(count) * dtype_size(row.dtype) == slot.bytes)
      content->second.shape = row.sizes;
  }
}

void Redactor::find_vocabularies(const SnapshotDoc& original) {
  const TraceGraph graph(original);
  for (const OpId id : graph.ops()) {
    const std::string& name = graph.op(id).name;
    const bool lookup = name == "aten::embedding", loss = name.starts_with("aten::nll_loss");
    const auto arguments = graph.arguments(id);
    if ((!lookup && !loss) || arguments.size() < 2) continue;
    // Rows of the table, or classes: the second axis; for one sample the first.
    const std::vector<std::int64_t>& sizes = graph.tensor(arguments[0].row).sizes;
    const SlotId slot = graph.slot(arguments[1].row);
    if (!slot || sizes.empty()) continue;
    const auto content = contents_.find(get(original, slot).data);
    if (content != contents_.end())
      content->second.vocabulary = lookup || sizes.size() == 1 ? sizes[0] : sizes[1];
  }
  // The batch lists the same tensors under its own paths, and the healthy step read others in their place.
  for (const NamedTensor& row : original.batch)
    if (row.slot != kNone && contents_.count(row.data) != 0)
      if (const auto slot = contents_.find(original.slots[static_cast<std::size_t>(row.slot)].data);
          slot != contents_.end())
        contents_[row.data].vocabulary = slot->second.vocabulary;
  for (const TwinValue& value : original.twin.values)
    if (value.slot != kNone && contents_.count(value.data) != 0)
      if (const auto slot = contents_.find(original.slots[static_cast<std::size_t>(value.slot)].data);
          slot != contents_.end())
        contents_[value.data].vocabulary = slot->second.vocabulary;
}

void Redactor::drop_contents() {
  for (const auto& [path, content] : contents_) paths_.erase(path);
  each_path(doc_, [&](std::string& path) {
    if (contents_.count(path) != 0) path.clear();
  });
  // A healthy batch is useless without its values.
  if (asked(Private::samples)) doc_.twin = {};
}

void Redactor::clear_statistics() {
  std::vector<StatsRow> rows;
  for (TensorRow& tensor : doc_.tensors) {
    if (tensor.stats == kNone) continue;
    // The largest of some token ids is one of them.
    if (!dtype_has_nan(tensor.dtype)) {
      tensor.stats = kNone;
      continue;
    }
    StatsRow row = doc_.stats[static_cast<std::size_t>(tensor.stats)];
    for (double* value : {&row.amax, &row.amin_nonzero, &row.sum_squares}) *value = coarse(*value);
    row.has_hash = false;  // otherwise a guess of the contents could be confirmed
    row.hash = 0;
    tensor.stats = static_cast<std::int32_t>(rows.size());
    rows.push_back(row);
  }
  doc_.stats = std::move(rows);
  if (asked(Private::weights))
    for (SeriesTable& table : doc_.history)
      for (std::size_t i = 0; i < table.values.size(); ++i)
        if (is_of_weights(table.name, table.columns[i % table.columns.size()]))
          table.values[i] = coarse(table.values[i]);
}

/// Text arguments of operators: those of the program's own operators may say anything.
void Redactor::clear_texts_of_arguments() {
  for (const OpRow& op : doc_.ops) {
    const bool own = asked(Private::names) && !op.name.starts_with("aten::");
    const auto end = std::min<std::int64_t>(std::int64_t{op.first_arg} + op.arg_count,
                                            static_cast<std::int64_t>(doc_.args.size()));
    for (std::int64_t i = std::max(op.first_arg, 0); i < end; ++i) {
      ArgRow& token = doc_.args[static_cast<std::size_t>(i)];
      if (token.kind == ArgKind::string && (own || (asked(Private::paths) && names_a_place(token.text))))
        token.text.clear();
    }
  }
}

void Redactor::clear_words() {
  if (asked(Private::texts) || asked(Private::samples)) doc_.sample_texts.clear();
  if (asked(Private::samples)) {
    for (std::size_t i = 0; i < doc_.sample_ids.size(); ++i)
      doc_.sample_ids[i] = "sample " + std::to_string(i);
    doc_.history_samples.clear();
  }
  if (asked(Private::history)) {
    doc_.history.clear();
    doc_.history_samples.clear();
  }
  const auto keep = [](std::map<std::string, std::string>& entries, const auto& wanted) {
    std::erase_if(entries, [&](const auto& entry) { return !is_sharing_key(entry.first) && !wanted(entry); });
  };
  if (asked(Private::paths) || asked(Private::names)) {  // a line names the function too
    doc_.stacks.clear();
    for (OpRow& op : doc_.ops) op.stack = kNone;
  }
  clear_texts_of_arguments();
  if (asked(Private::paths)) {
    const auto nowhere = [](const auto& entry) { return !names_a_place(entry.second); };
    keep(doc_.config, nowhere);
    keep(doc_.environment, nowhere);
  }
  if (asked(Private::settings)) {
    keep(doc_.config, [](const auto&) { return false; });
    keep(doc_.environment, [](const auto& entry) { return !entry.first.starts_with(kOptimizerKey); });
  }
  if (asked(Private::machine)) {
    doc_.host.clear();
    doc_.created_utc.clear();
    keep(doc_.environment, [](const auto& entry) { return needed_to_replay(entry.first); });
  }
  // They are no longer alike, or have other names now.
  if (asked(Private::weights) || asked(Private::names))
    for (const char* key : {kReplicasKey, kReplicasButKey}) doc_.environment.erase(key);
  if (asked(Private::names))
    std::erase_if(doc_.environment, [](const auto& entry) { return entry.first.starts_with(kPartKey); });
}

std::vector<std::string> Redactor::gone() const {
  const std::string how = options_.drop ? " (dropped)" : " (scrambled)";
  std::vector<std::string> lines;
  for (const auto& [thing, name] : private_things()) {
    if (!asked(thing)) continue;
    const bool values = thing == Private::texts || thing == Private::samples || thing == Private::weights;
    lines.push_back(name + (values ? how : thing == Private::names ? " (renamed)" : " (dropped)"));
  }
  if (graphs_go_)
    lines.emplace_back("graphs of compiled regions (dropped: the operation inside one can't be found again)");
  if (values_go()) lines.push_back("hashes (dropped), statistics (to a sixteenth)");
  return lines;
}

std::vector<std::string> Redactor::stays() const {
  std::vector<std::string> lines;
  const auto unless = [&](Private thing, const char* what) {
    if (!asked(thing)) lines.emplace_back(what);
  };
  if (!asked(Private::samples))
    lines.emplace_back(asked(Private::texts) ? "the batch but for its integers, and the ids of samples"
                                             : "the batch, and the ids of samples");
  unless(Private::weights, "weights, buffers and optimizer states");
  if (!asked(Private::paths) && !asked(Private::names)) lines.emplace_back("files and lines of the program");
  unless(Private::machine, "host, time and environment variables");
  unless(Private::settings, "settings of the run");
  unless(Private::history, asked(Private::weights)
                               ? "losses and rates of the steps before, norms to a sixteenth"
                               : "the history of the steps before");
  unless(Private::names, "names of modules, weights and functions");
  lines.emplace_back(
      "operations with their shapes, formats, and arguments that are numbers or words, states of random "
      "generators");
  return lines;
}

Status Redactor::write(const std::string& out) const {
  Scrambler scrambler;
  const auto change = [&](const std::string& path, TensorData& tensor) {
    const auto content = contents_.find(path);
    if (content == contents_.end()) return;
    // The bytes of a host write, or of a storage, have no type name, or are flat.
    const DType stored = tensor.dtype, meant = content->second.dtype;
    const std::vector<std::int64_t> shape = tensor.shape;
    const std::size_t bytes = tensor.bytes.size();
    if (stored == DType::uint8 && stored != meant && opaque_op(path) == kNone &&
        bytes % dtype_size(meant) == 0) {
      tensor.dtype = meant;
      tensor.shape = {static_cast<std::int64_t>(bytes / dtype_size(meant))};
    }
    if (!content->second.shape.empty() && tensor.shape.size() < 2) tensor.shape = content->second.shape;
    scrambler.scramble(tensor, content->second.vocabulary);
    tensor.dtype = stored;
    tensor.shape = shape;
  };
  return write_copy(file_, doc_, paths_, change, out);
}

}  // namespace nanquest
