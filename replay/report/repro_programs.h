/// repro_programs: the parts of the two programs that are the same for every op. Private to replay/report.
#pragma once

namespace nanquest {

/// Python: what comes before and after `call` and the constants that repro.cpp writes.
extern const char* const kPythonHead;
extern const char* const kPythonTail;

/// C++: the same.
extern const char* const kCppHead;
extern const char* const kCppTail;

}  // namespace nanquest
