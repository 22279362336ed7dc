// nanquest-replay embed SNAPSHOT -o OUT: a copy that needs no other file.
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "replay/cli/commands.h"
#include "replay/share/copy.h"

namespace nanquest::cli {

int embed_command(const Common& common, const EmbedArguments& arguments) {
  if (const Status free = free_place(arguments.output); !free) return fail(free.error());
  const auto reader = SnapshotReader::open(common.snapshot);
  if (!reader) return fail(reader.error());
  std::uint64_t embedded = 0;
  for (const FileReference& reference : reader->references()) embedded += bytes_of(reference);
  Progressor progress(common.quiet);
  progress.say("copying " + size_text(embedded) + " of other files into " + arguments.output);
  const Status written = write_embedded(*reader, arguments.output);
  progress.clear();
  if (!written) return fail(written.error());
  const std::uint64_t bytes = std::filesystem::file_size(arguments.output),
                      was = std::filesystem::file_size(common.snapshot);
  if (common.json) {
    const nlohmann::ordered_json j = {
        {"output", arguments.output}, {"bytes", bytes}, {"bytes_before", was}, {"embedded", embedded}};
    std::printf("%s\n", j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  } else {
    std::printf("%s: %s, %s of them from other files; the original has %s\n", arguments.output.c_str(),
                size_text(bytes).c_str(), size_text(embedded).c_str(), size_text(was).c_str());
  }
  return static_cast<int>(ExitCode::ok);
}

}  // namespace nanquest::cli
