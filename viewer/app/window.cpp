#include "viewer/app/window.h"

#include <GLFW/glfw3.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "backends/imgui_impl_glfw.h"
#include "backends/imgui_impl_opengl3.h"
#include "imgui.h"
#include "implot.h"
#include "viewer/ui/pace.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// $XDG_CONFIG_HOME/nanquest/viewer.ini; "" if there is no place for it.
std::string settings_file() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  fs::path folder = config != nullptr && config[0] != '\0' ? fs::path(config)
                    : home != nullptr                      ? fs::path(home) / ".config"
                                                           : fs::path();
  if (folder.empty()) return "";
  std::error_code ec;
  fs::create_directories(folder / "nanquest", ec);
  return ec ? "" : (folder / "nanquest" / "viewer.ini").string();
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

/// What the system tells the window between frames, beside input.
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

/// Looks for news at most once a second, and never spends more than a twentieth of the time on it.
class Follower {
 public:
  bool due() const { return Clock::now() >= next_; }
  /// True if there is something new.
  bool look(Session& session, UiState& state) {
    const auto start = Clock::now();
    const bool news = session.poll();
    if (news) state.message = session.lost().empty() ? "New data" : "";
    const auto spent = Clock::now() - start;
    next_ = Clock::now() + std::max<Clock::duration>(std::chrono::seconds(1), spent * 20);
    return news;
  }

 private:
  Clock::time_point next_ = Clock::now() + std::chrono::seconds(1);
};

void draw_frame(GLFWwindow* window, Ui& ui) {
  ImGui_ImplOpenGL3_NewFrame();
  ImGui_ImplGlfw_NewFrame();
  ImGui::NewFrame();
  ui.draw();
  ImGui::Render();
  int width = 0, height = 0;
  glfwGetFramebufferSize(window, &width, &height);
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
  glfwSwapBuffers(window);
}

/// Opens what was dropped on the window instead.
void open_dropped(GLFWwindow* window, Session& session, Ui& ui, const std::string& path) {
  Result<Session> other = Session::open(path);
  ui.state().message = other ? "Opened " + path : other.error().text();
  if (!other) return;
  session = std::move(other).value();
  glfwSetWindowTitle(window, title_of(session).c_str());
  ui.begin_anew();
}

bool was_resized(GLFWwindow* window) {
  int width = 0, height = 0;
  glfwGetWindowSize(window, &width, &height);
  const ImVec2 drawn = ImGui::GetIO().DisplaySize;
  return drawn.x != static_cast<float>(width) || drawn.y != static_cast<float>(height);
}

void loop(GLFWwindow* window, Session& session, UiOptions options, const WindowOptions& wanted) {
  Ui ui(session, options);
  Told events;
  glfwSetWindowUserPointer(window, &events);
  glfwSetDropCallback(window, on_drop);
  glfwSetWindowRefreshCallback(window, on_refresh);
  Follower follower;
  Pace pace;
  std::string age;  // as it was drawn
  const bool counts = wanted.frames >= 0;
  int frames = 0;
  const auto start = Clock::now();
  const auto late = [&] {
    return wanted.seconds > 0 && std::chrono::duration<double>(Clock::now() - start).count() > wanted.seconds;
  };
  while (!glfwWindowShouldClose(window) && !ui.wants_to_quit() && frames != wanted.frames && !late()) {
    if (pace.may_wait() && !counts)
      glfwWaitEventsTimeout(1.0);
    else
      glfwPollEvents();
    bool something = input_waits() || was_resized(window) || std::exchange(events.exposed, false);
    if (const std::string path = std::exchange(events.dropped, ""); !path.empty()) {
      open_dropped(window, session, ui, path);
      something = true;
    }
    if (ui.state().follow && follower.due()) something = follower.look(session, ui.state()) || something;
    if (const std::string now = session.age_text(); now != age) something = true, age = now;
    if (!pace.next(something) && !counts) continue;
    draw_frame(window, ui);
    ++frames;
  }
  if (wanted.seconds > 0) std::fprintf(stderr, "%d frames\n", frames);
}

}  // namespace

Status run_window(Session& session, UiOptions options, WindowOptions wanted) {
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
  io.ConfigInputTextCursorBlink = false;  // nobody draws while nothing happens
  const std::string settings = settings_file();
  io.IniFilename = settings.empty() ? nullptr : settings.c_str();
  apply_style(wanted.scale * (monitor > 0 ? monitor : 1));
  const bool ready = ImGui_ImplGlfw_InitForOpenGL(window, true) && ImGui_ImplOpenGL3_Init("#version 150");
  if (ready) {
    loop(window, session, options, wanted);
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
