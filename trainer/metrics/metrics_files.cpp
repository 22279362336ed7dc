#include <filesystem>

#include "trainer/metrics/metrics_log.h"

namespace nanquest::trainer {

Status MetricsFiles::open(const std::string& run_dir, bool csv, std::int64_t first,
                          const std::vector<std::string>& columns) {
  for (const auto& [name, form] :
       {std::pair{kMetricsJsonl, MetricsLog::Form::jsonl}, std::pair{kMetricsCsv, MetricsLog::Form::csv}}) {
    if (form == MetricsLog::Form::csv && !csv) continue;
    const std::string path = (std::filesystem::path(run_dir) / name).string();
    Result<MetricsLog> log = MetricsLog::open(path, form, first, columns);
    if (!log) return log.error();
    if (log->cut_lines() > 0)
      say_(path + ": " + std::to_string(log->cut_lines()) + " lines cut off: the run goes on from step " +
           std::to_string(first));
    logs_.push_back(std::move(*log));
  }
  return {};
}

void MetricsFiles::write(std::int64_t step, const Numbers& numbers) {
  each([&](MetricsLog& log) { return log.write(step, numbers); });
}

void MetricsFiles::cut(std::int64_t first) {
  each([&](MetricsLog& log) { return log.cut(first); });
}

void MetricsFiles::each(const std::function<Status(MetricsLog&)>& work) {
  std::erase_if(logs_, [&](MetricsLog& log) {
    const Status s = work(log);
    if (!s) say_(s.error().text() + "; no more metrics are written there");
    return !s.ok();
  });
}

}  // namespace nanquest::trainer
