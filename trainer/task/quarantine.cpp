#include "trainer/task/quarantine.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <sstream>

namespace nanquest::trainer {
namespace {

constexpr const char* kHex = "0123456789ABCDEF";

Error refused(const std::string& path, const std::string& what) {
  return {ErrorCode::io, path + ": " + what + ": " + std::strerror(errno),
          "give --quarantine a file that can be written"};
}

/// Appends in one write, so that lines of programs that share the file do not mix.
Status append(const std::string& path, const std::string& text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) return refused(path, "can't be opened");
  const bool whole = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const bool kept = whole && ::fsync(file) == 0;
  Status s = kept ? Status() : refused(path, "can't be written");
  ::close(file);
  return s;
}

/// `id` as one word of the file: characters that would end a word, and % itself, as %20 and similar.
std::string as_word(const std::string& id) {
  std::string word;
  for (const char c : id) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ' && byte != 0x7f && c != '#' && c != '%')
      word += c;
    else
      word.append({'%', kHex[byte >> 4], kHex[byte & 15]});
  }
  return word;
}

/// The id of a word in the file. A % without two hex digits after it stands for itself.
std::string as_id(const std::string& word) {
  std::string id;
  for (std::size_t i = 0; i < word.size(); ++i) {
    unsigned value = 0;
    const char* digits = word.data() + i + 1;
    if (word[i] == '%' && i + 2 < word.size() &&
        std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2) {
      id += static_cast<char>(value);
      i += 2;
    } else {
      id += word[i];
    }
  }
  return id;
}

}  // namespace

Result<Quarantine> Quarantine::open(const std::string& path) {
  Quarantine quarantine;
  quarantine.path_ = path;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) return refused(path, "can't be opened");
  ::close(file);
  if (Status s = quarantine.take({}); !s) return s.error();
  return quarantine;
}

Result<Quarantine> Quarantine::read(const std::string& path, const std::set<std::string>& but) {
  Quarantine quarantine;
  quarantine.path_ = path;
  quarantine.kept_ = false;
  std::error_code ec;
  if (!std::filesystem::exists(path, ec)) return quarantine;
  if (Status s = quarantine.take(but); !s) return s.error();
  return quarantine;
}

Status Quarantine::take(const std::set<std::string>& but) {
  Result<std::string> text = read_whole_file(path_);
  if (!text) return text.error();
  if (text->find('\0') != std::string::npos)
    return Error{ErrorCode::bad_file, path_ + ": not a text of sample ids, one a line", "give another file"};
  std::istringstream in(*text);
  std::int64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    std::string id, dataset, more;
    if (!(words >> id)) continue;
    words >> dataset;
    if (words >> more)
      remarks_.push_back("quarantine " + path_ + ": line " + std::to_string(number) +
                         " is not understood: write an id with %20 for each space in it");
    else if (std::string meant = as_id(id); !but.contains(meant))
      ids_.insert(std::move(meant));
  }
  return {};
}

Status Quarantine::add(const std::vector<std::string>& ids, const std::string& why) {
  std::string lines;
  for (const std::string& id : ids)
    if (ids_.insert(id).second && !id.empty()) lines.append(as_word(id)).append("\n");
  return lines.empty() || !kept_ ? Status() : append(path_, "# " + why + "\n" + lines);
}

}  // namespace nanquest::trainer
