#include "probe/snapshot/table_reader.h"

#include <algorithm>

namespace nanquest {
namespace {

constexpr std::uint64_t kMostTextBytes = 1ull << 30;  ///< limit for all texts returned for one file

/// True if `offsets` cut [0, total) into consecutive pieces.
bool cuts(const std::vector<std::uint64_t>& offsets, std::uint64_t total) {
  if (offsets.empty() || offsets.front() != 0 || offsets.back() != total) return false;
  for (std::size_t i = 1; i < offsets.size(); ++i)
    if (offsets[i] < offsets[i - 1]) return false;
  return true;
}

}  // namespace

TableFileReader::TableFileReader(const CheckedFile& file, std::uint64_t max_rows)
    : file_(file), max_rows_(max_rows) {
  const auto bytes = column<std::uint8_t>("strings/bytes");
  const auto offsets = column<std::uint64_t>("strings/offsets");
  if (ok() && !cuts(offsets, bytes.size())) fail("strings/offsets do not cut strings/bytes");
  if (!ok()) return;
  strings_.reserve(offsets.size() - 1);
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
    strings_.emplace_back(reinterpret_cast<const char*>(bytes.data()) + offsets[i],
                          offsets[i + 1] - offsets[i]);
}

void TableFileReader::fail(const std::string& what) {
  if (ok())
    status_ = Error{ErrorCode::bad_file, file_.path() + ": " + what,
                    "the file was not written by a sound nanquest"};
}

const StoredDataset* TableFileReader::find(const std::string& name, DType dtype, std::size_t rank) {
  if (!ok()) return nullptr;
  const auto at = file_.datasets().find(name);
  if (at == file_.datasets().end()) {
    const std::string group = name.substr(0, name.rfind('/'));
    fail(file_.has_group(group) ? "holds no " + name : "holds no group " + group);
    return nullptr;
  }
  const StoredDataset& d = at->second;
  if (d.dtype != dtype || d.shape.size() != rank)
    fail(name + " is not a " + std::to_string(rank) + "-D column of " + std::string(dtype_name(dtype)));
  else if (static_cast<std::uint64_t>(d.shape[0]) > max_rows_ && name != "strings/bytes")
    fail(name + " has " + std::to_string(d.shape[0]) + " rows, the limit is " + std::to_string(max_rows_));
  return ok() ? &d : nullptr;
}

std::vector<std::string> TableFileReader::lookup(const std::string& name,
                                                 const std::vector<std::uint32_t>& rows) {
  std::vector<std::string> out;
  if (!ok()) return out;
  out.reserve(rows.size());
  for (const std::uint32_t row : rows) {
    if (row >= strings_.size()) {
      fail(name + " names string " + std::to_string(row) + " of " + std::to_string(strings_.size()));
      return {};
    }
    text_bytes_ += strings_[row].size();
    if (text_bytes_ > kMostTextBytes) {
      fail("its texts come to more than 1 GiB");
      return {};
    }
    out.push_back(strings_[row]);
  }
  return out;
}

TableFileReader::Table TableFileReader::table(const std::string& name, const char* kind) {
  const std::string group = prefix_ + name;
  std::string stored;
  std::int64_t version = 0;
  if (ok() && !file_.has_group(group)) fail("holds no group " + group);
  if (ok()) {
    const h5::Id id(H5Gopen2(file_.root(), group.c_str(), H5P_DEFAULT), H5Gclose);
    if (!id || !h5::get_attribute(id.get(), "kind", stored) ||
        !h5::get_attribute(id.get(), "kind_version", version))
      fail("group " + group + " does not say of what kind it is");
    else if (stored != kind && stored != "group")
      fail("group " + group + " is of kind \"" + stored + "\" instead of \"" + kind + "\"");
    else if (version != 1)
      fail("group " + group + " is of version " + std::to_string(version) + ", this program knows 1");
  }
  return Table(*this, group);
}

void TableFileReader::read_history(std::vector<SeriesTable>& history, std::uint64_t from_row) {
  std::vector<std::string> names;
  table("history/@index", "series_index").texts("names", names);
  for (const std::string& name : names) {
    SeriesTable series;
    series.name = name;
    const std::string group = "history/" + name;
    table(group, "series_table").texts("columns", series.columns);
    const StoredDataset* values = find(group + "/values", DType::float64, 2);
    if (values == nullptr) return;
    if (static_cast<std::uint64_t>(values->shape[1]) != series.columns.size())
      return fail(group + " has " + std::to_string(values->shape[1]) + " columns and " +
                  std::to_string(series.columns.size()) + " names");
    const std::uint64_t rows = static_cast<std::uint64_t>(values->shape[0]), width = series.columns.size();
    const std::uint64_t first = std::min(from_row, rows) * width;
    series.values.resize(values->elements - first);
    if (Status read = file_.read(group + "/values", first, series.values.size(),
                                 reinterpret_cast<std::byte*>(series.values.data()));
        !read) {
      status_ = read;
      return;
    }
    history.push_back(std::move(series));
  }
}

std::vector<std::uint64_t> TableFileReader::Table::offsets_of(const char* name, std::size_t elements) {
  auto offsets = file_.column<std::uint64_t>(path(name) + "_offsets");
  if (file_.ok() && !cuts(offsets, elements)) file_.fail(path(name) + "_offsets do not cut " + name);
  if (!file_.ok()) offsets.clear();
  return offsets;
}

void TableFileReader::Table::text_lists(const char* name, std::vector<std::vector<std::string>>& rows) {
  std::vector<std::string> elements = texts_of(name);
  const auto offsets = offsets_of(name, elements.size());
  if (offsets.empty()) return;
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    std::vector<std::string> row;
    for (std::uint64_t j = offsets[i]; j < offsets[i + 1]; ++j) row.push_back(std::move(elements[j]));
    rows.push_back(std::move(row));
  }
}

void TableFileReader::Table::dictionary(std::map<std::string, std::string>& entries) {
  const std::vector<std::string> keys = texts_of("key"), contents = texts_of("value");
  if (file_.ok() && keys.size() != contents.size())
    file_.fail(group_ + " has more keys than values, or fewer");
  if (!file_.ok()) return;
  for (std::size_t i = 0; i < keys.size(); ++i) entries[keys[i]] = contents[i];
}

}  // namespace nanquest
