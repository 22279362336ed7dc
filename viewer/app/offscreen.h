/// Pictures without a display: OpenGL 3.2 on EGL's surfaceless platform, into a framebuffer object.
#pragma once

#include "probe/base/result.h"
#include "viewer/app/png.h"
#include "viewer/model/session.h"
#include "viewer/panels/frame.h"
#include "viewer/ui/theme.h"

namespace nanquest::viewer {

/// Draws the panel of `options` at `width` × `height` pixels. The same session gives the same bytes on the
/// same driver. `unsupported` if there is no EGL or no OpenGL 3.2. Main thread; leaves no context behind.
Result<Image> take_picture(Session& session, UiOptions options, int width, int height, float scale,
                           Theme theme = Theme::dark);

}  // namespace nanquest::viewer
