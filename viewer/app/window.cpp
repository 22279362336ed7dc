#include "viewer/app/window.h"

#include <GLFW/glfw3.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "backends/imgui_impl_glfw.h"
#include "backends/imgui_impl_opengl3.h"
#include "imgui.h"
#include "implot.h"
#include "viewer/app/follower.h"
#include "viewer/app/pixels.h"
#include "viewer/app/remember.h"
#include "viewer/ui/pace.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {
namespace {

using Clock = std::chrono::steady_clock;

/// "" if there is no place for it.
std::string settings_file(const std::string& folder) {
  return folder.empty() ? "" : (std::filesystem::path(folder) / "viewer.ini").string();
}

Error no_display(const std::string& why) {
  return {ErrorCode::unsupported, "no window can be opened: " + why,
          "without a display use --screenshot FILE, --report FILE, --text or --csv PANEL"};
}

std::string last_error() {
  const char* text = nullptr;
  glfwGetError(&text);
  return text == nullptr ? "there is no display" : text;
}

/// Events of the system between frames, besides input.
struct Told {
  std::string dropped;   ///< a file to open instead, with the same layout
  bool exposed = false;  ///< what was drawn is lost
};

Told* told(GLFWwindow* window) {
  return static_cast<Told*>(glfwGetWindowUserPointer(window));
}

void on_drop(GLFWwindow* window, int count, const char** paths) {
  if (count > 0) told(window)->dropped = paths[0];
}

void on_refresh(GLFWwindow* window) {
  told(window)->exposed = true;
}

std::string title_of(const Session& session) {
  return "nanquest, " + session.title();
}

/// Writes what was just drawn of a panel, as far as it is inside the window; `width` and `height` in pixels.
Status take(const PictureSaver::Due& wanted, int width, int height) {
  const ImVec2 scale = ImGui::GetIO().DisplayFramebufferScale;
  const auto within = [](float at, float factor, int most) {
    return std::clamp(static_cast<int>(at * factor), 0, most);
  };
  const int left = within(wanted.from.x, scale.x, width), right = within(wanted.to.x, scale.x, width);
  const int top = within(wanted.from.y, scale.y, height), bottom = within(wanted.to.y, scale.y, height);
  const Result<Image> image =
      read_pixels(glfwGetProcAddress, left, height - bottom, right - left, bottom - top);
  return image ? write_png(wanted.path, *image) : Status(image.error());
}

void draw_frame(GLFWwindow* window, Ui& ui) {
  ImGui_ImplOpenGL3_NewFrame();
  ImGui_ImplGlfw_NewFrame();
  ImGui::NewFrame();
  ui.draw();
  ImGui::Render();
  int width = 0, height = 0;
  glfwGetFramebufferSize(window, &width, &height);
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
  if (const auto wanted = ui.picture_due()) ui.picture_taken(wanted->path, take(*wanted, width, height));
  glfwSwapBuffers(window);
}

bool was_resized(GLFWwindow* window) {
  int width = 0, height = 0;
  glfwGetWindowSize(window, &width, &height);
  const ImVec2 drawn = ImGui::GetIO().DisplaySize;
  return drawn.x != static_cast<float>(width) || drawn.y != static_cast<float>(height);
}

/// What the window shows besides the picture, and what changes in the picture by itself.
struct Changing {
  std::string title, age, doing;
  bool operator==(const Changing&) const = default;
};

void loop(GLFWwindow* window, Session& session, Loader& loader, const UiOptions& options, Arrival& arrival,
          const WindowOptions& wanted, std::string& layout) {
  Ui ui(session, options, &loader);
  ui.assume_layout(layout);
  loader.wake_with([] { glfwPostEmptyEvent(); });
  Told events;
  glfwSetWindowUserPointer(window, &events);
  glfwSetDropCallback(window, on_drop);
  glfwSetWindowRefreshCallback(window, on_refresh);
  Follower follower;
  Pace pace;
  Changing drawn;
  std::vector<std::string> actions = wanted.actions, drops = wanted.drops;
  const bool counts = wanted.frames >= 0;
  int frames = 0;
  const auto start = Clock::now();
  const auto late = [&] {
    return wanted.seconds > 0 && std::chrono::duration<double>(Clock::now() - start).count() > wanted.seconds;
  };
  while (!glfwWindowShouldClose(window) && !ui.wants_to_quit() && frames != wanted.frames && !late()) {
    if (pace.may_wait() && !counts)
      glfwWaitEventsTimeout(ui.waits() ? 0.1 : 1.0);
    else
      glfwPollEvents();
    bool something = input_waits() || was_resized(window) || std::exchange(events.exposed, false);
    if (const std::string path = std::exchange(events.dropped, ""); !path.empty()) ui.state().open(path);
    follower.look(ui.state());
    something = ui.collect() || something;
    if (std::exchange(arrival.there, false)) ui.state().arrived = arrival;
    const Changing now{title_of(session), session.age_text(), loader.doing()};
    if (now.title != drawn.title) glfwSetWindowTitle(window, now.title.c_str());
    if (now != drawn) something = true, drawn = now;
    if (!pace.next(something) && !counts) continue;
    draw_frame(window, ui);
    layout = ui.layout().name;
    ++frames;
    if (!drops.empty() && !session.is_nothing() && !loader.busy()) {
      // The callback of GLFW for dropped files.
      const std::string path = drops.front();
      const char* paths[] = {path.c_str()};
      drops.erase(drops.begin());
      on_drop(window, 1, paths);
    }
    if (!session.is_nothing())
      for (const std::string& name : std::exchange(actions, {}))
        if (!ui.run_named(name))
          std::fprintf(stderr, "nanquest-viewer: there is no action \"%s\" now\n", name.c_str());
  }
  loader.wake_with({});
  if (has_desk(session)) arrival = {ui.desk(), false, true};
  if (wanted.seconds > 0) std::fprintf(stderr, "%d frames\n", frames);
}

}  // namespace

Status run_window(Session& session, Loader& loader, const UiOptions& options, Arrival& arrival,
                  const WindowOptions& wanted) {
  if (!glfwInit()) return no_display(last_error());
  glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
  glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 2);
  glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
  glfwWindowHint(GLFW_OPENGL_FORWARD_COMPAT, GLFW_TRUE);
  glfwWindowHint(GLFW_SCALE_TO_MONITOR, GLFW_TRUE);
  GLFWwindow* window =
      glfwCreateWindow(wanted.width, wanted.height, title_of(session).c_str(), nullptr, nullptr);
  if (window == nullptr) {
    const Error error = no_display(last_error());
    glfwTerminate();
    return error;
  }
  glfwMakeContextCurrent(window);
  glfwSwapInterval(1);
  float monitor = 1, unused = 1;
  glfwGetWindowContentScale(window, &monitor, &unused);
  ImGui::CreateContext();
  ImPlot::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  io.ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard;
#ifdef IMGUI_HAS_DOCK
  io.ConfigFlags |= ImGuiConfigFlags_DockingEnable;
#endif
  io.ConfigInputTextCursorBlink = false;  // no frames are drawn while nothing happens
  const std::string settings = settings_file(options.folders.settings);
  io.IniFilename = settings.empty() ? nullptr : settings.c_str();
  apply_style(wanted.scale * (monitor > 0 ? monitor : 1));
  std::string layout;
  remember_choices(layout);
  if (io.IniFilename != nullptr) ImGui::LoadIniSettingsFromDisk(io.IniFilename);
  if (wanted.theme) set_theme(*wanted.theme);
  const bool ready = ImGui_ImplGlfw_InitForOpenGL(window, true) && ImGui_ImplOpenGL3_Init("#version 150");
  if (ready) {
    loop(window, session, loader, options, arrival, wanted, layout);
    ImGui_ImplOpenGL3_Shutdown();
  }
  ImGui_ImplGlfw_Shutdown();
  ImPlot::DestroyContext();
  ImGui::DestroyContext();
  glfwDestroyWindow(window);
  glfwTerminate();
  return ready ? Status() : Status(no_display("OpenGL 3.2 is not available"));
}

}  // namespace nanquest::viewer
