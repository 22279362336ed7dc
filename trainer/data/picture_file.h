/// A shard of pictures with labels: the bytes that nanquest prepare writes (shard_files.py), described in
/// docs/data.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "probe/base/result.h"
#include "trainer/data/mapped_file.h"

namespace nanquest::trainer {

/// The parts of a shard, in place in the mapped file. Copies share it.
class PictureFile {
 public:
  /// Maps the file and checks everything except the pixels' values. `bad_file` names path and error.
  static Result<PictureFile> open(const std::string& path);

  std::uint64_t samples() const { return lines_.size(); }
  std::uint32_t channels() const { return channels_; }
  std::uint32_t height() const { return height_; }
  std::uint32_t width() const { return width_; }
  /// Numbers of a picture.
  std::uint64_t values() const { return std::uint64_t{channels_} * height_ * width_; }
  std::uint32_t line(std::uint64_t sample) const { return lines_[sample]; }   ///< of its file, from 1
  std::uint8_t label(std::uint64_t sample) const { return labels_[sample]; }  ///< 0 or 1
  std::string picture(std::uint64_t sample) const;  ///< its file, as named in the data
  /// Writes the `values()` numbers of a picture, channel by channel, row by row.
  void read(std::uint64_t sample, float* to) const;
  std::span<const std::byte> bytes() const { return file_.bytes(); }

 private:
  MappedFile file_;
  std::uint32_t channels_ = 0, height_ = 0, width_ = 0;
  std::span<const std::uint32_t> lines_;
  std::span<const std::uint8_t> labels_;
  std::span<const std::uint64_t> names_;  ///< start of each in `text_`, and the end
  std::span<const char> text_;
  std::span<const float> table_;  ///< 256 values of each channel, for `codes_`
  std::span<const std::uint8_t> codes_;
  std::span<const float> whole_;  ///< the values themselves, if there are no codes
};

}  // namespace nanquest::trainer
