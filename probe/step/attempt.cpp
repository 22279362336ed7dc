#include "probe/step/attempt.h"

#include <c10/util/Exception.h>

#include <exception>

#include "probe/step/one_line.h"

namespace nanquest {

Facts attempt(const char* doing, const std::function<void()>& work) {
  try {
    work();
    return {};
  } catch (const c10::Error& e) {
    return {{Fact::off, doing, one_line(e.what_without_backtrace())}};
  } catch (const std::exception& e) {
    return {{Fact::off, doing, one_line(e.what())}};
  } catch (...) {
    return {{Fact::off, doing}};
  }
}

}  // namespace nanquest
