/// Grown: a list that others may go on reading while it grows.
///
///     Grown<double> before(values);
///     Grown<double> after = before;   // shares what there is
///     after.append(more);             // `before` still ends where it ended
///
/// One thread appends; any number read what they were given. A copy is cheap, and so is appending: what the
/// list began with is never copied, and what follows only when the memory for it is full. Of two copies that
/// are appended to, the second takes memory of its own for that.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace nanquest::viewer {

template <class T>
class Grown {
 public:
  Grown() = default;
  /// Takes the values over.
  explicit Grown(std::vector<T> values)
      : begins_(std::make_shared<const std::vector<T>>(std::move(values))), begun_(begins_->size()) {}

  std::size_t size() const { return begun_ + more_; }
  bool empty() const { return size() == 0; }
  const T& operator[](std::size_t i) const { return i < begun_ ? (*begins_)[i] : rest_->values[i - begun_]; }

  /// Calls `f` with the elements [first, last) in as few stretches as they lie in.
  template <class F>
  void stretches(std::size_t first, std::size_t last, F&& f) const {
    if (first < std::min(last, begun_))
      f(std::span(begins_->data() + first, begins_->data() + std::min(last, begun_)));
    if (std::max(first, begun_) < last)
      f(std::span<const T>(rest_->values.data() + (std::max(first, begun_) - begun_),
                           rest_->values.data() + (last - begun_)));
  }

  void append(std::span<const T> more) {
    if (more.empty()) return;
    const std::size_t needed = more_ + more.size();
    // What lies behind the end of this list may be another's.
    if (rest_ == nullptr || rest_->used != more_ || rest_->values.size() < needed) {
      auto room = std::make_shared<Rest>();
      room->values.resize(std::max(needed + needed / 2, std::size_t{64}));
      if (more_ > 0) std::copy_n(rest_->values.begin(), more_, room->values.begin());
      rest_ = std::move(room);
    }
    std::ranges::copy(more, rest_->values.begin() + static_cast<std::ptrdiff_t>(more_));
    rest_->used = more_ = needed;
  }

 private:
  struct Rest {
    std::vector<T> values;  ///< its size is the room that there is, and never changes
    std::size_t used = 0;   ///< of the copy that has appended most; only an append reads it
  };
  std::shared_ptr<const std::vector<T>> begins_;
  std::shared_ptr<Rest> rest_;
  std::size_t begun_ = 0, more_ = 0;
};

}  // namespace nanquest::viewer
