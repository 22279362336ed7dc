#include <sstream>

#include "viewer/model/session.h"
#include "viewer/panels/records.h"

namespace nanquest::viewer {

Result<std::string> tensor_csv(Session& session) {
  const TensorDetail* detail = session.tensor_detail();
  if (detail == nullptr)
    return Error{session.tensor_error().empty() ? ErrorCode::usage : ErrorCode::bad_file,
                 session.tensor_error().empty() ? "no stored tensor is selected" : session.tensor_error(),
                 ""};
  std::ostringstream out;
  out << "tensor,exponent,count\n";
  const ScanResult& s = detail->scan;
  const auto line = [&](const std::string& bin, std::uint64_t count) {
    record(out, detail->tensor.path, bin, std::to_string(count));
  };
  line("zero", s.zero);
  for (int i = 0; i < kHistogramBins; ++i)
    if (const std::uint64_t n = detail->histogram[static_cast<std::size_t>(i)])
      line(std::to_string(kHistogramMinExponent + i), n);
  line("nan", s.nan);
  line("+inf", s.pos_inf);
  line("-inf", s.neg_inf);
  return out.str();
}

}  // namespace nanquest::viewer
