#include "viewer/app/pixels.h"

#define GL_GLEXT_PROTOTYPES 0
#include <GL/gl.h>

#include <algorithm>
#include <cstddef>

namespace nanquest::viewer {

Result<Image> read_pixels(GlFunctions functions, int left, int bottom, int width, int height) {
  const auto pixel_store = reinterpret_cast<void (*)(GLenum, GLint)>(functions("glPixelStorei"));
  const auto read = reinterpret_cast<void (*)(GLint, GLint, GLsizei, GLsizei, GLenum, GLenum, void*)>(
      functions("glReadPixels"));
  if (pixel_store == nullptr || read == nullptr || width < 1 || height < 1)
    return Error{ErrorCode::unsupported, "the picture cannot be read back from OpenGL",
                 "use --screenshot FILE"};
  const std::size_t stride = static_cast<std::size_t>(width) * 3;
  std::vector<std::uint8_t> upside_down(stride * static_cast<std::size_t>(height));
  pixel_store(GL_PACK_ALIGNMENT, 1);
  read(left, bottom, width, height, GL_RGB, GL_UNSIGNED_BYTE, upside_down.data());
  Image image{width, height, std::vector<std::uint8_t>(upside_down.size())};
  for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y)
    std::copy_n(upside_down.begin() + static_cast<std::ptrdiff_t>(upside_down.size() - stride * (y + 1)),
                stride, image.rgb.begin() + static_cast<std::ptrdiff_t>(stride * y));
  return image;
}

}  // namespace nanquest::viewer
