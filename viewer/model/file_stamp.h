/// How a file looks from outside: another stamp, other contents.
#pragma once

#include <string>

namespace nanquest::viewer {

/// Path, size and time of the last writing of a file; "PATH?" for none. Asks the file system.
std::string file_stamp(const std::string& path);

}  // namespace nanquest::viewer
