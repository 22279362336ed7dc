#include "tests/viewer/fixture.h"

#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <set>
#include <stdexcept>

#include "probe/numerics/format.h"
#include "probe/snapshot/atomic_file.h"
#include "probe/snapshot/manifest.h"
#include "probe/snapshot/rank_row.h"
#include "probe/snapshot/run_dir.h"
#include "probe/snapshot/series.h"
#include "probe/snapshot/writer.h"
#include "replay/verdict/json.h"

namespace nanquest::viewer::testing {
namespace {

namespace fs = std::filesystem;

void need(const Status& status) {
  if (!status) throw std::runtime_error(status.error().text());
}

std::vector<std::string> layer_names() {
  std::vector<std::string> layers = {"token_embedding"};
  for (int i = 0; i < kBlocks; ++i) {
    const std::string block = "blocks." + std::to_string(i);
    for (const char* part : {".attention.qkv", ".attention.proj", ".mlp.up", ".mlp.down"})
      layers.push_back(block + part);
  }
  layers.push_back("norm");
  layers.push_back("head");
  return layers;
}

/// Quiet decay, then growth from step 60 on, faster in later blocks; noise from a fixed generator.
double norm_at(int step, std::size_t layer, std::size_t layers, std::mt19937& random) {
  std::uniform_real_distribution<double> noise(-0.12, 0.12);
  const double depth = static_cast<double>(layer) / static_cast<double>(layers - 1);
  const double base = 0.08 * std::exp(-step / 50.0) + 0.015 * (1 + depth);
  const double growth = step < 60 ? 0 : std::pow((step - 60) / 71.0, 2) * (1.5 + 4.5 * depth);
  return base * std::exp(growth + noise(random));
}

void write_values(SnapshotWriter& writer, const std::string& path, DType dtype,
                  const std::vector<std::int64_t>& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, 0.08);
  std::size_t n = 1;
  for (const std::int64_t d : shape) n *= static_cast<std::size_t>(d);
  std::vector<std::byte> bytes(n * dtype_size(dtype));
  for (std::size_t i = 0; i < n; ++i) {
    const double outlier = i % 997 == 3 ? 40.0 : 1.0;
    const float value = static_cast<float>(normal(random) * outlier);
    if (dtype == DType::float32) std::memcpy(bytes.data() + 4 * i, &value, 4);
    if (dtype == DType::int64) {
      const std::int64_t token = static_cast<std::int64_t>(random() % 256);
      std::memcpy(bytes.data() + 8 * i, &token, 8);
    }
  }
  need(writer.write_tensor(path, {dtype, shape, bytes.data()}));
}

/// The pictures that are in the batch: a disc each, larger from sample to sample; sample 3 has a bar of NaN
/// and one infinity.
void write_pictures(SnapshotWriter& writer, const SnapshotDoc& doc) {
  for (const NamedTensor& t : doc.batch) {
    std::vector<float> pixels(8 * 3 * 16 * 16);
    for (int i = 0; i < static_cast<int>(pixels.size()); ++i) {
      const int sample = i / 768, channel = i % 768 / 256, row = i % 256 / 16, column = i % 16;
      const bool disc = std::hypot(row - 7.5, column - 7.5) < sample + 1;
      float value = disc ? 1.5f - 0.5f * static_cast<float>(channel) : -1;
      if (sample == 3 && row == 4 && column > 8) value = std::nanf("");
      if (sample == 3 && channel == 0 && row == 10 && column == 3) value = HUGE_VALF;
      pixels[static_cast<std::size_t>(i)] = value;
    }
    need(writer.write_tensor(t.data, {t.dtype, t.shape, pixels.data()}));
  }
}

void write_snapshot(const std::string& path, SnapshotDoc doc) {
  Result<SnapshotWriter> writer = SnapshotWriter::create(path);
  if (!writer) throw std::runtime_error(writer.error().text());
  write_pictures(*writer, doc);
  std::set<std::string> done;
  unsigned seed = 1;
  for (std::size_t i = 0; i < doc.tensors.size(); ++i) {
    const TensorRow& row = doc.tensors[i];
    const Slot& slot = doc.slots[static_cast<std::size_t>(row.slot)];
    if (slot.data.empty() || !done.insert(slot.data).second) continue;
    write_values(*writer, slot.data, row.dtype, row.sizes, seed++);
    const std::string name = slot.origin == SlotOrigin::input ? "tokens" : slot.name;
    auto& list = slot.origin == SlotOrigin::input ? doc.batch : doc.parameters;
    list.push_back({name, slot.data, row.dtype, row.sizes, row.slot});
  }
  // One gradient of an earlier micro-batch that already holds what people look for.
  std::vector<std::uint16_t> half(64 * 64);
  for (std::size_t i = 0; i < half.size(); ++i)
    half[i] = static_cast<std::uint16_t>(
        encode(Format::fp16, std::pow(2.0, static_cast<double>(i % 38) - 22) * (i % 2 ? 1.3 : -1.1)));
  for (const std::size_t at : {70u, 71u, 1000u}) half[at] = 0x7e00;
  for (const std::size_t at : {200u, 2100u}) half[at] = 0x7c00;
  half[3000] = 0xfc00;
  const std::vector<std::int64_t> shape = {64, 64};
  need(writer->write_tensor("trace/slot_data/000099", {DType::float16, shape, half.data()}));
  need(writer->write_doc(doc));
  need(writer->commit());
}

}  // namespace

std::vector<SeriesTable> fixture_history(int steps) {
  const std::vector<std::string> layers = layer_names();
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  SeriesTable scalars{"scalars", {"step", "loss", "lr", "scale", "gate", "grad_norm"}, {}};
  std::vector<SeriesTable> tables = {scalars};
  for (const char* name : {"grad_norm", "weight_norm", "update_ratio", "grad_amax"})
    tables.push_back({name, layers, {}});
  std::mt19937 random(7);
  for (int step = 0; step < steps; ++step) {
    const bool bad = step == kBadStep, overflow = step == 90;
    const double loss =
        bad ? nan : 5.5 * std::exp(-step / 40.0) + 2.2 + (step > 100 ? (step - 100) * 0.06 : 0);
    const double row[] = {static_cast<double>(step),
                          loss,
                          0.006 * std::min(1.0, step / 20.0),
                          step < 90 ? 16384.0 : 8192.0,
                          bad           ? 2.0
                          : overflow    ? 1.0
                          : step == 124 ? 3.0
                                        : 0.0,
                          bad ? nan : 1.0};
    tables[0].values.insert(tables[0].values.end(), std::begin(row), std::end(row));
    for (std::size_t l = 0; l < layers.size(); ++l) {
      double g = norm_at(step, l, layers.size(), random);
      if (bad) g = nan;
      if (overflow && l > 8) g = inf;
      tables[1].values.push_back(g);
      tables[2].values.push_back(8 + 0.01 * step +
                                 (step > 80 ? 0.02 * (step - 80) * static_cast<double>(l) / 10 : 0));
      tables[3].values.push_back(bad ? 0 : 1e-3 * (1 + static_cast<double>(l) / 20) * (1 + step / 60.0));
      tables[4].values.push_back(std::isfinite(g) ? g / 9 : g);
    }
  }
  return tables;
}

std::vector<SeriesTable> with_costs(std::vector<SeriesTable> tables) {
  SeriesTable& scalars = tables.front();
  const std::size_t width = scalars.columns.size(), rows = scalars.rows();
  const double nan = std::nan("");
  std::vector<double> values;
  for (std::size_t r = 0; r < rows; ++r) {
    const auto row = scalars.values.begin() + static_cast<std::ptrdiff_t>(r * width);
    values.insert(values.end(), row, row + static_cast<std::ptrdiff_t>(width));
    const bool early = r < 20;
    const double more[] = {early ? 0.5 : 0.02,  // seconds
                           early ? 1.2e9 : 1.1e9, 3e9, early ? nan : 0.015, early ? nan : 0.0025};
    values.insert(values.end(), std::begin(more), std::end(more));
  }
  for (const char* name : {"seconds", "resident", "device_peak", "probe_share", "watch_share"})
    scalars.columns.emplace_back(name);
  scalars.values = std::move(values);
  return tables;
}

std::string fixture_verdict(bool poisoned) {
  Result<Verdict> verdict = read_verdict(NANQUEST_GOLDEN_VERDICTS "/fp16_overflow.json");
  if (!verdict) throw std::runtime_error(verdict.error().text());
  // Replay said it of the sample fp16_overflow; here the same happens to an op of the fixture's trace.
  const SnapshotDoc doc = fixture_doc();
  const OpRow& op = doc.ops[static_cast<std::size_t>(doc.culprit.op)];
  verdict->snapshot = "step-00000131.r0.h5";
  verdict->step = kBadStep;
  verdict->culprit.index = doc.culprit.op;
  verdict->culprit.op = op.name;
  verdict->culprit.module = doc.modules[static_cast<std::size_t>(op.module)].path;
  verdict->culprit.count = doc.culprit.count;
  verdict->culprit.first = doc.culprit.first;
  verdict->culprit.stack = doc.stacks[static_cast<std::size_t>(op.stack)];
  if (poisoned) {
    verdict->poison = {3};
    verdict->poison_ids = {doc.sample_ids[3]};
    verdict->batch = static_cast<std::int64_t>(doc.sample_ids.size());
  }
  return to_json(*verdict);
}

Column column_of(std::vector<SeriesTable>& tables, const std::string& table, const std::string& column) {
  for (SeriesTable& t : tables)
    for (std::size_t c = 0; t.name == table && c < t.columns.size(); ++c)
      if (t.columns[c] == column) return {&t, c};
  throw std::runtime_error("no column " + column + " in " + table);
}

void write_series(const std::string& run_dir, const std::vector<SeriesTable>& tables, std::int32_t rank) {
  fs::create_directories(run_dir);
  fs::remove(series_path(run_dir, rank));
  Result<SeriesWriter> series = SeriesWriter::create(series_path(run_dir, rank), tables);
  if (!series) throw std::runtime_error(series.error().text());
  for (std::size_t r = 0; r < tables[0].rows(); ++r) {
    std::vector<std::span<const double>> rows;
    for (const SeriesTable& t : tables)
      rows.emplace_back(t.values.data() + r * t.columns.size(), t.columns.size());
    need(series->append(rows));
  }
  need(series->flush());
}

std::string write_run(const std::string& run_dir, const FixtureOptions& options) {
  fs::create_directories(incidents_dir(run_dir));
  const std::vector<SeriesTable> history = fixture_history();
  if (options.series) write_series(run_dir, history);
  const std::string snapshot = incident_path(run_dir, kBadStep, 0);
  SnapshotDoc doc = fixture_doc();
  doc.history = history;
  if (options.poisoned) doc.batch.push_back({"image", "batch/image", DType::float32, {8, 3, 16, 16}, kNone});
  if (!options.watched) {
    doc.basis = "survivors";
    if (options.replayed) write_snapshot(replay_path(snapshot), doc);
    doc.stats.clear();
    doc.culprit = {};
    for (TensorRow& row : doc.tensors) row.stats = kNone;
    for (OpRow& op : doc.ops) op.flags &= ~kOpBirth;
  }
  write_snapshot(snapshot, doc);
  if (options.replayed) std::ofstream(verdict_path(snapshot)) << fixture_verdict(options.poisoned);
  Manifest manifest;
  manifest.created = "2025-01-02T03:00:00Z";
  manifest.command = "nanquest-trainer --config samples/configs/story.toml --run-dir runs/story";
  manifest.status = "finished";
  manifest.outcome = "went on in fp32 after step 131; loss 2.31";
  manifest.incidents = {
      {kBadStep, 0, "incidents/step-00000131.r0.h5", "non_finite", "aten::mm in blocks.3.mlp made 17 +Inf"}};
  if (options.incidents > 1) {
    doc.step = 90;
    doc.gate = Gate::scale_overflow;
    doc.culprit = {};
    write_snapshot(incident_path(run_dir, 90, 0), doc);
    manifest.incidents.push_back(
        {90, 0, "incidents/step-00000090.r0.h5", "scale_overflow", "the loss scale overflowed repeatedly"});
  }
  if (options.manifest) need(write_manifest(run_dir, manifest));
  return snapshot;
}

void write_ranks(const std::string& run_dir, std::int32_t world) {
  fs::copy(incident_path(run_dir, kBadStep, 0), incident_path(run_dir, kBadStep, 3));
  for (std::int32_t rank = 1; rank + 1 < world; ++rank) {
    RankRow row{Standing::arrived, -1, "", kBadStep, rank, world, 3};
    if (rank == 2) row = {Standing::made_here, 9, "aten::log in head (forward)", kBadStep, rank, world, 3};
    if (rank != 3)
      need(write_file_atomically(rank_row_path(run_dir, kBadStep, rank), to_line(row), Durable::soon));
  }
  Result<Manifest> manifest = read_manifest(run_dir);
  if (!manifest) throw std::runtime_error(manifest.error().text());
  manifest->world_size = world;
  need(write_manifest(run_dir, *manifest));
}

TempDir::TempDir() {
  std::string pattern = (fs::temp_directory_path() / "nanquest-viewer-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary directory");
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ec;
  fs::remove_all(path_, ec);
}

}  // namespace nanquest::viewer::testing
