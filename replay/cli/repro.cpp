#include "replay/report/repro.h"

#include <cstdio>
#include <filesystem>

#include "replay/cli/commands.h"

namespace nanquest::cli {

int repro_command(const Common& common, const ReproArguments& arguments) {
  auto replayer = open_snapshot(common);
  if (!replayer) return fail(replayer.error());
  const Case c = make_case(*replayer);
  const std::filesystem::path stem = stem_of(common.snapshot) + ".repro";
  const auto repro = make_repro(c, arguments.op >= 0 ? arguments.op : kNone, stem.filename().string());
  if (!repro) return fail(repro.error());
  const std::string directory =
      arguments.directory.empty() ? stem.parent_path().string() : arguments.directory;
  const auto paths = write_repro(*repro, directory);
  if (!paths) return fail(paths.error());
  if (!common.quiet)
    std::fprintf(stderr, "%s, was recorded with %s; each of these programs runs it again:\n",
                 repro->title.c_str(), repro->shows.c_str());
  for (const std::string& path : *paths) std::printf("%s\n", path.c_str());
  return static_cast<int>(ExitCode::ok);
}

}  // namespace nanquest::cli
