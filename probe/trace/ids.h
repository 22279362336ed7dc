/// ids: rows of a doc's tables, typed by what they are rows of.
///
///     for (const OpId op : ids_of<OpRow>(doc))
///       if (const ModuleRow* module = find_row(doc, ModuleId{get(doc, op).module})) say(module->path);
///
/// The tables themselves hold plain numbers, as the file does (probe/snapshot/model.h); an id is made from
/// one explicitly and gives it back as `row()`. An op can't be taken for a slot.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "probe/snapshot/model.h"

namespace nanquest {

/// A row of the table that holds `Row`s; none if default-made.
template <class Row>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::integral auto row) : row_(static_cast<std::int32_t>(row)) {}

  /// The number as tables and files have it; kNone for none.
  constexpr std::int32_t row() const { return row_; }
  /// The same as an index of a vector; not for none.
  constexpr std::size_t index() const { return static_cast<std::size_t>(row_); }
  constexpr explicit operator bool() const { return row_ != kNone; }
  constexpr Id& operator++() {
    ++row_;
    return *this;
  }
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

/// Rows [begin, end) of a table, for loops.
template <class Row>
class IdRange {
 public:
  constexpr IdRange(Id<Row> first, Id<Row> end) : first_(first), end_(end) {}
  class Iterator {
   public:
    constexpr explicit Iterator(Id<Row> at) : at_(at) {}
    constexpr Id<Row> operator*() const { return at_; }
    constexpr Iterator& operator++() {
      ++at_;
      return *this;
    }
    friend constexpr bool operator==(Iterator, Iterator) = default;

   private:
    Id<Row> at_;
  };
  constexpr Iterator begin() const { return Iterator(first_); }
  constexpr Iterator end() const { return Iterator(end_); }

 private:
  Id<Row> first_, end_;
};

/// The doc's table of such rows.
template <class Row, class Doc>
auto& table(Doc& doc) {
  if constexpr (std::same_as<Row, OpRow>)
    return doc.ops;
  else if constexpr (std::same_as<Row, TensorRow>)
    return doc.tensors;
  else if constexpr (std::same_as<Row, Slot>)
    return doc.slots;
  else if constexpr (std::same_as<Row, ArgRow>)
    return doc.args;
  else if constexpr (std::same_as<Row, StatsRow>)
    return doc.stats;
  else
    return doc.modules;
}

/// All rows of a table.
template <class Row>
IdRange<Row> ids_of(const SnapshotDoc& doc) {
  return {Id<Row>{0}, Id<Row>{table<Row>(doc).size()}};
}

/// The row, which must be there.
template <class Row>
const Row& get(const SnapshotDoc& doc, Id<Row> id) {
  return table<Row>(doc)[id.index()];
}
template <class Row>
Row& get(SnapshotDoc& doc, Id<Row> id) {
  return table<Row>(doc)[id.index()];
}

/// The row; null for none and for what lies outside the table.
template <class Row>
const Row* find_row(const SnapshotDoc& doc, Id<Row> id) {
  const auto& rows = table<Row>(doc);
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
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

 private:
  std::vector<T> values_;
};

}  // namespace nanquest
