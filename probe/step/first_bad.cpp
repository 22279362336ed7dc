#include "probe/step/first_bad.h"

#include <utility>

namespace nanquest {

void FirstBad::note(std::int64_t step, const std::vector<std::string>& bad,
                    const std::function<std::string(const std::string& name)>& writer) {
  std::map<std::string, Since> now;
  for (const std::string& name : bad) {
    const auto known = since_.find(name);
    now[name] = known == since_.end() ? Since{step, writer(name)} : std::move(known->second);
  }
  since_ = std::move(now);
}

const FirstBad::Since* FirstBad::of(const std::string& name) const {
  const auto found = since_.find(name);
  return found == since_.end() ? nullptr : &found->second;
}

}  // namespace nanquest
