#include "trainer/task/quarantine.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>

namespace nanquest::trainer {
namespace {

constexpr const char* kRemark = "# ";

Error refused(const std::string& path, const std::string& what) {
  return {ErrorCode::io, path + ": " + what + ": " + std::strerror(errno),
          "give --quarantine a file that can be written"};
}

/// Appends in one write, so that programs that share the file don't mix their lines.
Status append(const std::string& path, const std::string& text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) return refused(path, "can't be opened");
  const bool whole = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const bool kept = whole && ::fsync(file) == 0;
  const Status s = kept ? Status() : refused(path, "can't be written");
  ::close(file);
  return s;
}

bool is_id(const std::string& line) {
  return !line.empty() && !line.starts_with(kRemark) && line != "#";
}

}  // namespace

Result<Quarantine> Quarantine::open(const std::string& path) {
  Quarantine quarantine;
  quarantine.path_ = path;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) return refused(path, "can't be opened");
  ::close(file);
  Result<std::string> text = read_whole_file(path);
  if (!text) return text.error();
  if (text->find('\0') != std::string::npos)
    return Error{ErrorCode::bad_file, path + ": not a text of sample ids, one a line", "give another file"};
  std::istringstream in(*text);
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (is_id(line)) quarantine.ids_.insert(line);
  }
  return quarantine;
}

Status Quarantine::add(const std::vector<std::string>& ids, const std::string& why) {
  std::string lines;
  Status odd;
  for (const std::string& id : ids) {
    if (!ids_.insert(id).second) continue;
    if (is_id(id) && id.find_first_of("\r\n") == std::string::npos)
      lines.append(id).append("\n");
    else
      odd = Error{ErrorCode::unsupported, path_ + ": the sample id \"" + id + "\" can't be written there",
                  "ids must be one line and not begin with \"# \""};
  }
  if (lines.empty()) return odd;
  if (Status s = append(path_, kRemark + why + "\n" + lines); !s) return s;
  return odd;
}

}  // namespace nanquest::trainer
