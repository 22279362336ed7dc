/// TapeValues: where the values of a tape lie, and how much room there is for them.
///
///     TapeValues values({.share = 0.25, .folder = ""});
///     auto kept = values.copy(storage, bytes);     // an anchor's copy; nothing: see why()
///     values.recount(rows, all);                   // what is held, after some was dropped
///
/// A copy of a device's memory lies on the device as long as its share allows that, then in the host's
/// memory. With a folder, copies of 1 MB and more lie in files there instead, which have no name and are gone
/// with the program. Each kind of memory gives a share of what was free when it was needed first.
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
  std::size_t place = 0;  ///< index of the memory it lies in
};

/// Not thread-safe, as the tape.
class TapeValues {
 public:
  explicit TapeValues(TapeRoom room);

  /// The first `bytes` of `storage` as they are now, if there is room; nothing if not, `why` says of what.
  /// Throws what an allocation throws.
  std::optional<TapeValue> copy(const c10::Storage& storage, std::size_t bytes);
  /// "it would take more than 1.2 GB, its share of the memory that was free (…)", for the copy that was
  /// refused.
  const std::string& why() const { return why_; }

  /// Rows take so many more bytes of the host's memory. Whether they still fit; `why` if not.
  bool add_rows(std::uint64_t bytes);
  /// What is held now: rows of so many bytes, and these values.
  void recount(std::uint64_t rows, const std::vector<const TapeValue*>& values);
  /// Whether as much as these values take fits beside all that is held.
  bool fit_again(const std::vector<const TapeValue*>& values) const;
  /// Bytes held, wherever.
  std::uint64_t held() const;

 private:
  /// The host's memory is the first, files are the second, devices come behind.
  struct Place {
    std::uint64_t room = 0, held = 0;
  };
  /// One of which so many bytes are free now.
  void add_place(std::uint64_t free);
  std::size_t memory_of(at::Device device);
  bool takes(std::size_t place, std::uint64_t bytes) const;
  void refuse(std::size_t place, const char* takes);

  TapeRoom room_;
  std::vector<Place> places_;
  std::vector<at::Device> devices_;  ///< of the places behind the first two
  std::string why_;
};

}  // namespace nanquest::record
