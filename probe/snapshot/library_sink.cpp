#include "probe/snapshot/library_sink.h"

namespace nanquest {
namespace {

bool set_all(hid_t object, Attributes attributes) {
  for (const Attribute& a : attributes) {
    const std::string name(a.name);
    const bool set =
        std::visit([&](auto value) { return h5::set_attribute(object, name.c_str(), value); }, a.value);
    if (!set) return false;
  }
  return true;
}

}  // namespace

Status LibrarySink::group(const std::string& path, Attributes attributes) {
  const h5::Id how(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
  H5Pset_obj_track_times(how.get(), false);
  const h5::Id id(H5Gcreate2(file_, path.c_str(), H5P_DEFAULT, how.get(), H5P_DEFAULT), H5Gclose);
  if (id && set_all(id.get(), attributes)) return {};
  return h5::failure(path_, "making group " + path, ErrorCode::internal);
}

Status LibrarySink::dataset(const std::string& path, DType dtype, const std::vector<std::uint64_t>& shape,
                            const void* data, Attributes attributes) {
  const h5::Id dataset =
      h5::write_dataset(file_, path.c_str(), dtype, std::vector<hsize_t>(shape.begin(), shape.end()), data);
  if (dataset && set_all(dataset.get(), attributes)) return {};
  return h5::failure(path_, "writing " + path, ErrorCode::internal);
}

}  // namespace nanquest
