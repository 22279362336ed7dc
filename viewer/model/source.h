/// Source: the program's own lines around the place in a stack frame, if this machine has that file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace nanquest::viewer {

struct Source {
  std::string path;                ///< "" if the frame names no line of a file
  std::size_t line = 0;            ///< that the frame names, from 1
  std::size_t first = 0;           ///< number of the first of `lines`
  std::vector<std::string> lines;  ///< a few around it; none if they can't be shown
  std::string why;                 ///< why there are none, or a warning about them; "" otherwise
};

/// Reads the lines around a frame ("file:line function"). A snapshot is not trusted and may name any file,
/// and reports are passed on: so only regular files of at most 8 MB with names of source files are read.
/// `recorded`: when the stack was recorded; a file that was written later is shown with a warning.
Source read_source(const std::string& frame, std::filesystem::file_time_type recorded);

}  // namespace nanquest::viewer
