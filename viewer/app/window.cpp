#include "viewer/app/window.h"

#include <GLFW/glfw3.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "backends/imgui_impl_glfw.h"
#include "backends/imgui_impl_opengl3.h"
#include "imgui.h"
#include "implot.h"
#include "viewer/app/remember.h"
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

/// Has news looked for at most once a second, and never for more than a twentieth of the time.
class Follower {
 public:
  void look(UiState& state) {
    const auto now = Clock::now();
    if (!state.follow || now < next_ || state.loader->busy() || state.session.is_nothing()) return;
    next_ = now + std::max<Clock::duration>(std::chrono::seconds(1), spent_->load() * 20);
    const auto poll = [spent = spent_](Session& session) {
      const auto start = Clock::now();
      const bool news = session.poll();
      *spent = Clock::now() - start;
      return news;
    };
    const auto tell = [&state] { state.message = state.session.lost().empty() ? "New data" : ""; };
    state.read({"news", poll, tell, false, /*quiet=*/true});
  }

 private:
  Clock::time_point next_ = Clock::now() + std::chrono::seconds(1);
  /// By the last look; the loader's thread may still look when this object is gone.
  std::shared_ptr<std::atomic<Clock::duration>> spent_ =
      std::make_shared<std::atomic<Clock::duration>>(Clock::duration::zero());
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

bool was_resized(GLFWwindow* window) {
  int width = 0, height = 0;
  glfwGetWindowSize(window, &width, &height);
  const ImVec2 drawn = ImGui::GetIO().DisplaySize;
  return drawn.x != static_cast<float>(width) || drawn.y != static_cast<float>(height);
}

/// What the window shows beside the picture, and what of the picture changes by itself.
struct Changing {
  std::string title, age, doing;
  bool operator==(const Changing&) const = default;
};

void loop(GLFWwindow* window, Session& session, Loader& loader, UiOptions options,
          const WindowOptions& wanted) {
  Ui ui(session, options, &loader);
  loader.wake_with([] { glfwPostEmptyEvent(); });
  Told events;
  glfwSetWindowUserPointer(window, &events);
  glfwSetDropCallback(window, on_drop);
  glfwSetWindowRefreshCallback(window, on_refresh);
  Follower follower;
  Pace pace;
  Changing drawn;
  const bool counts = wanted.frames >= 0;
  int frames = 0;
  const auto start = Clock::now();
  const auto late = [&] {
    return wanted.seconds > 0 && std::chrono::duration<double>(Clock::now() - start).count() > wanted.seconds;
  };
  while (!glfwWindowShouldClose(window) && !ui.wants_to_quit() && frames != wanted.frames && !late()) {
    if (pace.may_wait() && !counts)
      glfwWaitEventsTimeout(loader.doing().empty() ? 1.0 : 0.1);
    else
      glfwPollEvents();
    bool something = input_waits() || was_resized(window) || std::exchange(events.exposed, false);
    if (const std::string path = std::exchange(events.dropped, ""); !path.empty()) ui.state().open(path);
    follower.look(ui.state());
    something = ui.collect() || something;
    const Changing now{title_of(session), session.age_text(), loader.doing()};
    if (now.title != drawn.title) glfwSetWindowTitle(window, now.title.c_str());
    if (now != drawn) something = true, drawn = now;
    if (!pace.next(something) && !counts) continue;
    draw_frame(window, ui);
    ++frames;
  }
  loader.wake_with({});
  if (wanted.seconds > 0) std::fprintf(stderr, "%d frames\n", frames);
}

}  // namespace

Status run_window(Session& session, Loader& loader, UiOptions options, WindowOptions wanted) {
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
  remember_theme();
  if (io.IniFilename != nullptr) ImGui::LoadIniSettingsFromDisk(io.IniFilename);
  if (wanted.theme) set_theme(*wanted.theme);
  const bool ready = ImGui_ImplGlfw_InitForOpenGL(window, true) && ImGui_ImplOpenGL3_Init("#version 150");
  if (ready) {
    loop(window, session, loader, options, wanted);
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
