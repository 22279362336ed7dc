#include "tests/snapshot/forge.h"

#include <gtest/gtest.h>

#include "probe/snapshot/seal.h"

namespace nanquest::testing {

void forge(const std::string& path, const std::function<void(hid_t)>& change) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  ASSERT_GE(file, 0);
  change(file);
  ASSERT_GE(H5Fclose(file), 0);
  const Status sealed = seal_file(path, 1, 0, {});
  ASSERT_TRUE(sealed) << sealed.error().text();
}

void poke(hid_t file, const char* column, hsize_t row, long long value) {
  const hid_t dataset = H5Dopen2(file, column, H5P_DEFAULT);
  ASSERT_GE(dataset, 0) << column;
  const hid_t in_file = H5Dget_space(dataset), in_memory = H5Screate(H5S_SCALAR);
  ASSERT_GE(H5Sselect_elements(in_file, H5S_SELECT_SET, 1, &row), 0);
  ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_LLONG, in_memory, in_file, H5P_DEFAULT, &value), 0);
  H5Sclose(in_memory);
  H5Sclose(in_file);
  H5Dclose(dataset);
}

void replace(hid_t file, const char* name, hid_t type, const std::vector<hsize_t>& shape, hid_t creation) {
  ASSERT_GE(H5Ldelete(file, name, H5P_DEFAULT), 0) << name;
  const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
  const hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  ASSERT_GE(dataset, 0) << name;
  H5Dclose(dataset);
  H5Sclose(space);
}

}  // namespace nanquest::testing
