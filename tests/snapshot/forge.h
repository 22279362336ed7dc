/// Makes invalid snapshots: a real one is changed through libhdf5 and sealed again, as a forger would, so
/// that the reader's own guards are tested.
#pragma once

#include <hdf5.h>

#include <functional>
#include <string>
#include <vector>

namespace nanquest::testing {

/// Runs `change` on the HDF5 file of the snapshot at `path` (opened read-write), then seals it again.
void forge(const std::string& path, const std::function<void(hid_t file)>& change);

/// Replaces the value of column element `row`, whatever the type of the column.
void poke(hid_t file, const char* column, hsize_t row, long long value);

/// Replaces a dataset by another of the given type, shape and creation properties, without writing data.
void replace(hid_t file, const char* name, hid_t type, const std::vector<hsize_t>& shape, hid_t creation);

}  // namespace nanquest::testing
