#include <sstream>

#include "viewer/model/batch_page.h"
#include "viewer/model/numbers.h"
#include "viewer/panels/records.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {

/// One record per tensor, then one for each sample and tensor with samples; a sample without such a tensor
/// has one record.
Result<std::string> batch_csv(Session& session) {
  std::ostringstream out;
  out << "sample,id,verdict,tensor,dtype,shape,by,low,high,nan,pos_inf,neg_inf,values,text\n";
  const Batch* batch = session.batch();
  const BatchPage page = batch_page(session, batch);
  const auto line = [&](const SampleWords& sample, const BatchTensor* t, const Extremes& e,
                        const std::string& values) {
    const bool known = t != nullptr && t->error.empty();
    const auto number = [&](double value) { return known && e.has_finite() ? exact_number(value) : ""; };
    const auto count = [&](std::uint64_t n) { return known ? std::to_string(n) : ""; };
    record(out, sample.number < 0 ? "" : std::to_string(sample.number), sample.id,
           std::string(blamed_words(sample.blamed)), t ? t->tensor.name : "",
           t ? std::string(dtype_name(t->tensor.dtype)) : "", t ? shape_text(t->tensor.shape) : "",
           t == nullptr ? "" : std::string(t->by_sample ? "sample" : "whole"), number(e.min), number(e.max),
           count(e.nan), count(e.pos_inf), count(e.neg_inf), values, sample.text);
  };
  SampleWords none;
  none.number = -1;
  const std::vector<BatchTensor> tensors = batch == nullptr ? std::vector<BatchTensor>() : batch->tensors;
  for (const BatchTensor& t : tensors) line(none, &t, t.all, t.error);
  for (const SampleWords& sample : page.samples) {
    const auto at = static_cast<std::size_t>(sample.number);
    bool told = false;
    for (const BatchTensor& t : tensors) {
      if (at >= t.samples.size()) continue;
      const std::uint64_t row = element_count(t.tensor.shape) / t.samples.size();
      line(sample, &t, t.samples[at],
           at < t.values.size() ? values_text(t.values[at], kBatchValues, row) : "");
      told = true;
    }
    if (!told) line(sample, nullptr, {}, "");
  }
  return out.str();
}

}  // namespace nanquest::viewer
