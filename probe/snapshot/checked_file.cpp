#include "probe/snapshot/checked_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstring>

namespace nanquest {
namespace {

constexpr int kDeepestGroup = 16;
constexpr std::size_t kMostObjects = 1'000'000;
constexpr int kMostExtents = 8;
constexpr std::uint64_t kFreeClaim =
    64ull << 20;  ///< limit for the claimed size of compressed data, whatever its compressed size
constexpr std::uint64_t kMostRatio = 1000;

struct Link {
  std::string name;
  bool hard;
  haddr_t address;  ///< of the target of a hard link
};

herr_t collect_link(hid_t, const char* name, const H5L_info_t* info, void* out) {
  try {
    auto& links = *static_cast<std::vector<Link>*>(out);
    if (links.size() > kMostObjects) return -1;
    const bool hard = info->type == H5L_TYPE_HARD;
    links.push_back({name, hard, hard ? info->u.address : HADDR_UNDEF});
    return 0;
  } catch (...) {
    return -1;  // no exception may cross libhdf5
  }
}

bool filters_allowed(hid_t creation) {
  const int count = H5Pget_nfilters(creation);
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0;
    std::size_t values = 0;
    const H5Z_filter_t id =
        H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values, nullptr, 0, nullptr, nullptr);
    if (id != H5Z_FILTER_SHUFFLE && id != H5Z_FILTER_DEFLATE && id != H5Z_FILTER_FLETCHER32) return false;
  }
  return count >= 0;
}

}  // namespace

Error CheckedFile::refuse(const std::string& what) const {
  return {ErrorCode::bad_file, path_ + ": " + what, "do not trust this file unless you know who made it"};
}

Result<CheckedFile> CheckedFile::open(const std::string& path, bool swmr) {
  CheckedFile self;
  self.path_ = path;
  self.raw_ = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat st {};
  if (!self.raw_ || ::fstat(self.raw_.get(), &st) != 0)
    return Error{ErrorCode::bad_file, path + ": " + std::strerror(errno), "check the path"};
  self.file_bytes_ = static_cast<std::uint64_t>(st.st_size);
  self.slack_ = swmr ? kFreeClaim : 0;
  const h5::Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);
#if H5_VERSION_GE(1, 10, 7)
  H5Pset_file_locking(access.get(), true, true);  // some network file systems have no locks
#endif
  // A part that was read while it was being written is read again. The library doubles its wait each time,
  // from 1 ns: these attempts take 17 ms; with the library's own number, 100, a damaged file would take
  // hours.
  if (swmr) H5Pset_metadata_read_attempts(access.get(), 24);
  self.file_ =
      h5::Id(H5Fopen(path.c_str(), H5F_ACC_RDONLY | (swmr ? H5F_ACC_SWMR_READ : 0u), access.get()), H5Fclose);
  if (!self.file_) return h5::failure(path, "opening as HDF5", ErrorCode::bad_file);
  for (int i = 0; i < kDTypeCount; ++i) self.types_.push_back(h5::type_of(static_cast<DType>(i)));
  const h5::Id root(H5Gopen2(self.file_.get(), "/", H5P_DEFAULT), H5Gclose);
  if (!root) return h5::failure(path, "opening the root group", ErrorCode::bad_file);
  if (Status walked = self.walk("", root.get(), 0); !walked) return walked.error();
  return self;
}

Status CheckedFile::walk(const std::string& group, hid_t id, int depth) {
  if (depth > kDeepestGroup) return refuse("groups deeper than " + std::to_string(kDeepestGroup));
  std::vector<Link> links;
  if (H5Literate(id, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, collect_link, &links) < 0)
    return h5::failure(path_, "listing group /" + group, ErrorCode::bad_file);
  for (const Link& link : links) {
    const std::string name = group.empty() ? link.name : group + "/" + link.name;
    if (++objects_ > kMostObjects) return refuse("more than a million objects");
    if (!link.hard) return refuse("/" + name + " is a link to somewhere else");
    // Opening by name would make the library go through all links of the group each time.
    const h5::Id object(H5Oopen_by_addr(id, link.address), H5Oclose);
    if (!object) return h5::failure(path_, "opening /" + name, ErrorCode::bad_file);
    const H5I_type_t type = H5Iget_type(object.get());
    if (type != H5I_GROUP && type != H5I_DATASET) continue;  // named types are not used here
    if (type == H5I_GROUP) groups_.insert(name);
    Status status = type == H5I_GROUP ? walk(name, object.get(), depth + 1) : look_at(name, object.get());
    if (!status) return status;
  }
  return {};
}

std::optional<DType> CheckedFile::guess_dtype(hid_t type) const {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const bool shares_uint8 = dtype == DType::float8_e4m3fn || dtype == DType::float8_e5m2;
    if (!shares_uint8 && H5Tequal(type, types_[static_cast<std::size_t>(i)].get()) > 0) return dtype;
  }
  return std::nullopt;
}

Status CheckedFile::look_at(const std::string& name, hid_t dataset) {
  const h5::Id creation(H5Dget_create_plist(dataset), H5Pclose);
  const h5::Id space(H5Dget_space(dataset), H5Sclose);
  const h5::Id type(H5Dget_type(dataset), H5Tclose);
  if (!creation || !space || !type) return h5::failure(path_, "looking at /" + name, ErrorCode::bad_file);
  const H5D_layout_t layout = H5Pget_layout(creation.get());
  if (H5Pget_external_count(creation.get()) != 0)
    return refuse("/" + name + " keeps its data in another file");
  if (layout == H5D_VIRTUAL) return refuse("/" + name + " is a virtual dataset");
  if (!filters_allowed(creation.get())) return refuse("/" + name + " needs a filter that is not allowed");
  const int rank = H5Sget_simple_extent_ndims(space.get());
  if (rank < 0 || rank > kMostExtents) return refuse("/" + name + " has more than 8 dimensions");
  const H5S_class_t space_class = H5Sget_simple_extent_type(space.get());
  if (space_class != H5S_SIMPLE && space_class != H5S_SCALAR) return {};

  StoredDataset out;
  std::string text;
  const bool named = h5::get_attribute(dataset, "dtype", text);
  const std::optional<DType> dtype = named ? dtype_from_name(text) : guess_dtype(type.get());
  if (!dtype && !named) return {};
  if (!dtype || H5Tequal(type.get(), types_[static_cast<std::size_t>(*dtype)].get()) <= 0)
    return refuse("/" + name + " is not of its stated type \"" + text.substr(0, 40) + "\"");
  out.dtype = *dtype;
  if (Status shaped = take_shape(name, space.get(), out); !shaped) return shaped;
  if (Status placed = take_place(name, dataset, layout, out); !placed) return placed;
  std::uint64_t checksum = 0;
  if (h5::get_attribute(dataset, "checksum", checksum)) out.checksum = checksum;
  out.is_tensor = h5::get_attribute(dataset, "kind", text) && text == "tensor";
  datasets_.emplace(name, std::move(out));
  return {};
}

Status CheckedFile::take_shape(const std::string& name, hid_t space, StoredDataset& out) const {
  hsize_t extent[kMostExtents] = {};
  const int rank = H5Sget_simple_extent_dims(space, extent, nullptr);
  if (rank < 0) return h5::failure(path_, "reading the shape of /" + name, ErrorCode::bad_file);
  out.elements = 1;
  for (int i = 0; i < rank; ++i) {
    if (extent[i] > INT64_MAX || __builtin_mul_overflow(out.elements, extent[i], &out.elements))
      return refuse("/" + name + " has an impossible shape");
    out.shape.push_back(static_cast<std::int64_t>(extent[i]));
  }
  if (__builtin_mul_overflow(out.elements, dtype_size(out.dtype), &out.bytes))
    return refuse("/" + name + " has an impossible shape");
  return {};
}

Status CheckedFile::take_place(const std::string& name, hid_t dataset, H5D_layout_t layout,
                               StoredDataset& out) const {
  const hsize_t storage = H5Dget_storage_size(dataset);
  if (layout == H5D_CONTIGUOUS) {
    const haddr_t offset = H5Dget_offset(dataset);
    const bool inside = offset != HADDR_UNDEF && offset <= file_bytes_ && out.bytes <= file_bytes_ - offset;
    if (out.bytes > 0 && !inside) return refuse("/" + name + " claims more bytes than the file holds");
    out.offset = out.bytes > 0 ? offset : 0;
  } else if (storage > file_bytes_ + slack_ || (out.bytes > kFreeClaim && out.bytes / kMostRatio > storage)) {
    return refuse("/" + name + " claims " + std::to_string(out.bytes) + " bytes but stores " +
                  std::to_string(storage));
  }
  return {};
}

bool CheckedFile::read_slices(const std::string& name, const StoredDataset& d, std::uint64_t first,
                              std::uint64_t count, std::byte* out) const {
  const h5::Id dataset(H5Dopen2(file_.get(), name.c_str(), H5P_DEFAULT), H5Dclose);
  const h5::Id in_file(dataset ? H5Dget_space(dataset.get()) : -1, H5Sclose);
  if (!in_file) return false;
  // Exactly the shape that was checked: a file that is being written may have grown since.
  std::vector<hsize_t> extent(d.shape.begin(), d.shape.end()), start(d.shape.size(), 0);
  if (!extent.empty()) {
    start[0] = first;
    extent[0] = count;
  }
  const int rank = static_cast<int>(extent.size());
  if (H5Sget_simple_extent_ndims(in_file.get()) != rank) return false;
  const h5::Id in_memory(rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(rank, extent.data(), nullptr),
                         H5Sclose);
  if (rank > 0 &&
      H5Sselect_hyperslab(in_file.get(), H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr) < 0)
    return false;
  const hid_t type = types_[static_cast<std::size_t>(d.dtype)].get();
  return H5Dread(dataset.get(), type, in_memory.get(), in_file.get(), H5P_DEFAULT, out) >= 0;
}

Status CheckedFile::read(const std::string& name, std::uint64_t first, std::uint64_t count,
                         std::byte* out) const {
  const auto at = datasets_.find(name);
  if (at == datasets_.end()) return Error{ErrorCode::bad_file, path_ + ": holds no dataset " + name, ""};
  const StoredDataset& d = at->second;
  if (first > d.elements || count > d.elements - first)
    return Error{ErrorCode::usage,
                 path_ + ": " + name + " has only " + std::to_string(d.elements) + " elements", ""};
  if (count == 0) return {};
  const std::uint64_t size = dtype_size(d.dtype);
  if (d.offset) {
    if (read_at(raw_.get(), out, count * size, *d.offset + first * size)) return {};
    return system_error(path_, "reading " + name);
  }
  // Compact or chunked: libhdf5 gathers whole slices of the first axis.
  const std::uint64_t slices = d.shape.empty() ? 1 : static_cast<std::uint64_t>(d.shape[0]);
  const std::uint64_t each = d.elements / slices;
  const std::uint64_t from = first / each, wanted = (first + count + each - 1) / each - from;
  std::vector<std::byte> more(count == wanted * each ? 0 : wanted * each * size);
  std::byte* target = more.empty() ? out : more.data();
  if (!read_slices(name, d, from, wanted, target))
    return h5::failure(path_, "reading " + name, ErrorCode::bad_file);
  if (!more.empty()) std::memcpy(out, more.data() + (first - from * each) * size, count * size);
  return {};
}

}  // namespace nanquest
