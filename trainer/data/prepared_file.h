/// A shard of prepared data: the bytes that nanquest prepare writes (shard_files.py), described in
/// docs/data.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "probe/base/result.h"
#include "trainer/data/mapped_file.h"

namespace nanquest::trainer {

/// Additions to the format without a change of meaning keep the number; readers refuse a higher one.
inline constexpr std::uint32_t kPreparedVersion = 1;

/// The parts of a shard, in place in the mapped file. Copies share it.
class PreparedFile {
 public:
  /// Maps the file and checks everything except the tokens' values. `bad_file` names path and error.
  static Result<PreparedFile> open(const std::string& path);

  std::uint32_t token(std::uint64_t n) const { return wide_.empty() ? narrow_[n] : wide_[n]; }
  std::uint64_t tokens() const { return learned_.size(); }
  std::uint64_t samples() const { return lines_.size(); }
  std::uint64_t rows() const { return rows_.size() - 1; }
  /// Whether the loss counts it.
  bool learned(std::uint64_t token) const { return learned_[token] != 0; }
  std::uint64_t sample_begin(std::uint64_t sample) const { return starts_[sample]; }  ///< token
  std::uint64_t row_begin(std::uint64_t row) const { return rows_[row]; }             ///< sample
  std::uint64_t row_tokens(std::uint64_t row) const { return starts_[rows_[row + 1]] - starts_[rows_[row]]; }
  std::uint32_t line(std::uint64_t sample) const { return lines_[sample]; }  ///< of its file, from 1
  std::span<const std::byte> bytes() const { return file_.bytes(); }

 private:
  MappedFile file_;
  std::span<const std::uint16_t> narrow_;
  std::span<const std::uint32_t> wide_;
  std::span<const std::uint8_t> learned_;
  std::span<const std::uint64_t> starts_, rows_;
  std::span<const std::uint32_t> lines_;
};

}  // namespace nanquest::trainer
