#include "probe/snapshot/h5.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "probe/snapshot/descriptor.h"

namespace nanquest::h5 {
namespace {

herr_t take_innermost(unsigned n, const H5E_error2_t* error, void* out) {
  auto& text = *static_cast<std::string*>(out);
  if (n == 0 && error->desc != nullptr) text.assign(error->desc);
  return 0;
}

thread_local Failure latest;

/// The library calls this instead of printing.
herr_t remember(hid_t stack, void*) {
  try {
    Failure now;
    H5Ewalk2(stack, H5E_WALK_UPWARD, take_innermost, &now.what);
    for (char& c : now.what)
      if (static_cast<unsigned char>(c) < 32) c = ' ';
    const std::size_t at = now.what.find("errno = ");
    if (at != std::string::npos) now.system_error = std::atoi(now.what.c_str() + at + 8);
    if (now.system_error != 0 || latest.system_error == 0) latest = std::move(now);
  } catch (...) {
    return -1;  // no exception may cross libhdf5
  }
  return 0;
}

Id float16_type(std::size_t exponent_position, std::size_t exponent_bits, std::size_t bias) {
  Id type(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
  // Fields first: the library refuses a precision smaller than the fields.
  H5Tset_fields(type.get(), 15, exponent_position, exponent_bits, 0, exponent_position);
  H5Tset_precision(type.get(), 16);
  H5Tset_size(type.get(), 2);
  H5Tset_ebias(type.get(), bias);
  return type;
}

Id bool_type() {
  Id type(H5Tenum_create(H5T_STD_I8LE), H5Tclose);
  std::int8_t value = 0;
  H5Tenum_insert(type.get(), "FALSE", &value);
  value = 1;
  H5Tenum_insert(type.get(), "TRUE", &value);
  return type;
}

Id complex_type(hid_t part, std::size_t part_size) {
  Id type(H5Tcreate(H5T_COMPOUND, 2 * part_size), H5Tclose);
  H5Tinsert(type.get(), "r", 0, part);
  H5Tinsert(type.get(), "i", part_size, part);
  return type;
}

bool write_scalar_attribute(hid_t object, const char* name, hid_t type, const void* value) {
  const Id space(H5Screate(H5S_SCALAR), H5Sclose);
  const Id attribute(H5Acreate2(object, name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  return attribute && H5Awrite(attribute.get(), type, value) >= 0;
}

/// The attribute if it exists and is scalar.
Id open_scalar_attribute(hid_t object, const char* name) {
  if (H5Aexists(object, name) <= 0) return {};
  Id attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose);
  if (!attribute) return {};
  const Id space(H5Aget_space(attribute.get()), H5Sclose);
  if (!space || H5Sget_simple_extent_npoints(space.get()) != 1) return {};
  return attribute;
}

bool read_number(hid_t object, const char* name, hid_t type, void* out) {
  const Id attribute = open_scalar_attribute(object, name);
  if (!attribute) return false;
  const Id stored(H5Aget_type(attribute.get()), H5Tclose);
  return H5Tequal(stored.get(), type) > 0 && H5Aread(attribute.get(), type, out) >= 0;
}

}  // namespace

Quiet::Quiet() {
  H5Eget_auto2(H5E_DEFAULT, &print_, &print_data_);
  H5Eset_auto2(H5E_DEFAULT, remember, nullptr);
  latest = {};
  H5PLget_loading_state(&plugins_);
  H5PLset_loading_state(0);
}

Quiet::~Quiet() {
  H5PLset_loading_state(plugins_);
  H5Eset_auto2(H5E_DEFAULT, print_, print_data_);
}

Failure last_failure() {
  return latest;
}

Error failure(const std::string& path, std::string_view doing, ErrorCode otherwise) {
  const Failure last = last_failure();
  if (last.system_error != 0) {
    errno = last.system_error;
    return nanquest::system_error(path, doing);
  }
  if (otherwise ==
      ErrorCode::bad_file)  // the library's message about the inside of a file does not help a person
    return {otherwise, path + ": damaged or cut off (" + std::string(doing) + " failed)",
            "copy it again from where it was written"};
  const std::string what = last.what.empty() ? "unknown HDF5 error" : last.what;
  return {otherwise, path + ": " + std::string(doing) + " failed: " + what, ""};
}

Id type_of(DType dtype) {
  const auto copy = [](hid_t type) { return Id(H5Tcopy(type), H5Tclose); };
  switch (dtype) {
    case DType::float64:
      return copy(H5T_IEEE_F64LE);
    case DType::float32:
      return copy(H5T_IEEE_F32LE);
    case DType::float16:
      return float16_type(10, 5, 15);
    case DType::bfloat16:
      return float16_type(7, 8, 127);
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
    case DType::uint8:
      return copy(H5T_STD_U8LE);
    case DType::int64:
      return copy(H5T_STD_I64LE);
    case DType::int32:
      return copy(H5T_STD_I32LE);
    case DType::int16:
      return copy(H5T_STD_I16LE);
    case DType::int8:
      return copy(H5T_STD_I8LE);
    case DType::boolean:
      return bool_type();
    case DType::complex64:
      return complex_type(H5T_IEEE_F32LE, 4);
    case DType::complex128:
      return complex_type(H5T_IEEE_F64LE, 8);
    case DType::uint16:
      return copy(H5T_STD_U16LE);
    case DType::uint32:
      return copy(H5T_STD_U32LE);
    case DType::uint64:
      return copy(H5T_STD_U64LE);
  }
  return {};
}

Id write_dataset(hid_t parent, const char* name, DType dtype, const std::vector<hsize_t>& shape,
                 const void* data) {
  const Id type = type_of(dtype);
  const Id space =
      shape.empty() ? Id(H5Screate(H5S_SCALAR), H5Sclose)
                    : Id(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr), H5Sclose);
  const Id how(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_obj_track_times(how.get(), false);  // times are not used here
  H5Pset_fill_time(how.get(), H5D_FILL_TIME_NEVER);
  H5Pset_alloc_time(how.get(), H5D_ALLOC_TIME_EARLY);
  Id dataset(H5Dcreate2(parent, name, type.get(), space.get(), H5P_DEFAULT, how.get(), H5P_DEFAULT),
             H5Dclose);
  const bool empty = std::find(shape.begin(), shape.end(), hsize_t{0}) != shape.end();
  if (dataset && !empty && H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0)
    return {};
  return dataset;
}

bool set_attribute(hid_t object, const char* name, std::string_view text) {
  text = text.substr(0, kMostAttributeText);
  const Id type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), std::max<std::size_t>(text.size(), 1));
  H5Tset_strpad(type.get(), H5T_STR_NULLPAD);
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  return write_scalar_attribute(object, name, type.get(), text.empty() ? "" : text.data());
}

bool set_attribute(hid_t object, const char* name, std::int64_t number) {
  return write_scalar_attribute(object, name, H5T_STD_I64LE, &number);
}

bool set_attribute(hid_t object, const char* name, std::uint64_t number) {
  return write_scalar_attribute(object, name, H5T_STD_U64LE, &number);
}

bool set_kind(hid_t object, std::string_view kind, std::int64_t version) {
  return set_attribute(object, "kind", kind) && set_attribute(object, "kind_version", version);
}

bool get_attribute(hid_t object, const char* name, std::string& text) {
  const Id attribute = open_scalar_attribute(object, name);
  if (!attribute) return false;
  const Id type(H5Aget_type(attribute.get()), H5Tclose);
  if (!type || H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) != 0) return false;
  const std::size_t size = H5Tget_size(type.get());
  if (size == 0 || size > kMostAttributeText) return false;
  std::string value(size, '\0');
  if (H5Aread(attribute.get(), type.get(), value.data()) < 0) return false;
  value.resize(std::min(value.find('\0'), value.size()));
  text = std::move(value);
  return true;
}

bool get_attribute(hid_t object, const char* name, std::int64_t& number) {
  return read_number(object, name, H5T_STD_I64LE, &number);
}

bool get_attribute(hid_t object, const char* name, std::uint64_t& number) {
  return read_number(object, name, H5T_STD_U64LE, &number);
}

}  // namespace nanquest::h5
