#include "trainer/data/open_tokens.h"

#include "trainer/data/bin_data.h"
#include "trainer/data/prepared_data.h"
#include "trainer/data/text_data.h"

namespace nanquest::trainer {
namespace {

template <class T>
Result<std::unique_ptr<TokenData>> as_tokens(Result<std::unique_ptr<T>> data) {
  if (!data) return data.error();
  return std::unique_ptr<TokenData>(std::move(*data));
}

}  // namespace

Result<std::unique_ptr<TokenData>> open_tokens(const std::string& path, const DataOptions& options) {
  if (PreparedData::is(path)) return as_tokens(PreparedData::open(path, options));
  if (BinData::is(path)) return as_tokens(BinData::open(path, options));
  Result<TextData> text = TextData::open(path, options);
  if (!text) return text.error();
  return std::unique_ptr<TokenData>(std::make_unique<TextData>(std::move(*text)));
}

}  // namespace nanquest::trainer
