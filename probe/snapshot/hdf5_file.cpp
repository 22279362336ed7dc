#include "probe/snapshot/hdf5_file.h"

#include <fcntl.h>

#include <algorithm>

namespace nanquest {
namespace {

constexpr std::uint64_t kLarge = 1 << 20;

}  // namespace

Result<Hdf5File> Hdf5File::create(const std::string& path, std::string reported_as,
                                  std::uint64_t user_block) {
  Hdf5File self;
  self.name_ = std::move(reported_as);
  self.file_ = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!self.file_) return system_error(self.name_, "creating");
  self.user_block_ = user_block;
  self.written_ = user_block + hdf5::kSuperblockBytes;
  return self;
}

Status Hdf5File::group(const std::string& path, Attributes attributes) {
  if (Status linked = add_link(path, {true, groups_.size()}); !linked) return linked;
  group_index_.emplace(path, groups_.size());
  hdf5::Messages& messages = groups_.emplace_back().messages;
  messages.group();
  messages.attributes(attributes);
  return {};
}

Status Hdf5File::dataset(const std::string& path, DType dtype, const std::vector<std::uint64_t>& shape,
                         const void* data, Attributes attributes) {
  if (Status linked = add_link(path, {false, headers_.size()}); !linked) return linked;
  std::uint64_t bytes = dtype_size(dtype);
  for (const std::uint64_t n : shape) bytes *= n;
  // Whole cache lines, so that a reader that maps the file can compute on it in place.
  if (!append(data, bytes, bytes < 4096 ? 8 : 64)) return status_;
  last_offset_ = written_ + waiting_.size() - bytes;
  hdf5::Messages messages;
  messages.dataspace(shape);
  messages.datatype(dtype);
  messages.no_fill();
  messages.contiguous(bytes > 0 ? last_offset_ - user_block_ : hdf5::kNowhere, bytes);
  messages.attributes(attributes);
  messages.append_to(headers_);
  return {};
}

Status Hdf5File::finish(Attributes attributes) {
  append(nullptr, 0, 8);
  const std::uint64_t base = written_ + waiting_.size() - user_block_;
  groups_[0].messages.group();
  groups_[0].messages.attributes(attributes);
  std::vector<std::uint64_t> place(groups_.size());
  for (std::size_t i = groups_.size(); i-- > 0;) {  // groups are written after the objects to which they link
    Group& group = groups_[i];
    for (const auto& [name, link] : group.links)
      group.messages.link(name, link.to_group ? place[link.at] : base + link.at);
    place[i] = base + headers_.size();
    group.messages.append_to(headers_);
  }
  append(headers_.data(), headers_.size(), 1);
  if (!flush()) return status_;
  const std::string first =
      std::string(user_block_, '\0') + hdf5::superblock(user_block_, written_, place[0]);
  if (!write_at(file_.get(), first.data(), first.size(), 0)) return failed("writing");
  return {};
}

Status Hdf5File::close() {
  if (!file_.close()) return failed("closing");
  return status_;
}

Status Hdf5File::add_link(const std::string& path, Link link) {
  if (!status_) return status_;
  const std::size_t slash = path.rfind('/');
  const auto parent = group_index_.find(slash == std::string::npos ? "" : path.substr(0, slash));
  const std::string name = path.substr(slash + 1);
  if (name.size() > hdf5::kMostName)
    return Error{ErrorCode::usage,
                 name_ + ": a name of " + std::to_string(name.size()) + " bytes can't be stored",
                 "use a shorter name"};
  if (parent == group_index_.end())
    return Error{ErrorCode::internal, name_ + ": there is no group for " + path, ""};
  if (!groups_[parent->second].links.emplace(name, link).second)
    return Error{ErrorCode::usage, name_ + ": there is a " + path + " already",
                 "give every tensor its own name"};
  return {};
}

const Status& Hdf5File::append(const void* data, std::uint64_t bytes, std::uint64_t alignment) {
  const std::uint64_t end = written_ + waiting_.size();
  waiting_.append((alignment - end % alignment) % alignment, '\0');
  if (bytes < kLarge) {
    if (bytes > 0) waiting_.append(static_cast<const char*>(data), bytes);
    return waiting_.size() < kLarge ? status_ : flush();
  }
  if (!flush()) return status_;
  if (!write_at(file_.get(), data, bytes, written_)) return failed("writing");
  // The disk starts to write large data now, while the next tensor is hashed; only the fsync at the end waits
  // for it.
  ::sync_file_range(file_.get(), static_cast<off_t>(written_), static_cast<off_t>(bytes),
                    SYNC_FILE_RANGE_WRITE);
  written_ += bytes;
  return status_;
}

const Status& Hdf5File::flush() {
  if (!status_) return status_;
  if (!write_at(file_.get(), waiting_.data(), waiting_.size(), written_)) return failed("writing");
  written_ += waiting_.size();
  waiting_.clear();
  return status_;
}

const Status& Hdf5File::failed(const char* doing) {
  status_ = system_error(name_, doing);
  return status_;
}

}  // namespace nanquest
