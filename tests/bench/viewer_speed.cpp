// What a person feels of a large run: a filter over a million ops, zooming over 300 layers, following a run
// that grows, opening a long one. Each figure in milliseconds against its goal, and against the plain way of
// doing the same. "filter", "zoom", "follow" or "long" as the first argument: that part alone.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "imgui.h"
#include "implot.h"
#include "probe/snapshot/series.h"
#include "tests/bench/report.h"
#include "tests/viewer/fixture.h"
#include "viewer/model/words.h"
#include "viewer/panels/frame.h"
#include "viewer/ui/style.h"

namespace {

using namespace nanquest;
using namespace nanquest::viewer;

const std::size_t kOps = bench::one_round() ? 10'000 : 1'000'000, kSteps = bench::one_round() ? 200 : 20'000;
constexpr std::size_t kLayers = 300;

/// The ops of the fixture, over and over, each time in another block.
SnapshotDoc many_ops() {
  SnapshotDoc doc = testing::fixture_doc();
  const std::vector<OpRow> some = doc.ops;
  const std::vector<ModuleRow> modules = doc.modules;
  for (std::size_t block = 0; block < 96; ++block)
    for (ModuleRow row : modules) {
      row.path = "decoder." + std::to_string(block) + "." + row.path;
      doc.modules.push_back(row);
    }
  doc.ops.reserve(kOps);
  for (std::size_t i = doc.ops.size(); i < kOps; ++i) {
    OpRow op = some[i % some.size()];
    const std::size_t block = i / some.size() % 96;
    if (op.module != kNone) op.module += static_cast<std::int32_t>(modules.size() * (block + 1));
    op.forward_op = kNone;
    doc.ops.push_back(std::move(op));
  }
  return doc;
}

void filter() {
  const SnapshotDoc doc = many_ops();
  const auto begun = std::chrono::steady_clock::now();
  const TraceView trace(doc);
  std::printf("made the trace of %zu ops in %.0f ms\n", kOps,
              std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count());
  const char* const typed[] = {"s", "softmax", "f16 backward decoder.7", "decoder.31.blocks.2 mm",
                               "no such op"};
  std::vector<double> times, ratios;
  std::size_t found = 0, plainly = 0;
  for (const char* words : typed) {
    const double ours = bench::seconds([&] { found += trace.filter(words).size(); });
    const double plain = bench::seconds([&] {
      const Words wanted(words);
      for (const OpId op : trace.ops()) {
        const TraceLine l = trace.line(op);
        plainly += wanted.in(l.name + ' ' + l.module + ' ' + l.node + ' ' + std::string(phase_name(l.phase)) +
                             ' ' + l.read_formats + ' ' + l.write_format + ' ' + mark_words(trace.mark(op)));
      }
    });
    times.push_back(ours * 1e3);
    ratios.push_back(ours / plain);
  }
  if (found != plainly) std::printf("viewer/filter finds %zu ops, not %zu\n", found, plainly);
  bench::report("viewer/filter of 1 M ops, ms", times, 50, bench::Better::lower);
  bench::report("viewer/filter of 1 M ops, to each line", ratios, 0.2, bench::Better::lower);
}

std::vector<double> row_at(std::size_t step, std::size_t columns) {
  std::vector<double> row(columns);
  for (std::size_t c = 0; c < columns; ++c)
    row[c] = (step * 31 + c * 17) % 60'013 == 5
                 ? std::nan("")
                 : std::exp(std::sin(static_cast<double>(step) * 1e-3 + static_cast<double>(c) * 0.05) +
                            0.3 * std::sin(static_cast<double>(step * 7919 % 1000)));
  return row;
}

std::vector<SeriesTable> tables() {
  std::vector<SeriesTable> all = {
      {"scalars", {"step", "loss"}, {}}, {"grad_norm", {}, {}}, {"weight_norm", {}, {}}};
  for (std::size_t c = 0; c < kLayers; ++c)
    for (SeriesTable* table : {&all[1], &all[2]}) {
      table->columns.push_back("layers." + std::to_string(c) + ".weight");
    }
  return all;
}

void append(SeriesWriter& writer, std::size_t step) {
  const double scalars[] = {static_cast<double>(step), 2.5};
  const std::vector<double> row = row_at(step, kLayers);
  (void)writer.append({scalars, row, row});
}

/// A window of 1280 x 800 pixels without a backend: what a frame costs before it is rasterised.
class Window {
 public:
  Window(Session& session, Panel panel) : context_(ImGui::CreateContext()), ui_(session, {panel}) {
    ImPlot::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.BackendFlags |= ImGuiBackendFlags_RendererHasTextures;
#ifdef IMGUI_HAS_DOCK
    io.ConfigFlags |= ImGuiConfigFlags_DockingEnable;
#endif
    io.DisplaySize = {1280, 800};
    apply_style(1);
    for (int i = 0; i < 10; ++i) (void)frame();
  }
  ~Window() {
    ImPlot::DestroyContext();
    ImGui::DestroyContext(context_);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  /// Milliseconds of one.
  double frame() {
    ImGui::GetIO().DeltaTime = 1.0f / 60;
    const double took = bench::seconds([&] {
      ImGui::NewFrame();
      ui_.draw();
      ImGui::Render();
    });
    for (ImTextureData* texture : ImGui::GetPlatformIO().Textures)
      if (texture->Status != ImTextureStatus_OK) {
        texture->SetTexID(1);
        texture->SetStatus(ImTextureStatus_OK);
      }
    return took * 1e3;
  }
  Ui& ui() {
    return ui_;
  }

 private:
  ImGuiContext* context_;
  Ui ui_;
};

/// Frames while zooming in and out.
void zoom(Session& session, Panel panel, const char* name) {
  Window window(session, panel);
  std::vector<double> times;
  for (int i = 0; i < bench::rounds(50); ++i) {
    const double middle = static_cast<double>(kSteps) / 2, half = middle / (1 + std::abs(i - 25) * 0.2);
    window.ui().state().steps.first = middle - half;
    window.ui().state().steps.last = middle + half;
    times.push_back(window.frame());
  }
  bench::report(name, times, 8, bench::Better::lower);
}

void follow(Session& session, SeriesWriter& writer, const std::string& series) {
  Window window(session, Panel::all);
  std::vector<double> times, ratios, frames;
  for (int i = 0; i < bench::rounds(12); ++i) {
    append(writer, kSteps + static_cast<std::size_t>(i));
    (void)writer.flush();
    bool news = false;
    const double ours = bench::seconds([&] { news = session.poll(); });
    if (!news || session.history().rows() != kSteps + static_cast<std::size_t>(i) + 1)
      std::printf("viewer/following saw nothing new\n");
    frames.push_back(window.frame());
    const double plain = bench::seconds([&] {
      const auto all = read_series(series);
      if (all) (void)History(*all).rows();
    });
    times.push_back(ours * 1e3);
    ratios.push_back(ours / plain);
  }
  bench::report("viewer/following one row more, ms", times, 16, bench::Better::lower);
  bench::report("viewer/following, to reading it all", ratios, 0.1, bench::Better::lower);
  bench::report("viewer/a frame with a row more, ms", frames, 16, bench::Better::lower);
}

/// 120,000 steps of a small decoder: until its first frame, and while it is followed at a thousand steps a
/// second.
void long_run() {
  const std::size_t steps = bench::one_round() ? 2'000 : 120'000, layers = 40;
  const testing::TempDir temp;
  const std::string run = temp.path() + "/run";
  std::filesystem::create_directories(run);
  std::vector<SeriesTable> all = {{"scalars", {"step", "loss", "gate"}, {}},
                                  {"grad_norm", {}, {}},
                                  {"weight_norm", {}, {}},
                                  {"update_ratio", {}, {}}};
  for (std::size_t c = 0; c < layers; ++c)
    for (std::size_t t = 1; t < all.size(); ++t)
      all[t].columns.push_back("layers." + std::to_string(c) + ".weight");
  Result<SeriesWriter> writer = SeriesWriter::create(series_path(run, 0), all);
  if (!writer) return;
  const auto put = [&](std::size_t step) {
    const double scalars[] = {static_cast<double>(step), 2.5, step % 41 == 0 ? 3.0 : 0.0};
    const std::vector<double> row = row_at(step, layers);
    (void)writer->append({scalars, row, row, row});
  };
  std::size_t step = 0;
  while (step < steps) put(step++);
  (void)writer->flush();
  std::vector<double> opened, drawn, shares;
  for (int i = 0; i < bench::rounds(5); ++i) {
    opened.push_back(bench::seconds([&] { (void)Session::open(run); }) * 1e3);
    Result<Session> session = Session::open(run);
    if (!session) return;
    drawn.push_back(bench::seconds([&] { const Window window(*session, Panel::all); }) * 1e3);
  }
  bench::report("viewer/opening 120,000 steps, ms", opened, 400, bench::Better::lower);
  bench::report("viewer/ten first frames of them, ms", drawn, 300, bench::Better::lower);
  Result<Session> session = Session::open(run);
  Window window(*session, Panel::all);
  for (int i = 0; i < bench::rounds(10); ++i) {
    for (int k = 0; k < 1000; ++k) put(step++);
    (void)writer->flush();
    double frame = 0;
    const double poll = bench::seconds([&] { (void)session->poll(); });
    for (int k = 0; k < 3; ++k) frame += window.frame();
    shares.push_back(100 * (poll + frame / 1e3));
  }
  bench::report("viewer/following 1,000 steps a second, % of a core", shares, 5, bench::Better::lower);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string part = argc > 1 ? argv[1] : "";
  const auto wanted = [&](const char* name) { return part.empty() || part == name; };
  if (wanted("filter")) filter();
  if (wanted("long")) long_run();
  if (!wanted("zoom") && !wanted("follow")) return 0;
  const testing::TempDir temp;
  const std::string run = temp.path() + "/run", series = series_path(run, 0);
  std::filesystem::create_directories(run);
  Result<SeriesWriter> writer = SeriesWriter::create(series, tables());
  if (!writer) return 70;
  for (std::size_t step = 0; step < kSteps; ++step) append(*writer, step);
  (void)writer->flush();
  Result<Session> session = Session::open(run);
  if (!session) return 70;
  if (wanted("zoom")) {
    zoom(*session, Panel::norms, "viewer/zoom over 300 layers, ms a frame");
    zoom(*session, Panel::all, "viewer/the same with all panels");
  }
  if (wanted("follow")) follow(*session, *writer, series);
  return 0;
}
