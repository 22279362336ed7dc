/// FirstBad: since which step something has been NaN or Inf, and which operation wrote it.
///
///     FirstBad first;
///     first.note(38, {"parameter fc1.weight"}, [](const std::string&) { return "aten::add_"; });
///     first.of("parameter fc1.weight")->step;   // 38
///
/// Names are those of StateCheck. No torch.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace nanquest {

class FirstBad {
 public:
  struct Since {
    std::int64_t step = 0;  ///< after its update it was bad
    std::string op;         ///< the operation that wrote it; "" if that is not on record
  };

  /// `bad` is all that is bad after this step. `writer` is asked for those names that were not bad before.
  /// What is not bad any more (weights were loaded again) is forgotten.
  void note(std::int64_t step, const std::vector<std::string>& bad,
            const std::function<std::string(const std::string& name)>& writer);
  /// Null if it is not known to be bad.
  const Since* of(const std::string& name) const;

 private:
  std::map<std::string, Since> since_;
};

}  // namespace nanquest
