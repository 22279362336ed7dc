/// The batch in words, shared by text, CSV and drawing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "viewer/model/session.h"

namespace nanquest::viewer {

/// A tensor of the batch in words.
struct TensorWords {
  std::string name, dtype, shape;
  std::string range;       ///< "-3.1 to 4.2", "none is finite", or why it can't be read
  std::string not_finite;  ///< "120 NaN", "none"
  std::string by;          ///< "one a row", "not by sample", "one a row, as pictures"
  Extremes bad;
  std::string path;
};

/// A sample of the batch in words.
struct SampleWords {
  std::int64_t number = 0;
  std::string id;          ///< "" if the run gave none
  bool blamed = false;     ///< the verdict says that without it the step is finite
  std::string not_finite;  ///< in all its tensors
  std::string holds;       ///< "image -3.1 to 4.2; label 3", in the order of the tensors
  std::string text;        ///< with marks for what is no text; "" if the run gave none
  Extremes bad;
};

struct BatchPage {
  std::string headline;  ///< "16 samples in 2 tensors. Sample 15 of samples 0 to 15; without it …"
  std::vector<TensorWords> tensors;
  std::vector<SampleWords> samples;
};

/// What is known of the batch of the open incident. `batch`: null if its tensors were not read; then samples
/// have only ids and texts.
BatchPage batch_page(const Session& session, const Batch* batch);

/// "the step is finite without it"; "" for a sample that is not to blame.
const char* blamed_words(bool blamed);

/// All finite values of a tensor or of a sample of it: "-3.1 to 4.2", "7", "none is finite", "-" for nothing.
std::string range_text(const Extremes& extremes);

}  // namespace nanquest::viewer
