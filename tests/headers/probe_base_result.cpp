#include "probe/base/result.h"

using nanquest::Result;
using nanquest::Status;

struct Reader {
  static Result<Reader> open(const std::string& path);
};
void use(Reader& reader);
Status read(const std::string& path);

Status read(const std::string& path) {
#include "examples/probe_base_result.inc"
  return {};
}
