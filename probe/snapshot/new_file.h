/// A small file that only one of several processes can create: a mark or a claim.
#pragma once

#include <string>
#include <string_view>

namespace nanquest {

enum class NewFile {
  made,    ///< it holds the whole text
  exists,  ///< another process made it
  failed,  ///< errno says why; nothing is left of it
};

/// Creates `path` with `text`, unless the file exists. If several processes try, on one machine or over a
/// shared file system, exactly one gets `made`. Others may see the file before it contains the text.
NewFile make_new_file(const std::string& path, std::string_view text);

}  // namespace nanquest
