/// Pixels of the framebuffer that was drawn into.
#pragma once

#include "viewer/app/png.h"

namespace nanquest::viewer {

/// The function that looks up OpenGL's functions: glfwGetProcAddress, eglGetProcAddress.
using GlFunctions = void (*(*)(const char*))();

/// `width` x `height` pixels from column `left` and, counted from below, row `bottom` on; of the framebuffer
/// of the current context. `unsupported` where its OpenGL can't read them.
Result<Image> read_pixels(GlFunctions functions, int left, int bottom, int width, int height);

}  // namespace nanquest::viewer
