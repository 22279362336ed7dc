/// Batch: the data of the step. Every tensor of the batch, and every sample: its id, its text, the values of
/// its tensors, whether something in them is not finite, whether the verdict blames it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "viewer/model/incident.h"

namespace nanquest::viewer {

/// A sample as a small picture, row by row.
struct Thumbnail {
  struct Cell {
    std::uint8_t red = 0, green = 0, blue = 0;
    Extremes bad;  ///< what of it is not finite; the extremes themselves are not kept
  };
  int rows = 0, columns = 0;
  std::vector<Cell> cells;
};

/// One tensor of the batch.
struct BatchTensor {
  StoredTensor tensor;
  std::string error;              ///< why it can't be read; "" if it could
  Extremes all;                   ///< of the elements that were read; of complex numbers, of their parts
  bool partial = false;           ///< there are more elements than those that were read
  bool by_sample = false;         ///< its first dimension is the samples
  std::vector<Extremes> samples;  ///< of each sample; empty unless `by_sample`
  /// Whole numbers: the first values of each sample, no more than kBatchValues.
  std::vector<std::vector<std::int64_t>> values;
  std::vector<Thumbnail> pictures;  ///< of each sample, of the first ones where there are very many
};

struct Batch {
  std::int64_t samples = 0;  ///< 0 if it isn't known how many there are
  std::vector<BatchTensor> tensors;
};

inline constexpr std::size_t kBatchValues = 4096;

/// Reads the tensors of an incident's batch; those that can't be read say why. Nothing if `progress` was told
/// to stop.
std::optional<Batch> load_batch(const OpenIncident& incident, Progress* progress = nullptr);

/// Number of samples in the batch: the rows that all its tensors agree on, otherwise the number of ids.
std::int64_t sample_count(const SnapshotDoc& doc);

/// Whole numbers as people read them: "7 7 12, 0 x 87", the first `most` stretches of equal ones.
std::string values_text(const std::vector<std::int64_t>& values, std::size_t most, std::uint64_t all);

/// A sample's text with escapes: line ends and tabs as "\n" and "\t", other control characters and bytes that
/// are no text as "\xff". `tokens`: if each of them is a byte of the text, they show the bytes for which the
/// text only has a "?".
std::string marked_text(const std::string& text, const std::vector<std::int64_t>& tokens);

}  // namespace nanquest::viewer
