#include "trainer/data/prepared_file.h"

#include <cstring>

#include "trainer/data/file_parts.h"

namespace nanquest::trainer {
namespace {

struct Head {
  char magic[8];
  std::uint32_t version, token_bytes;
  std::uint64_t tokens, samples, rows;
  char zeros[24];
};
static_assert(sizeof(Head) == 64);

}  // namespace

Result<PreparedFile> PreparedFile::open(const std::string& path) {
  const auto bad = [&](const std::string& what) {
    return Error{ErrorCode::bad_file, path + ": " + what, "prepare the data again"};
  };
  Result<MappedFile> mapped = MappedFile::open(path);
  if (!mapped) return mapped.error();
  PreparedFile file;
  file.file_ = std::move(*mapped);
  Cutter cutter(file.bytes());
  const std::span<const Head> heads = cutter.take<Head>(1);
  if (heads.empty() || std::memcmp(heads[0].magic, "nqtokens", 8) != 0)
    return bad("not a shard of prepared data");
  const Head& head = heads[0];
  if (head.version != kPreparedVersion)
    return bad("of version " + std::to_string(head.version) + ", this program reads " +
               std::to_string(kPreparedVersion));
  if (head.token_bytes != 2 && head.token_bytes != 4)
    return bad("tokens of " + std::to_string(head.token_bytes) + " bytes");
  if (head.samples + 1 == 0 || head.rows + 1 == 0) return bad("truncated, or longer than it says");
  if (head.token_bytes == 2)
    file.narrow_ = cutter.take<std::uint16_t>(head.tokens);
  else
    file.wide_ = cutter.take<std::uint32_t>(head.tokens);
  file.learned_ = cutter.take<std::uint8_t>(head.tokens);
  file.starts_ = cutter.take<std::uint64_t>(head.samples + 1);
  file.rows_ = cutter.take<std::uint64_t>(head.rows + 1);
  file.lines_ = cutter.take<std::uint32_t>(head.samples);
  if (!cutter.ended()) return bad("truncated, or longer than it says");
  // A text of one token has nothing to predict.
  if (!climbs(file.starts_, head.tokens, 2) || !climbs(file.rows_, head.samples, 1))
    return bad("its samples or rows are not in order");
  return file;
}

}  // namespace nanquest::trainer
