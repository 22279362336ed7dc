/// The data that `--data` names, as rows of tokens.
#pragma once

#include <memory>
#include <string>

#include "probe/base/result.h"
#include "trainer/data/token_data.h"

namespace nanquest::trainer {

/// A folder made by nanquest prepare, .bin files, or text as bytes: chosen by what is at `path`. Errors are
/// those of PreparedData, BinData and TextData.
Result<std::unique_ptr<TokenData>> open_tokens(const std::string& path, const DataOptions& options);

}  // namespace nanquest::trainer
