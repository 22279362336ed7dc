/// TapeValues: where the values of a tape are stored, and how much room there is for them.
///
///     TapeValues values({.share = 0.25, .folder = ""});
///     auto kept = values.copy(storage, bytes);     // an anchor's copy; empty if refused: see why()
///     values.recount(rows, all);                   // what is held, after some was dropped
///
/// A copy of a device's memory stays on the device while its share allows that, then goes to the host's
/// memory. With a folder, copies of 1 MB and more go into nameless files there, which disappear with the
/// program. Of each kind of memory a share of what was free at first use is taken.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nanquest::record {

struct TapeRoom {
  double share = 0.25;      ///< of what is free
  std::string folder = {};  ///< "": no files
};

/// One copy.
struct TapeValue {
  at::Tensor bytes;       ///< uint8, on the device or the CPU
  std::size_t place = 0;  ///< index of the memory that it lies in
};

/// Not thread-safe, like the tape.
class TapeValues {
 public:
  explicit TapeValues(TapeRoom room);

  /// Copies the first `bytes` of `storage` as they are now, if there is room; empty if not, and `why` names
  /// the memory that is full. Throws what an allocation throws.
  std::optional<TapeValue> copy(const c10::Storage& storage, std::size_t bytes);
  /// "it would take more than 1.2 GB, its share of the memory that was free (…)", for the copy that was
  /// refused.
  const std::string& why() const { return why_; }

  /// Records take this many more bytes of the host's memory. Whether they still fit; if not, `why` says so.
  bool add_rows(std::uint64_t bytes);
  /// Sets what is held now: records of this many bytes, and these values.
  void recount(std::uint64_t rows, const std::vector<const TapeValue*>& values);
  /// Whether as much again as these values take fits beside all that is held.
  bool fit_again(const std::vector<const TapeValue*>& values) const;
  /// Bytes held, wherever.
  std::uint64_t held() const;

 private:
  /// The host's memory comes first, files second, then devices.
  struct Place {
    std::uint64_t room = 0, held = 0;
  };
  /// One of which this many bytes are free now.
  void add_place(std::uint64_t free);
  std::size_t memory_of(at::Device device);
  bool takes(std::size_t place, std::uint64_t bytes) const;
  void refuse(std::size_t place, const char* takes);

  TapeRoom room_;
  std::vector<Place> places_;
  std::vector<at::Device> devices_;  ///< of the places after the first two
  std::string why_;
};

}  // namespace nanquest::record
