#include "trainer/loop/failure.h"

#include <c10/util/Exception.h>

#include <new>
#include <string_view>

namespace nanquest::trainer {
namespace {

bool out_of_memory(const std::exception& e) {
  return dynamic_cast<const std::bad_alloc*>(&e) != nullptr ||
         dynamic_cast<const c10::OutOfMemoryError*>(&e) != nullptr ||
         // How the CPU's allocator says it.
         std::string_view(e.what()).find("can't allocate memory") != std::string_view::npos;
}

}  // namespace

std::string first_line(const std::exception& e) {
  const auto* torch = dynamic_cast<const c10::Error*>(&e);
  const std::string text = torch != nullptr ? torch->what_without_backtrace() : e.what();
  return text.substr(0, text.find('\n'));
}

Error failure(const std::exception& e, std::int64_t step) {
  const std::string at = "step " + std::to_string(step) + ": ", text = first_line(e);
  if (out_of_memory(e))
    return {ErrorCode::internal, at + "out of memory: " + text,
            "--accumulation computes a batch in smaller parts; with --resume as --set accumulation=N"};
  const bool torch = dynamic_cast<const c10::Error*>(&e) != nullptr;
  return {ErrorCode::internal, at + (torch ? "LibTorch refused an operation: " : "") + text, ""};
}

}  // namespace nanquest::trainer
