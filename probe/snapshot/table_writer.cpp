#include "probe/snapshot/table_writer.h"

namespace nanquest {

bool TableFileWriter::make_group(const std::string& group, const char* kind) {
  if (!ok()) return false;
  for (std::size_t end = group.find('/');; end = group.find('/', end + 1)) {
    const bool last = end == std::string::npos;
    const std::string name = group.substr(0, end);
    if (groups_.insert(name).second)
      status_ = sink_.group(name, {{"kind", last ? kind : "group"}, {"kind_version", std::int64_t{1}}});
    if (!ok()) return false;
    if (last) return true;
  }
}

TableFileWriter::Table TableFileWriter::table(const std::string& group, const char* kind) {
  make_group(prefix_ + group, kind);
  return Table(*this, prefix_ + group);
}

bool TableFileWriter::write(const std::string& name, DType dtype, const std::vector<std::uint64_t>& shape,
                            const void* data, const char* kind, bool text) {
  if (!ok()) return false;
  constexpr std::int64_t version = 1;
  status_ = text ? sink_.dataset(name, dtype, shape, data,
                                 {{"kind", kind}, {"kind_version", version}, {"rows_of", "/strings"}})
                 : sink_.dataset(name, dtype, shape, data, {{"kind", kind}, {"kind_version", version}});
  return ok();
}

std::uint32_t TableFileWriter::intern(const std::string& text) {
  const auto [at, is_new] = rows_.try_emplace(text, static_cast<std::uint32_t>(rows_.size()));
  if (is_new) {
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    offsets_.push_back(bytes_.size());
  }
  return at->second;
}

void TableFileWriter::write_history(const std::vector<SeriesTable>& history) {
  std::vector<std::string> names;
  for (const SeriesTable& series : history) {
    names.push_back(series.name);
    const std::string group = "history/" + series.name;
    Table t = table(group, "series_table");
    write(group + "/values", DType::float64, {series.rows(), series.columns.size()}, series.values.data(),
          "series");
    t.texts("columns", series.columns);
  }
  table("history/@index", "series_index").texts("names", names);
}

void TableFileWriter::write_strings() {
  Table t = table("strings", "string_table");
  t.values("bytes", bytes_);
  t.values("offsets", offsets_);
}

void TableFileWriter::Table::texts(const char* name, const std::vector<std::string>& column) {
  std::vector<std::uint32_t> rows;
  rows.reserve(column.size());
  for (const std::string& text : column) rows.push_back(file_.intern(text));
  write_texts(name, rows);
}

void TableFileWriter::Table::text_lists(const char* name, const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::uint32_t> elements;
  std::vector<std::uint64_t> offsets{0};
  for (const std::vector<std::string>& row : rows) {
    for (const std::string& text : row) elements.push_back(file_.intern(text));
    offsets.push_back(elements.size());
  }
  write_texts(name, elements);
  values((std::string(name) + "_offsets").c_str(), offsets);
}

void TableFileWriter::Table::dictionary(const std::map<std::string, std::string>& entries) {
  std::vector<std::uint32_t> keys, contents;
  for (const auto& [key, content] : entries) {
    keys.push_back(file_.intern(key));
    contents.push_back(file_.intern(content));
  }
  write_texts("key", keys);
  write_texts("value", contents);
}

}  // namespace nanquest
