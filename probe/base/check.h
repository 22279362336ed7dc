/// NANQUEST_CHECK: invariants that are checked in every build.
///
///     NANQUEST_CHECK(row < rows.size(), "row of the op table");
///
/// A condition that fails is a fault of nanquest. It must switch off the probe and not affect the training,
/// so it throws CheckFailed with the condition and its place. Sessions catch it with their other exceptions,
/// switch themselves off and print its text once; functions that return a Result return `internal`. Do not
/// use it in a destructor or a `noexcept` function: there it would end the process. Bad input is not a case
/// for a check: return an Error.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace nanquest {

/// What a failed NANQUEST_CHECK throws: "check failed: row < rows.size() (row of the op table),
/// trace/graph.cpp:41".
class CheckFailed : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Throws CheckFailed with the last two parts of the path `file`.
[[noreturn, gnu::cold, gnu::noinline]] inline void check_failed(const char* condition, std::string_view what,
                                                                std::string_view file, int line) {
  std::size_t cut = file.rfind('/');
  if (cut != std::string_view::npos && cut > 0) cut = file.rfind('/', cut - 1);
  if (cut != std::string_view::npos) file.remove_prefix(cut + 1);
  throw CheckFailed(std::string("check failed: ")
                        .append(condition)
                        .append(" (")
                        .append(what)
                        .append("), ")
                        .append(file)
                        .append(":")
                        .append(std::to_string(line)));
}

}  // namespace nanquest

/// Throws nanquest::CheckFailed unless `condition` holds. `what` (any text, built only on failure) names the
/// thing.
#define NANQUEST_CHECK(condition, what) \
  ((condition) ? static_cast<void>(0) : ::nanquest::check_failed(#condition, (what), __FILE__, __LINE__))
