/// Reads tables column by column from a checked file; the counterpart of table_writer.h. Internal to this
/// room.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "probe/snapshot/checked_file.h"
#include "probe/snapshot/column_types.h"

namespace nanquest {

/// The file of a reader: holds its strings and remembers the first failure, after which all reads return
/// nothing.
class TableFileReader {
 public:
  class Table;
  /// Reads the string table. `file` must outlive this object.
  TableFileReader(const CheckedFile& file, std::uint64_t max_rows);

  /// Prefix for the names of all following tables.
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }
  Table table(const std::string& name, const char* kind);
  /// Whether an optional table exists.
  bool has(const std::string& group, bool) const { return file_.has_group(prefix_ + group); }
  /// Every table with its rows from `from_row` on; no rows if it has fewer.
  void read_history(std::vector<SeriesTable>& history, std::uint64_t from_row = 0);

  /// The 1-D column `name`; `required` ones must be there.
  template <class T>
  std::vector<T> column(const std::string& name);
  /// Texts of string table rows; their total size is limited, because one long text can be referenced often.
  std::vector<std::string> lookup(const std::string& name, const std::vector<std::uint32_t>& rows);

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  void fail(const std::string& what);

 private:
  const StoredDataset* find(const std::string& name, DType dtype, std::size_t rank);

  const CheckedFile& file_;
  std::string prefix_;
  std::uint64_t max_rows_;
  std::uint64_t text_bytes_ = 0;
  Status status_;
  std::vector<std::string> strings_;
};

template <class T>
std::vector<T> TableFileReader::column(const std::string& name) {
  const StoredDataset* dataset = find(name, stored_dtype<T>(), 1);
  if (dataset == nullptr) return {};
  std::vector<T> out(dataset->elements);
  if (Status read = file_.read(name, 0, out.size(), reinterpret_cast<std::byte*>(out.data())); !read) {
    if (ok()) status_ = read;
    return {};
  }
  return out;
}

/// One table; every function reads one or two columns. All columns of the rows of a table have one length.
class TableFileReader::Table {
 public:
  Table(TableFileReader& file, std::string group) : file_(file), group_(std::move(group)) {}

  template <class Row, class T>
  void number(const char* name, std::vector<Row>& rows, T Row::*field) {
    const auto column = file_.column<Stored<T>>(path(name));
    if (!fit(name, rows, column.size())) return;
    for (std::size_t i = 0; i < column.size(); ++i)
      if (!set(name, column[i], rows[i].*field)) return;
  }

  template <class Row>
  void text(const char* name, std::vector<Row>& rows, std::string Row::*field) {
    std::vector<std::string> column = texts_of(name);
    if (!fit(name, rows, column.size())) return;
    for (std::size_t i = 0; i < column.size(); ++i) rows[i].*field = std::move(column[i]);
  }

  template <class Row, class T>
  void list(const char* name, std::vector<Row>& rows, std::vector<T> Row::*field) {
    const auto elements = file_.column<T>(path(name));
    const auto offsets = offsets_of(name, elements.size());
    if (offsets.empty() || !fit(name, rows, offsets.size() - 1)) return;
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
      (rows[i].*field)
          .assign(elements.begin() + static_cast<std::ptrdiff_t>(offsets[i]),
                  elements.begin() + static_cast<std::ptrdiff_t>(offsets[i + 1]));
  }

  template <class T>
  void value(const char* name, T& out) {
    const auto column = file_.column<Stored<T>>(path(name));
    if (one(name, column.size())) set(name, column[0], out);
  }

  void word(const char* name, std::string& out) {
    std::vector<std::string> column = texts_of(name);
    if (one(name, column.size())) out = std::move(column[0]);
  }

  template <class T>
  void values(const char* name, std::vector<T>& out) {
    out = file_.column<T>(path(name));
  }

  void texts(const char* name, std::vector<std::string>& out) { out = texts_of(name); }
  void text_lists(const char* name, std::vector<std::vector<std::string>>& rows);
  void dictionary(std::map<std::string, std::string>& entries);

 private:
  std::string path(const char* name) const { return group_ + "/" + name; }
  std::vector<std::string> texts_of(const char* name) {
    return file_.lookup(path(name), file_.column<std::uint32_t>(path(name)));
  }
  std::vector<std::uint64_t> offsets_of(const char* name, std::size_t elements);

  bool one(const char* name, std::size_t count) {
    if (file_.ok() && count != 1) file_.fail(path(name) + " must hold one value");
    return file_.ok();
  }

  /// Gives `rows` the length of the first column, and requires it of every later one.
  template <class Row>
  bool fit(const char* name, std::vector<Row>& rows, std::size_t count) {
    if (file_.ok() && rows.empty()) rows.resize(count);
    if (file_.ok() && rows.size() != count)
      file_.fail(path(name) + " has " + std::to_string(count) + " rows, its table " +
                 std::to_string(rows.size()));
    return file_.ok();
  }

  template <class S, class T>
  bool set(const char* name, S stored, T& out) {
    if constexpr (!std::is_same_v<S, T>) {
      if (static_cast<int>(stored) >= code_count<T>()) {
        file_.fail(path(name) + " holds the unknown code " + std::to_string(stored));
        return false;
      }
    }
    out = static_cast<T>(stored);
    return true;
  }

  TableFileReader& file_;
  std::string group_;
};

}  // namespace nanquest
