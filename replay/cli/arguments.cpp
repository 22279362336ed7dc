#include "replay/cli/arguments.h"

#include <dlfcn.h>

#include <cstdlib>
#include <utility>

#include "probe/snapshot/reference.h"

namespace nanquest::cli {
namespace {

std::string is_cause(const std::string& text) {
  return nanquest::from_word<nanquest::Label>(text) ? "" : "\"" + text + "\" is not a cause";
}

}  // namespace

/// Readers of snapshots look there, also in child processes.
void add_model(CLI::App& app) {
  app.add_option_function<std::string>(
         "--model", [](const std::string& path) { ::setenv(nanquest::kModelVariable, path.c_str(), 1); },
         "Where the model's folder lies now, for a snapshot that refers to its files for frozen weights")
      ->check(CLI::ExistingPath)
      ->type_name("DIR");
}

/// Operators that are not LibTorch's own are run again once they are defined here; otherwise they get their
/// recorded results.
void add_load(CLI::App& app) {
  app.add_option_function<std::vector<std::string>>(
         "--load",
         [](const std::vector<std::string>& libraries) {
           for (const std::string& path : libraries)
             if (!dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
               throw CLI::ValidationError("--load",
                                          std::string(dlerror()) +
                                              " (give a library of operators, TORCH_LIBRARY, that was "
                                              "built for this LibTorch)");
         },
         "A library of operators that the program had loaded, so that they run again; repeatable (those "
         "written in Python: nanquest replay --import MODULE)")
      ->check(CLI::ExistingFile)
      ->allow_extra_args(false)
      ->type_name("LIBRARY");
}

void add_common(CLI::App& app, Common& common, bool required) {
  auto* snapshot =
      app.add_option("snapshot", common.snapshot, "Snapshot file (step-*.h5)")->type_name("SNAPSHOT");
  if (required) snapshot->required();
  app.add_flag("--json", common.json, "Print the result as JSON");
  app.add_flag("-q,--quiet", common.quiet, "No progress on stderr");
  add_model(app);
  add_load(app);
}

void add_device(CLI::App& app, Common& common) {
  app.add_option(
         "--device", common.device,
         "Where the step runs as recorded: cpu, or the device that it was recorded on, which is the default "
         "if it is here; what is tried runs on the CPU")
      ->type_name("DEVICE");
}

CLI::App* subcommand(CLI::App& app, Arguments& a, const char* name, const char* about,
                     std::function<int()> action) {
  CLI::App* sub = app.add_subcommand(name, about);
  sub->callback([&a, action = std::move(action)] { a.action = action; });
  return sub;
}

void add_diagnose_flags(CLI::App& app, Arguments& a) {
  app.add_flag("--no-files", a.diagnose.no_files, "Write nothing beside the snapshot");
  app.add_flag("--no-fixes", a.diagnose.no_fixes, "Don't try fixes");
  app.add_flag("--full", a.diagnose.full, "Print all evidence and everything that was tried");
  app.add_flag("--brief", a.diagnose.brief, "Three lines: what, why, what to do")->excludes("--full");
  app.add_option(
         "--patch", a.diagnose.patch,
         "Write the fix that was tried as a patch of the program (patch -p0 < FILE); nothing is applied")
      ->type_name("FILE");
  app.add_option("--without", a.diagnose.without,
                 "Don't ask this cause (LOG_ZERO): what is said where the right cause is not known")
      ->check(is_cause)
      ->type_name("CAUSE");
  app.add_option(
         "--budget", a.diagnose.budget,
         "Seconds for all that is tried (default: 20 times the step, at least 30); Ctrl-C ends it too "
         "and prints what is known")
      ->check(CLI::PositiveNumber)
      ->type_name("SECONDS");
}

}  // namespace nanquest::cli
