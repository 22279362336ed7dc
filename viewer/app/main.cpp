// nanquest-viewer: a window, a picture, text, CSV or a report of a run.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "probe/snapshot/reference.h"
#include "probe/snapshot/version.h"
#include "viewer/app/choose.h"
#include "viewer/app/report_file.h"
#include "viewer/model/kept.h"
#include "viewer/model/taster.h"
#include "viewer/panels/layouts.h"
#include "viewer/panels/registry.h"
#ifdef NANQUEST_WITH_WINDOW
#include "viewer/app/offscreen.h"
#include "viewer/app/window.h"
#include "viewer/model/opening.h"
#include "viewer/model/settings.h"
#endif

namespace {

using namespace nanquest;
using namespace nanquest::viewer;

constexpr const char* kExamples =
    "Examples:\n"
    "  nanquest-viewer runs/story                                   a window\n"
    "  nanquest-viewer runs/story --screenshot norms.png --panel norms\n"
    "  nanquest-viewer runs/story/incidents/step-00000131.r0.h5 --text verdict\n"
    "  nanquest-viewer runs/story --csv trace > trace.csv\n"
    "  nanquest-viewer runs/story --report story.html               to be read elsewhere\n"
    "Exit codes: 0 done, 2 usage or no display, 3 bad file, 70 internal.";

/// The text below the options: panels, layouts and examples.
std::string footer() {
  std::string text = "Panels: " + panel_choice(true) + ".\nLayouts, Alt+1 to Alt+4 in a window:\n";
  for (const LayoutInfo& layout : all_layouts())
    text += "  " + std::string(layout.name) + ": " + layout.purpose + "\n";
  return text + kExamples;
}

std::string version_text() {
  return "nanquest-viewer " NANQUEST_VERSION "\n" + file_versions();
}

int fail(const Error& error) {
  std::fprintf(stderr, "nanquest-viewer: %s\n", error.text().c_str());
  return exit_code(error.code);
}

int usage(const std::string& message, const std::string& hint) {
  return fail({ErrorCode::usage, message, hint});
}

int bad_layout(const std::string& name) {
  return usage("there is no layout \"" + name + "\"", "choose " + layout_choice());
}

int bad_panel(const std::string& name) {
  return usage("there is no panel \"" + name + "\"", "choose " + panel_choice(true));
}

/// Text and CSV often go to a pipe: write every byte or report an error.
int print(const std::string& text) {
  const bool whole =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  return whole ? 0 : fail({ErrorCode::io, "standard output cannot be written", ""});
}

int wrote(const std::string& path) {
  std::fprintf(stderr, "wrote %s\n", path.c_str());
  return 0;
}

void warn_of(const Session& session) {
  for (const std::string& complaint : session.complaints())
    std::fprintf(stderr, "nanquest-viewer: warning: %s\n", complaint.c_str());
}

#ifdef NANQUEST_WITH_WINDOW
bool parse_size(const std::string& text, int& width, int& height) {
  char rest = 0;
  return std::sscanf(text.c_str(), "%dx%d%c", &width, &height, &rest) == 2 && width >= 320 && height >= 200 &&
         width <= 8192 && height <= 8192;
}

int no_size(const Arguments& a) {
  return usage("--size " + a.size + " is no size", "give WIDTHxHEIGHT, 320x200 to 8192x8192, as in 1280x800");
}

int no_theme(const Arguments& a) {
  return usage("there is no theme \"" + a.theme + "\"", "choose dark, light or high-contrast");
}

int show(Session& session, const Arguments& a, Panel panel) {
  int width = 0, height = 0;
  if (!parse_size(a.size, width, height)) return no_size(a);
  const std::optional<Theme> theme = theme_from_name(a.theme.empty() ? "dark" : a.theme);
  if (!theme) return no_theme(a);
  const Result<Image> image = take_picture(session, {panel, true, {}, true, layout_from_name(a.layout)},
                                           width, height, a.scale, *theme);
  if (!image) return fail(image.error());
  const Status written = write_png(a.screenshot, *image);
  if (!written) return fail(written.error());
  return wrote(a.screenshot);
}

/// The window opens at once, or as soon as the run is read if that is quick: errors are then printed here,
/// later shown in the window.
int show_window(const Arguments& a, Panel panel) {
  WindowOptions wanted{0, 0, a.scale, a.frames, a.seconds, a.actions};
  wanted.drops = a.drops;
  if (!parse_size(a.size, wanted.width, wanted.height)) return no_size(a);
  wanted.theme = theme_from_name(a.theme);
  if (!wanted.theme && !a.theme.empty()) return no_theme(a);
  constexpr std::chrono::milliseconds quick{400};
  Session session = Session::nothing(a.path);
  Status outcome;
  const auto opened = std::make_shared<Status>();
  const auto arrival = std::make_shared<Arrival>();
  const auto trouble = std::make_shared<std::string>();
  std::optional<Loader> loader(std::in_place);
  const OwnFolders folders{settings_folder(), a.fresh ? "" : state_folder()};
  const auto open = [&a, panel, opened, arrival, trouble, folders](Session& shown) {
    Result<Opening> read = open_as_left(a.path, folders, shown.progress());
    *opened = !read ? Status(read.error()) : select(read->session, a);
    if (opened->ok()) *opened = check_shown(read->session, panel);
    if (opened->ok() && !a.compare.empty()) *opened = read->session.compare_with(a.compare);
    if (read) *trouble = read->trouble;
    if (opened->ok()) *arrival = {std::move(read->desk), read->resumed, true};
    shown = opened->ok() ? std::move(read->session) : Session::nothing(a.path, opened->error().text());
    return true;
  };
  const auto tell = [&] {
    outcome = *opened;
    warn_of(session);
    if (!trouble->empty()) std::fprintf(stderr, "nanquest-viewer: warning: %s\n", trouble->c_str());
  };
  loader->ask(session, {session.title(), open, tell, true});
  if (loader->wait(quick)) loader->collect(session);
  if (!outcome) return fail(outcome.error());
  const Status shown =
      run_window(session, *loader, {panel, false, folders, !a.theme.empty(), layout_from_name(a.layout)},
                 *arrival, wanted);
  if (!shown) return fail(shown.error());
  loader.reset();  // it may be writing notes
  if (const Status kept = arrival->there ? write_desk(folders.state, session, arrival->desk) : Status();
      !kept)
    std::fprintf(stderr, "nanquest-viewer: warning: how the run was left is not kept: %s\n",
                 kept.error().text().c_str());
  return outcome ? 0 : exit_code(outcome.error().code);
}
#else
int no_window() {
  return usage(
      "this nanquest-viewer was built without Dear ImGui, GLFW or EGL: it has no window and no pictures",
      "use --text, --csv PANEL or --report FILE, or build it again with the packages that the configure step "
      "names");
}
int show(Session&, const Arguments&, Panel) {
  return no_window();
}
int show_window(const Arguments&, Panel) {
  return no_window();
}
#endif

int run(const Arguments& a) {
  if (!(a.scale >= 0.5f && a.scale <= 4)) return usage("--scale must lie between 0.5 and 4", "");
  const std::string name = a.wants_text ? a.text : !a.csv.empty() ? a.csv : a.panel;
  const auto panel = panel_from_name(name);
  if (!panel) return bad_panel(name);
  if (!a.layout.empty() && layout_from_name(a.layout) == nullptr) return bad_layout(a.layout);
  if (!a.layout.empty() && *panel != Panel::all)
    return usage("--layout arranges all panels, and one alone is asked for",
                 "leave out --layout or the panel");
  const Result<ReportKind> kind = a.report.empty() ? ReportKind::markdown : report_kind(a.report);
  if (!kind) return fail(kind.error());
  if (a.report.empty() && !a.wants_text && a.csv.empty() && a.screenshot.empty())
    return show_window(a, *panel);
  Result<Session> session = Session::open(a.path);
  if (!session) return fail(session.error());
  const bool lists = session->folder() != nullptr || session->diff() != nullptr;
  if (lists)
    if (const Status possible = check_folder(*session, a, *panel); !possible) return fail(possible.error());
  if (const Status selected = select(*session, a); !selected) return fail(selected.error());
  if (const Status possible = check_shown(*session, *panel); !possible) return fail(possible.error());
  for (const std::string& written : {a.report, a.screenshot})
    if (!written.empty())
      for (const Status& may : {folder_is_there(written), may_write(*session, written)})
        if (!may) return fail(may.error());
  if (!a.compare.empty())
    if (const Status compared = session->compare_with(a.compare); !compared) return fail(compared.error());
  warn_of(*session);
  if (!a.report.empty()) {
    const Status written = write_report(*session, *kind, a.report);
    return written ? wrote(a.report) : fail(written.error());
  }
  if (a.wants_text) return print(panel_text(*session, lists ? Panel::runs : *panel));
  if (a.csv.empty()) return show(*session, a, *panel);
  const Result<std::string> csv = panel_csv(*session, *panel);
  return csv ? print(*csv) : fail(csv.error());
}

}  // namespace

int main(int argc, char** argv) try {
  quiet_hdf5();
  Arguments a;
  CLI::App app{
      "Shows a run of nanquest: the verdict, the timeline, the norms of every layer, the trace, tensors and "
      "incidents.",
      "nanquest-viewer"};
  app.footer(footer());
  app.add_option("path", a.path, "A run directory or a snapshot")->type_name("RUN|SNAPSHOT");
  auto* text = app.add_option("--text", a.text, "Print a panel as text (all if none is named)")
                   ->expected(0, 1)
                   ->type_name("PANEL");
  app.add_option("--csv", a.csv, "Print a panel as comma-separated values")->type_name("PANEL");
  app.add_option("--screenshot", a.screenshot, "Write a picture; needs no display")->type_name("FILE.png");
  app.add_option("--report", a.report, "Write all panels as one file that needs nothing beside itself")
      ->type_name("FILE.html|FILE.md");
  app.add_option("--panel", a.panel, "Which panel to draw")->type_name("PANEL")->capture_default_str();
  app.add_option("--layout", a.layout, "How the panels stand (a window: as they were last)")
      ->type_name("LAYOUT");
  app.add_flag("--fresh", a.fresh, "A window as if the run had never been opened; nothing of it is kept");
  app.add_flag(
      "--sandbox", a.sandbox,
      "Have every file read by a child process first: one that makes the reader crash is not opened");
  app.add_option("--sandbox-seconds", a.sandbox_seconds, "How long that may take")->group("");
  app.add_option("--taste", a.taste, "What a child process reads a file as")->group("");
  app.add_option("--taste-file", a.taste_file, "The file that it reads")->group("");
  app.add_option("--drop", a.drops, "Drop this onto the window once the run is shown")->group("");
  app.add_option("--size", a.size, "Size of window or picture in pixels")
      ->type_name("WxH")
      ->capture_default_str();
  app.add_option("--theme", a.theme, "Colours: dark, light or high-contrast (a window: as it was last)")
      ->type_name("THEME");
  app.add_option("--scale", a.scale, "Size of text and controls")->capture_default_str();
  app.add_option("--step", a.step, "Open the incident at this step");
  app.add_option("--op", a.op, "Select this op of the trace");
  app.add_option("--layer", a.layer, "Select this layer");
  app.add_option("--tensor", a.tensor, "Select this stored tensor");
  app.add_option_function<std::string>(
         "--model", [](const std::string& path) { ::setenv(kModelVariable, path.c_str(), 1); },
         "Where the model's folder lies now, for snapshots that refer to its files for frozen weights")
      ->check(CLI::ExistingPath)
      ->type_name("DIR");
  app.add_option("--compare", a.compare, "Put another run beside it; may be given several times")
      ->type_name("RUN|SNAPSHOT")
      ->allow_extra_args(false);
  app.add_option("--smooth", a.smooth, "Smooth curves: weight of the exponential moving average, 0 to 0.999")
      ->type_name("WEIGHT");
  app.add_option("--element", a.element, "Select this element of the tensor");
  app.add_option("--what-if", a.what_if, "Hold the tensor against this format at this scale: fp16, bf16:2^12")
      ->type_name("FORMAT[:SCALE]");
  app.add_option("--statistic", a.statistic,
                 "grad_norm, weight_norm, update_ratio, grad_amax or weight_amax");
  app.add_option("--frames", a.frames, "Close the window after so many frames")->group("");
  app.add_option("--do", a.actions, "Do what bears this name in the list of actions")->group("");
  app.add_option("--seconds", a.seconds, "Close the window after so long")->group("");
  app.set_version_flag("--version", version_text());
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return usage(error.what(), "nanquest-viewer --help lists the options");
  }
  if (!a.taste.empty()) {
    taste(a.taste == "series"   ? Taste::series
          : a.taste == "ranges" ? Taste::ranges
                                : Taste::snapshot,
          a.taste_file);
    return 0;
  }
  if (a.sandbox) taste_with(child_taster("/proc/self/exe", {.seconds = a.sandbox_seconds}));
  a.wants_text = text->count() > 0;
  // `--text RUN`: then the word after --text is the run and not a panel.
  if (a.wants_text && a.path.empty() && !panel_from_name(a.text)) std::swap(a.path, a.text);
  if (a.wants_text && a.text.empty()) a.text = "all";
  if (a.path.empty())
    return usage("nothing to show", "give a run directory or a snapshot; --help shows examples");
  return run(a);
} catch (const std::exception& error) {
  return fail({ErrorCode::internal, error.what(), ""});
}
