/// Writes tables as groups of 1-D columns; texts are stored in one string table of the file. Internal to this
/// room.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "probe/snapshot/column_types.h"
#include "probe/snapshot/sink.h"

namespace nanquest {

/// The tables of a file that is being written: creates groups and columns, collects the strings, remembers
/// the first failure.
class TableFileWriter {
 public:
  class Table;
  /// `sink` must outlive this object.
  explicit TableFileWriter(Sink& sink) : sink_(sink) {}

  /// Prefix for the names of all following tables.
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }
  /// A group for the columns of one table.
  Table table(const std::string& group, const char* kind);
  /// Whether an optional table is written: the writer decides.
  static bool has(const std::string&, bool written) { return written; }
  /// Creates the group and its parents, if they do not exist; `kind` is set on the last one.
  bool make_group(const std::string& group, const char* kind);
  /// Writes a dataset of this kind; `text` marks it as indices into the string table.
  bool write(const std::string& name, DType dtype, const std::vector<std::uint64_t>& shape, const void* data,
             const char* kind, bool text = false);
  /// Row of `text` in the string table.
  std::uint32_t intern(const std::string& text);
  /// Writes history/NAME/{values, columns} for each table: values is 2-D [row, column].
  void write_history(const std::vector<SeriesTable>& history);
  /// Writes the string table; call last.
  void write_strings();
  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }

 private:
  Sink& sink_;
  std::string prefix_;
  Status status_;
  std::set<std::string> groups_;
  std::unordered_map<std::string, std::uint32_t> rows_;
  std::vector<std::uint8_t> bytes_;
  std::vector<std::uint64_t> offsets_{0};
};

/// One table; every function writes one or two columns.
class TableFileWriter::Table {
 public:
  Table(TableFileWriter& file, std::string group) : file_(file), group_(std::move(group)) {}

  template <class Row, class T>
  void number(const char* name, const std::vector<Row>& rows, T Row::*field) {
    std::vector<Stored<T>> column;
    column.reserve(rows.size());
    for (const Row& row : rows) column.push_back(static_cast<Stored<T>>(row.*field));
    values(name, column);
  }

  template <class Row>
  void text(const char* name, const std::vector<Row>& rows, std::string Row::*field) {
    std::vector<std::uint32_t> column;
    column.reserve(rows.size());
    for (const Row& row : rows) column.push_back(file_.intern(row.*field));
    write_texts(name, column);
  }

  /// A list per row: `name` holds the elements of all rows, `name_offsets` the start of each row (rows + 1).
  template <class Row, class T>
  void list(const char* name, const std::vector<Row>& rows, std::vector<T> Row::*field) {
    std::vector<T> elements;
    std::vector<std::uint64_t> offsets{0};
    for (const Row& row : rows) {
      elements.insert(elements.end(), (row.*field).begin(), (row.*field).end());
      offsets.push_back(elements.size());
    }
    values(name, elements);
    values((std::string(name) + "_offsets").c_str(), offsets);
  }

  template <class T>
  void value(const char* name, const T& x) {
    values(name, std::vector<Stored<T>>{static_cast<Stored<T>>(x)});
  }

  void word(const char* name, const std::string& x) { write_texts(name, {file_.intern(x)}); }

  template <class T>
  void values(const char* name, const std::vector<T>& column) {
    file_.write(group_ + "/" + name, stored_dtype<T>(), {column.size()}, column.data(), "column");
  }

  void texts(const char* name, const std::vector<std::string>& column);
  void text_lists(const char* name, const std::vector<std::vector<std::string>>& rows);
  void dictionary(const std::map<std::string, std::string>& entries);

 private:
  void write_texts(const char* name, const std::vector<std::uint32_t>& column) {
    file_.write(group_ + "/" + name, DType::uint32, {column.size()}, column.data(), "column", true);
  }

  TableFileWriter& file_;
  std::string group_;
};

}  // namespace nanquest
