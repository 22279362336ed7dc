/// NANQUEST_CHECK: what must never be, looked at in every build.
///
///     NANQUEST_CHECK(row < rows.size(), "row of the op table");
///
/// A condition that fails is a fault of nanquest. It must cost a training its probe and nothing else, so it
/// throws CheckFailed, which says what was wrong and where: sessions catch it where they catch everything of
/// their own, switch themselves off and say its text once; functions that return a Result give `internal`.
/// Never in a destructor or in what is `noexcept`: there it would end the process. Bad input is no matter for
/// a check: that is an Error.
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

/// Throws CheckFailed; of `file` the last two parts of the path are told.
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
