#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "replay/cli/commands.h"
#include "replay/trace/detect.h"

namespace nanquest::cli {
namespace {

nlohmann::ordered_json anomaly_json(const Anomaly& a) {
  if (a.op == kNone) return nullptr;
  return {{"op", a.op},
          {"name", a.name},
          {"kind", a.kind},
          {"module", a.module},
          {"node", a.node},
          {"forward", a.forward_name},
          {"count", a.count},
          {"inputs_finite", a.inputs_finite},
          {"came_from", a.came_from},
          {"outside", a.outside}};
}

}  // namespace

int run_command(const Common& common, const RunArguments& arguments) {
  auto replayer = open_snapshot(common);
  if (!replayer) return fail(replayer.error());
  auto options = run_options(arguments, replayer->doc());
  if (!options) return fail(options.error());
  const auto device = device_for(common, replayer->doc());
  if (!device) return fail(device.error());
  options->device = *device;
  const RunResult run = replayer->run(*options);
  const Detection found = detect(replayer->doc(), run);
  const int code = static_cast<int>(run.finite() ? ExitCode::ok : ExitCode::finding);
  if (common.json) {
    nlohmann::ordered_json births = nlohmann::ordered_json::array(), notes = births;
    for (const Anomaly& a : found.births) births.push_back(anomaly_json(a));
    for (std::size_t i = 0; i < run.ops.size(); ++i)
      if (!run.ops[i].error.empty()) notes.push_back({{"op", i}, {"error", run.ops[i].error}});
    const nlohmann::ordered_json j = {{"precision", arguments.precision},
                                      {"modules", arguments.modules},
                                      {"local", arguments.local},
                                      {"finite", run.finite()},
                                      {"loss", run.loss_finite ? nlohmann::ordered_json(run.loss) : nullptr},
                                      {"loss_finite", run.loss_finite},
                                      {"gradients_finite", run.gradients_finite},
                                      {"ops", run.ops.size()},
                                      {"failed", run.failed},
                                      {"kept_format", run.kept_format},
                                      {"substituted", run.substituted},
                                      {"outputs_checked", found.outputs_checked},
                                      {"first_inf", anomaly_json(found.first_inf)},
                                      {"first_nan", anomaly_json(found.first_nan)},
                                      {"births", births},
                                      {"errors", notes},
                                      {"seconds", run.seconds}};
    std::printf("%s\n", j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
    return code;
  }
  std::string what = arguments.precision;
  for (const std::string& module : arguments.modules) what += ", " + module;
  const std::string kept =
      run.kept_format > 0 ? ", " + std::to_string(run.kept_format) + " in their own format" : "";
  std::printf(
      "%s%s: %s; loss %s, gradients %s (%zu ops, %d failed%s, %.2f s)\n", what.c_str(),
      arguments.local ? ", each op on its recorded inputs" : "", run.finite() ? "finite" : "NOT finite",
      run.loss_finite ? short_number(run.loss).c_str() : "not finite",
      run.gradients_finite ? "finite" : "not finite", run.ops.size(), run.failed, kept.c_str(), run.seconds);
  for (const Anomaly* a : {&found.first_inf, &found.first_nan})
    if (a->op != kNone && (a == &found.first_inf || a->op != found.first_inf.op))
      std::printf("%s\n", describe(replayer->doc(), *a).c_str());
  int shown = 0;
  for (std::size_t i = 0; i < run.ops.size() && shown < 5; ++i)
    if (!run.ops[i].error.empty()) {
      std::printf("op %zu, %s: %s\n", i, replayer->doc().ops[i].name.c_str(),
                  run.ops[i].error.substr(0, 200).c_str());
      ++shown;
    }
  return code;
}

}  // namespace nanquest::cli
