/// A small file that several processes want to be the first to make: a mark, a say.
#pragma once

#include <string>
#include <string_view>

namespace nanquest {

enum class NewFile {
  made,    ///< it holds the whole text
  exists,  ///< somebody else made it
  failed,  ///< errno says why; nothing is left of it
};

/// Makes `path` with `text`, unless there is such a file; of several processes, on one machine or over a
/// shared file system, one alone is told `made`. Others may see it before its text is in it.
NewFile make_new_file(const std::string& path, std::string_view text);

}  // namespace nanquest
