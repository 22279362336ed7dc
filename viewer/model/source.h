/// Source: the program's own lines around the place that a frame of a stack names, if this machine has that
/// file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace nanquest::viewer {

struct Source {
  std::string path;                ///< "" where the frame names no line of a file
  std::size_t line = 0;            ///< that the frame names, from 1
  std::size_t first = 0;           ///< number of the first of `lines`
  std::vector<std::string> lines;  ///< a few around it; none if they can't be shown
  std::string why;                 ///< why there are none, or what of them is in doubt; "" where nothing is
};

/// Reads the lines around a frame ("file:line function"). A snapshot may come from anywhere and name any
/// file, and reports are passed on: only files whose names end as those of programs do are read, and only
/// plain ones of at most 8 MB. `recorded`: when the stack was; a file that was written later is shown with a
/// warning.
Source read_source(const std::string& frame, std::filesystem::file_time_type recorded);

}  // namespace nanquest::viewer
