/// ids: rows of a doc's tables, with the table as their type.
///
///     for (const OpId op : ids_of<OpRow>(doc))
///       if (const ModuleRow* module = find_row(doc, ModuleId{get(doc, op).module})) say(module->path);
///
/// The tables hold plain numbers, as the file does (probe/snapshot/model.h). An id is made from one
/// explicitly and returns it as `row()`. So an op can't be mistaken for a slot.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "probe/base/check.h"
#include "probe/snapshot/model.h"

namespace nanquest {

/// A row of the table of `Row`s; none if default-constructed.
template <class Row>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::integral auto row) : row_(static_cast<std::int32_t>(row)) {}

  /// The number in tables and files; kNone for none.
  constexpr std::int32_t row() const { return row_; }
  /// The same as an index of a vector; not for none.
  constexpr std::size_t index() const { return static_cast<std::size_t>(row_); }
  constexpr explicit operator bool() const { return row_ != kNone; }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  std::int32_t row_ = kNone;
};

using OpId = Id<OpRow>;
using TensorId = Id<TensorRow>;
using SlotId = Id<Slot>;
using ArgId = Id<ArgRow>;
using StatsId = Id<StatsRow>;
using ModuleId = Id<ModuleRow>;

/// Rows from one id up to, not including, another, for loops. (Debian's clang can't compile std::ranges'
/// own.)
template <class Row>
class IdRange {
 public:
  struct Iterator {
    std::int32_t row;
    constexpr Id<Row> operator*() const { return Id<Row>{row}; }
    constexpr Iterator& operator++() {
      ++row;
      return *this;
    }
    friend constexpr bool operator==(Iterator, Iterator) = default;
  };

  constexpr IdRange() = default;
  constexpr IdRange(Id<Row> first, Id<Row> end) : first_(first.row()), end_(end.row()) {}
  constexpr Iterator begin() const { return {first_}; }
  constexpr Iterator end() const { return {end_}; }
  constexpr std::size_t size() const { return static_cast<std::size_t>(end_ - first_); }
  constexpr bool empty() const { return first_ == end_; }
  constexpr Id<Row> front() const { return Id<Row>{first_}; }

 private:
  std::int32_t first_ = 0, end_ = 0;
};

/// The table of a doc with such rows.
template <class Row>
inline constexpr auto kTable = nullptr;
template <>
inline constexpr auto kTable<OpRow> = &SnapshotDoc::ops;
template <>
inline constexpr auto kTable<TensorRow> = &SnapshotDoc::tensors;
template <>
inline constexpr auto kTable<Slot> = &SnapshotDoc::slots;
template <>
inline constexpr auto kTable<ArgRow> = &SnapshotDoc::args;
template <>
inline constexpr auto kTable<StatsRow> = &SnapshotDoc::stats;
template <>
inline constexpr auto kTable<ModuleRow> = &SnapshotDoc::modules;

/// All rows of a table.
template <class Row>
IdRange<Row> ids_of(const SnapshotDoc& doc) {
  return IdRange<Row>(Id<Row>{0}, Id<Row>{(doc.*kTable<Row>).size()});
}

/// The row, which must exist (CheckFailed).
template <class Row>
const Row& get(const SnapshotDoc& doc, Id<Row> id) {
  const auto& rows = doc.*kTable<Row>;
  NANQUEST_CHECK(id.index() < rows.size(), "row " + std::to_string(id.row()) + " of a table");
  return rows[id.index()];
}
template <class Row>
Row& get(SnapshotDoc& doc, Id<Row> id) {
  return const_cast<Row&>(get(std::as_const(doc), id));
}

/// The row; null for none and for rows outside the table.
template <class Row>
const Row* find_row(const SnapshotDoc& doc, Id<Row> id) {
  const auto& rows = doc.*kTable<Row>;
  return id.row() >= 0 && id.index() < rows.size() ? &rows[id.index()] : nullptr;
}

/// One value for each row of a table.
template <class Row, class T>
class PerRow {
 public:
  PerRow() = default;
  explicit PerRow(std::size_t rows, const T& value = T()) : values_(rows, value) {}

  std::size_t size() const { return values_.size(); }
  bool holds(Id<Row> id) const { return id.row() >= 0 && id.index() < values_.size(); }
  decltype(auto) operator[](Id<Row> id) { return values_[id.index()]; }
  decltype(auto) operator[](Id<Row> id) const { return values_[id.index()]; }

 private:
  std::vector<T> values_;
};

}  // namespace nanquest
