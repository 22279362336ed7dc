#include "replay/share/minimal.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "probe/snapshot/sharing.h"
#include "replay/lab/lab.h"
#include "replay/share/select.h"

namespace nanquest {
namespace {

/// A candidate file: tables, values, and where the culprit's op is in it.
struct Candidate {
  Selected part;
  std::int64_t culprit = -1;
};

/// A part that may be left out; nothing if the file does not have it.
struct Step {
  std::string what;
  std::function<bool(SnapshotDoc&)> leave_out;
};

class Search {
 public:
  Search(const Replayer& replayer, const Judged& before, const MinimalOptions& options)
      : replayer_(replayer), before_(before), options_(options) {
    now_.part = {before.doc, named_paths(replayer.reader(), before.doc), {}};
    now_.culprit = before.verdict.culprit.index;
    found_.verdict = before.verdict;
  }

  Minimal run() {
    operations();
    for (const Step& step : steps()) {
      Candidate next = now_;
      if (step.leave_out(next.part.doc)) attempt(step.what, std::move(next));
    }
    found_.doc = now_.part.doc;
    found_.paths = std::move(now_.part.paths);
    return std::move(found_);
  }

 private:
  /// Diagnoses the candidate, and keeps it if the verdict is the same.
  bool attempt(const std::string& what, Candidate next) {
    if (found_.tries >= options_.most_tries || Lab::stopped()) return false;
    ++found_.tries;
    if (options_.progress) options_.progress("without " + what);
    std::set<std::string> used = region_graph_paths(next.part.doc);
    each_path(next.part.doc, [&](const std::string& path) { used.insert(path); });
    std::erase_if(next.part.paths, [&](const auto& entry) {
      return used.count(entry.second) == 0 && opaque_op(entry.second) == kNone;
    });
    std::string changed;
    std::map<std::string, at::Tensor> data;
    for (const auto& [path, target] : next.part.paths) {
      auto tensor = replayer_.tensor(path);
      if (!tensor) return false;
      data[target] = std::move(tensor).value();
    }
    auto replayer = Replayer::from_memory(next.part.doc, std::move(data));
    if (!replayer) {
      changed = replayer.error().text();
    } else {
      Judged judged = judge_step(*replayer, before_.verdict.snapshot, options_.seconds, {});
      changed = difference(before_.verdict, judged.verdict, next.culprit);
      if (changed.empty()) found_.verdict = std::move(judged.verdict);
    }
    if (!changed.empty()) {
      found_.needed.push_back(what + ": " + changed);
      return false;
    }
    found_.left_out.push_back(what);
    now_ = std::move(next);
    return true;
  }

  /// The fewest operations that are enough: those that the loss needs, those that one gradient needs too,
  /// those before the update, and in each case what they alone need.
  void operations() {
    const SnapshotDoc& doc = now_.part.doc;
    const TraceGraph graph(doc);
    std::vector<std::int32_t> always = doc.culprit.lineage;
    always.push_back(doc.culprit.op);
    always.push_back(static_cast<std::int32_t>(before_.verdict.culprit.index));
    for (const Blamed& blamed : before_.verdict.blame.set)
      always.push_back(static_cast<std::int32_t>(blamed.index));
    std::vector<std::vector<bool>> choices;
    const auto consider = [&](const std::vector<std::int32_t>& roots, const std::vector<std::int32_t>& ops) {
      std::vector<bool> keep = needed_for(graph, roots, ops);
      if (std::find(keep.begin(), keep.end(), false) != keep.end() &&
          std::find(choices.begin(), choices.end(), keep) == choices.end())
        choices.push_back(std::move(keep));
    };
    consider({doc.loss}, {doc.culprit.op, static_cast<std::int32_t>(before_.verdict.culprit.index)});
    consider({doc.loss}, always);
    for (const std::int32_t gradient : doc.gradients)
      if (gradient != kNone && graph.bad(TensorId{gradient})) {
        consider({doc.loss, gradient}, always);
        break;
      }
    std::vector<std::int32_t> roots = doc.gradients;
    roots.push_back(doc.loss);
    consider(roots, always);
    std::vector<bool> before_update(doc.ops.size());
    for (std::size_t i = 0; i < doc.ops.size(); ++i) before_update[i] = doc.ops[i].phase != Phase::optimizer;
    if (before_.verdict.phase != Phase::optimizer) choices.push_back(std::move(before_update));
    const auto size = [](const std::vector<bool>& keep) {
      return std::count(keep.begin(), keep.end(), true);
    };
    std::stable_sort(choices.begin(), choices.end(),
                     [&](const auto& a, const auto& b) { return size(a) < size(b); });
    for (const std::vector<bool>& keep : choices)
      if (only(keep)) return;
    // All ops are needed; what none of them uses is not.
    only(std::vector<bool>(doc.ops.size(), true));
  }

  bool only(const std::vector<bool>& keep) {
    const auto ops = static_cast<std::size_t>(std::count(keep.begin(), keep.end(), true));
    const auto named = [](const SnapshotDoc& doc) {
      return doc.parameters.size() + doc.buffers.size() + doc.optimizer.size() + doc.batch.size();
    };
    const std::size_t all = keep.size(), tensors = named(now_.part.doc);
    Candidate next{select_ops(now_.part.doc, keep, now_.part.paths), now_.culprit};
    if (next.culprit >= 0) next.culprit = next.part.new_op[static_cast<std::size_t>(next.culprit)];
    const std::size_t left = tensors - named(next.part.doc);
    std::string what;
    if (ops < all) what = std::to_string(all - ops) + " of " + std::to_string(all) + " operations";
    if (left > 0)
      what.append(what.empty() ? "" : " and ") +=
          std::to_string(left) + " of " + std::to_string(tensors) +
          " weights, states and batch tensors, which nothing that is left reads";
    return !what.empty() && attempt(what, std::move(next));
  }

  std::vector<Step> steps() const {
    const auto clear = [](auto& member) {
      const bool any = !member.empty();
      member.clear();
      return any;
    };
    std::vector<Step> all = {
        {"the history of the steps before",
         [=](SnapshotDoc& doc) { return clear(doc.history) | clear(doc.history_samples); }},
        {"the history of other layers",
         [module = before_.verdict.culprit.module](SnapshotDoc& doc) { return only_layer(doc, module); }}};
    for (const SeriesTable& table : before_.doc.history)
      all.push_back({"the history of " + table.name, [name = table.name](SnapshotDoc& doc) {
                       return std::erase_if(doc.history,
                                            [&](const SeriesTable& t) { return t.name == name; }) > 0;
                     }});
    all.push_back({"the batch of the healthy step",
                   [](SnapshotDoc& doc) { return std::exchange(doc.twin, Twin{}).step >= 0; }});
    all.push_back({"the texts of the samples", [=](SnapshotDoc& doc) { return clear(doc.sample_texts); }});
    all.push_back({"the settings of the run", [](SnapshotDoc& doc) {
                     return std::erase_if(doc.config,
                                          [](const auto& entry) { return !is_sharing_key(entry.first); }) > 0;
                   }});
    return all;
  }

  /// Of the series per layer, those of this module and of modules inside it; false if there are no others.
  static bool only_layer(SnapshotDoc& doc, const std::string& module) {
    bool any = false;
    for (SeriesTable& table : doc.history) {
      if (table.name == "scalars") continue;
      const std::size_t width = table.columns.size(), rows = table.rows();
      const auto stays = [&](const std::string& column) {
        return column == "step" || column == module || column.starts_with(module + ".");
      };
      SeriesTable part{table.name, {}, {}};
      for (const std::string& column : table.columns)
        if (stays(column)) part.columns.push_back(column);
      if (part.columns.size() == width) continue;
      for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t c = 0; c < width; ++c)
          if (stays(table.columns[c])) part.values.push_back(table.values[row * width + c]);
      table = std::move(part);
      any = true;
    }
    return any;
  }

  const Replayer& replayer_;
  const Judged& before_;
  const MinimalOptions& options_;
  Candidate now_;
  Minimal found_;
};

}  // namespace

Minimal find_minimal(const Replayer& replayer, const Judged& before, const MinimalOptions& options) {
  return Search(replayer, before, options).run();
}

}  // namespace nanquest
