#include "trainer/data/picture_file.h"

#include <cstring>

#include "trainer/data/file_parts.h"
#include "trainer/data/prepared_file.h"

namespace nanquest::trainer {
namespace {

constexpr std::uint64_t kColours = 256;
constexpr std::uint32_t kLargestSide = 1 << 16;

struct PictureHead {
  char magic[8];
  std::uint32_t version, value_bytes;
  std::uint64_t samples;
  std::uint32_t channels, height, width;
  char zeros[28];
};
static_assert(sizeof(PictureHead) == 64);

bool is_side(std::uint32_t n) {
  return n >= 1 && n <= kLargestSide;
}

}  // namespace

Result<PictureFile> PictureFile::open(const std::string& path) {
  const auto bad = [&](const std::string& what) {
    return Error{ErrorCode::bad_file, path + ": " + what, "prepare the data again"};
  };
  Result<MappedFile> mapped = MappedFile::open(path);
  if (!mapped) return mapped.error();
  PictureFile file;
  file.file_ = std::move(*mapped);
  Cutter cutter(file.bytes());
  const std::span<const PictureHead> heads = cutter.take<PictureHead>(1);
  if (heads.empty() || std::memcmp(heads[0].magic, "nqimages", 8) != 0)
    return bad("not a shard of prepared pictures");
  const PictureHead& head = heads[0];
  if (head.version != kPreparedVersion)
    return bad("of version " + std::to_string(head.version) + ", this program reads " +
               std::to_string(kPreparedVersion));
  if (head.value_bytes != 1 && head.value_bytes != 4)
    return bad("pixels of " + std::to_string(head.value_bytes) + " bytes");
  if (!is_side(head.channels) || head.channels > 16 || !is_side(head.height) || !is_side(head.width))
    return bad("pictures of an impossible size");
  file.channels_ = head.channels;
  file.height_ = head.height;
  file.width_ = head.width;
  // Checked by a division, since a product of the file's numbers could overflow.
  if (head.samples > 0 && file.values() > file.bytes().size() / head.samples)
    return bad("truncated, or longer than it says");
  const std::uint64_t all = head.samples * file.values();
  file.lines_ = cutter.take<std::uint32_t>(head.samples);
  file.labels_ = cutter.take<std::uint8_t>(head.samples);
  file.names_ = cutter.take<std::uint64_t>(head.samples + 1);
  if (file.names_.empty() || file.names_.back() > file.bytes().size() ||
      !climbs(file.names_, file.names_.back(), 0))
    return bad("truncated, or the names of its pictures are not in order");
  file.text_ = cutter.take<char>(file.names_.back());
  if (head.value_bytes == 1) {
    file.table_ = cutter.take<float>(kColours * head.channels);
    file.codes_ = cutter.take<std::uint8_t>(all);
  } else {
    file.whole_ = cutter.take<float>(all);
  }
  if (!cutter.ended()) return bad("truncated, or longer than it says");
  for (std::uint64_t i = 0; i < head.samples; ++i)
    if (file.labels_[i] > 1)
      return bad("the label of line " + std::to_string(file.lines_[i]) + " is " +
                 std::to_string(file.labels_[i]) + ", neither 0 nor 1");
  return file;
}

std::string PictureFile::picture(std::uint64_t sample) const {
  return {text_.data() + names_[sample], names_[sample + 1] - names_[sample]};
}

void PictureFile::read(std::uint64_t sample, float* to) const {
  const std::uint64_t begin = sample * values(), plane = std::uint64_t{height_} * width_;
  if (codes_.empty()) {
    std::memcpy(to, whole_.data() + begin, values() * sizeof(float));
    return;
  }
  for (std::uint32_t c = 0; c < channels_; ++c) {
    const float* table = table_.data() + c * kColours;
    const std::uint8_t* code = codes_.data() + begin + c * plane;
    for (std::uint64_t i = 0; i < plane; ++i) *to++ = table[code[i]];
  }
}

}  // namespace nanquest::trainer
