/// Single elements of a stored tensor: value, all its digits, its bytes as hex and its bits; and the search
/// for the next one that is not finite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "viewer/model/tensors.h"

namespace nanquest::viewer {

/// One element in words.
struct Element {
  std::uint64_t index = 0;  ///< in the order of the file
  std::string position;     ///< "[1, 6]"; "" for a tensor of fewer than two dimensions
  std::string value;        ///< four digits
  std::string exact;        ///< all of them
  std::string hex;          ///< "0x7e00"
  std::string bits;         ///< "0 11111 1000000000": sign, exponent, mantissa
  bool finite = true;
};

/// Elements that stand together, at most kElementPage.
struct ElementPage {
  std::uint64_t total = 0;  ///< of the tensor
  std::vector<Element> elements;
  const Element* at(std::uint64_t index) const;  ///< null if it is on another page
};
inline constexpr std::uint64_t kElementPage = 256;

/// "[1, 6]"; "" for a tensor of fewer than two dimensions.
std::string position_of(std::uint64_t index, const std::vector<std::int64_t>& shape);

/// How the bits of such an element are grouped: "sign, exponent, mantissa" for the real floating-point types,
/// "bits" for others.
const char* bits_title(DType dtype);

/// The page that holds element `index` (the last one if there are fewer). Errors are the reader's.
Result<ElementPage> load_elements(const SnapshotReader& reader, const StoredTensor& tensor,
                                  std::uint64_t index);

enum class Direction : std::uint8_t { forward, backward };
/// The first element after `from` (before it, backward) that is not finite, wrapping around at the end until
/// `from`; without `from` the first or the last of all. Nothing if all are finite. `io` if it was told to
/// stop.
Result<std::optional<std::uint64_t>> find_bad(const SnapshotReader& reader, const StoredTensor& tensor,
                                              std::optional<std::uint64_t> from, Direction direction,
                                              Progress* progress = nullptr);

}  // namespace nanquest::viewer
