#include "viewer/app/offscreen.h"

#include <EGL/egl.h>
#include <EGL/eglext.h>
#define GL_GLEXT_PROTOTYPES 0
#include <GL/gl.h>
#include <GL/glext.h>

#include <cfloat>

#include "backends/imgui_impl_opengl3.h"
#include "imgui.h"
#include "implot.h"
#include "viewer/app/pixels.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {
namespace {

Error no_drawing(const std::string& why) {
  return {ErrorCode::unsupported, "no picture can be drawn here: " + why,
          "install Mesa's EGL (packages libegl1, libegl-mesa0, libgl1-mesa-dri), or use --text, --csv or "
          "--report"};
}

/// An OpenGL context without any surface.
class Context {
 public:
  Status open() {
    const auto platform_display =
        reinterpret_cast<PFNEGLGETPLATFORMDISPLAYEXTPROC>(eglGetProcAddress("eglGetPlatformDisplayEXT"));
    if (platform_display == nullptr) return no_drawing("EGL does not offer platforms");
    display_ = platform_display(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, nullptr);
    if (display_ == EGL_NO_DISPLAY || !eglInitialize(display_, nullptr, nullptr)) {
      display_ = EGL_NO_DISPLAY;
      return no_drawing("EGL has no surfaceless platform");
    }
    if (!eglBindAPI(EGL_OPENGL_API)) return no_drawing("EGL does not offer OpenGL");
    const EGLint wanted[] = {EGL_SURFACE_TYPE, 0, EGL_RENDERABLE_TYPE, EGL_OPENGL_BIT, EGL_NONE};
    EGLConfig config = nullptr;
    EGLint count = 0;
    if (!eglChooseConfig(display_, wanted, &config, 1, &count) || count == 0)
      return no_drawing("EGL has no configuration for OpenGL");
    const EGLint version[] = {EGL_CONTEXT_MAJOR_VERSION,
                              3,
                              EGL_CONTEXT_MINOR_VERSION,
                              2,
                              EGL_CONTEXT_OPENGL_PROFILE_MASK,
                              EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT,
                              EGL_NONE};
    context_ = eglCreateContext(display_, config, EGL_NO_CONTEXT, version);
    if (context_ == EGL_NO_CONTEXT || !eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, context_))
      return no_drawing("OpenGL 3.2 is not available");
    return {};
  }
  ~Context() {
    if (display_ == EGL_NO_DISPLAY) return;
    eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
    if (context_ != EGL_NO_CONTEXT) eglDestroyContext(display_, context_);
    eglTerminate(display_);
  }

 private:
  EGLDisplay display_ = EGL_NO_DISPLAY;
  EGLContext context_ = EGL_NO_CONTEXT;
};

/// The few functions of OpenGL needed here, from the current context.
struct Gl {
  template <class F>
  static F get(const char* name) {
    return reinterpret_cast<F>(eglGetProcAddress(name));
  }
  PFNGLGENFRAMEBUFFERSPROC gen_framebuffers = get<PFNGLGENFRAMEBUFFERSPROC>("glGenFramebuffers");
  PFNGLBINDFRAMEBUFFERPROC bind_framebuffer = get<PFNGLBINDFRAMEBUFFERPROC>("glBindFramebuffer");
  PFNGLGENRENDERBUFFERSPROC gen_renderbuffers = get<PFNGLGENRENDERBUFFERSPROC>("glGenRenderbuffers");
  PFNGLBINDRENDERBUFFERPROC bind_renderbuffer = get<PFNGLBINDRENDERBUFFERPROC>("glBindRenderbuffer");
  PFNGLRENDERBUFFERSTORAGEPROC renderbuffer_storage =
      get<PFNGLRENDERBUFFERSTORAGEPROC>("glRenderbufferStorage");
  PFNGLFRAMEBUFFERRENDERBUFFERPROC attach =
      get<PFNGLFRAMEBUFFERRENDERBUFFERPROC>("glFramebufferRenderbuffer");
  PFNGLCHECKFRAMEBUFFERSTATUSPROC status = get<PFNGLCHECKFRAMEBUFFERSTATUSPROC>("glCheckFramebufferStatus");
  void (*viewport)(GLint, GLint, GLsizei,
                   GLsizei) = get<void (*)(GLint, GLint, GLsizei, GLsizei)>("glViewport");
  void (*clear_colour)(GLfloat, GLfloat, GLfloat,
                       GLfloat) = get<void (*)(GLfloat, GLfloat, GLfloat, GLfloat)>("glClearColor");
  void (*clear)(GLbitfield) = get<void (*)(GLbitfield)>("glClear");
  bool complete() const {
    return gen_framebuffers && gen_renderbuffers && attach && status && viewport && clear;
  }
};

bool make_framebuffer(const Gl& gl, int width, int height) {
  GLuint frame = 0, pixels = 0;
  gl.gen_framebuffers(1, &frame);
  gl.bind_framebuffer(GL_FRAMEBUFFER, frame);
  gl.gen_renderbuffers(1, &pixels);
  gl.bind_renderbuffer(GL_RENDERBUFFER, pixels);
  gl.renderbuffer_storage(GL_RENDERBUFFER, GL_RGBA8, width, height);
  gl.attach(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, pixels);
  return gl.status(GL_FRAMEBUFFER) == GL_FRAMEBUFFER_COMPLETE;
}

/// The layout settles within a few frames (docking, plot axes, tables); after that one frame is kept, and it
/// alone is rasterised.
Result<Image> draw_frames(const Gl& gl, Session& session, const UiOptions& options, int width, int height) {
  ImGuiIO& io = ImGui::GetIO();
  Ui ui(session, options);
  constexpr int kLast = 5;
  for (int frame = 0; frame <= kLast; ++frame) {
    io.DisplaySize = {static_cast<float>(width), static_cast<float>(height)};
    io.DeltaTime = 1.0f / 60;
    io.AddMousePosEvent(-FLT_MAX, -FLT_MAX);
    ImGui_ImplOpenGL3_NewFrame();
    ImGui::NewFrame();
    ui.draw();
    ImGui::Render();
    if (frame < kLast) {
      for (ImTextureData* texture : ImGui::GetPlatformIO().Textures)
        if (texture->Status != ImTextureStatus_OK) ImGui_ImplOpenGL3_UpdateTexture(texture);
      continue;
    }
    gl.viewport(0, 0, width, height);
    gl.clear_colour(colour().ground.x, colour().ground.y, colour().ground.z, 1);
    gl.clear(GL_COLOR_BUFFER_BIT);
    ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
  }
  return read_pixels(eglGetProcAddress, 0, 0, width, height);
}

}  // namespace

Result<Image> take_picture(Session& session, UiOptions options, int width, int height, float scale,
                           Theme theme) {
  Context context;
  if (Status opened = context.open(); !opened) return opened.error();
  const Gl gl;
  if (!gl.complete() || !make_framebuffer(gl, width, height))
    return no_drawing("OpenGL framebuffers are not available");
  options.still = true;
  ImGui::CreateContext();
  ImPlot::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;
#ifdef IMGUI_HAS_DOCK
  io.ConfigFlags |= ImGuiConfigFlags_DockingEnable;
#endif
  apply_style(scale, theme);
  Result<Image> image = no_drawing("the OpenGL of this machine is not usable");
  if (ImGui_ImplOpenGL3_Init("#version 150")) {
    image = draw_frames(gl, session, options, width, height);
    ImGui_ImplOpenGL3_Shutdown();
  }
  ImPlot::DestroyContext();
  ImGui::DestroyContext();
  return image;
}

}  // namespace nanquest::viewer
