/// Result<T>: how every nanquest library reports failure.
///
/// Libraries never print, never abort and never throw across a public function into a training
/// thread; they return a Result. A program prints `error().text()` and exits with
/// `exit_code(error().code)`.
///
///     Result<Reader> reader = Reader::open(path);
///     if (!reader) return reader.error();
///     use(reader.value());
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "probe/base/check.h"

namespace nanquest {

/// The kind of a failure, coarse enough to choose an exit code.
enum class ErrorCode {
  usage,        ///< the caller asked for something that makes no sense (bad flag, bad config)
  bad_file,     ///< a file is missing, truncated, hostile, too new or not ours
  io,           ///< the operating system refused: full disk, no permission, read-only
  unsupported,  ///< well-formed, but this build or device can't do it
  internal,     ///< a fault of nanquest itself
};

/// Stable process exit codes.
enum class ExitCode : int {
  ok = 0,
  finding = 1,  ///< non-finite found, finished with skipped steps, or not everything could be checked
  usage = 2,
  bad_file = 3,
  non_finite = 4,     ///< aborted on a non-finite value
  state_corrupt = 5,  ///< state was corrupt and was rolled back
  internal = 70,
};

/// One failure: what happened and what to do about it.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;  ///< includes the name of the thing: "runs/x/series.r0.h5: not an HDF5 file"
  std::string hint;     ///< what the person can do about it; may be empty

  /// "message (hint)" on one line.
  std::string text() const { return hint.empty() ? message : message + " (" + hint + ")"; }
};

/// The exit code a program ends with after this kind of failure.
constexpr int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage:
    case ErrorCode::unsupported:
      return static_cast<int>(ExitCode::usage);
    case ErrorCode::bad_file:
    case ErrorCode::io:
      return static_cast<int>(ExitCode::bad_file);
    case ErrorCode::internal:
      break;
  }
  return static_cast<int>(ExitCode::internal);
}

/// A value or an Error. Move-only if T is.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit on purpose

  explicit operator bool() const { return value_.has_value(); }
  bool ok() const { return value_.has_value(); }
  /// The value. Calling it on a failure is a programming error (CheckFailed, with the failure's text).
  T& value() & { return *checked().value_; }
  const T& value() const& { return *checked().value_; }
  T&& value() && { return *std::move(checked().value_); }
  T* operator->() { return &*checked().value_; }
  const T* operator->() const { return &*checked().value_; }
  T& operator*() & { return *checked().value_; }
  const T& operator*() const& { return *checked().value_; }
  T&& operator*() && { return *std::move(checked().value_); }
  const Error& error() const { return error_; }

 private:
  Result& checked() {
    NANQUEST_CHECK(ok(), error_.text());
    return *this;
  }
  const Result& checked() const {
    NANQUEST_CHECK(ok(), error_.text());
    return *this;
  }

  std::optional<T> value_;
  Error error_;
};

/// Success, or an Error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT: implicit on purpose

  explicit operator bool() const { return !error_.has_value(); }
  bool ok() const { return !error_.has_value(); }
  const Error& error() const {
    NANQUEST_CHECK(!ok(), "a success has no error");
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace nanquest
