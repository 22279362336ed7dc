/// redact: a snapshot that may be given away: what is private in it is removed or scrambled.
///
///     Redactor redactor(file, doc, options);
///     if (Status written = redactor.write("shared.h5"); !written) …
///
/// The new file is written from nothing, table by table, and contains nothing of what is removed. `stays`
/// lists what remains.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "probe/snapshot/reader.h"
#include "probe/snapshot/sharing.h"
#include "replay/share/copy.h"

namespace nanquest {

/// What can be taken out of a snapshot.
enum class Private : std::uint8_t {
  texts,     ///< of the samples, and the integers that they were made into
  samples,   ///< everything that came with the batch, the ids of samples, and the batch of the healthy step
  weights,   ///< parameters, buffers, optimizer states, old gradients
  paths,     ///< files and lines of the program; settings and variables that contain a path
  machine,   ///< host, time, processor, environment variables
  settings,  ///< of the run
  history,   ///< of the steps before
  names,     ///< of modules, their types, weights, own operators and functions; settings that contain one
};

/// All of them, with their names for users ("texts", …), in this order.
const std::vector<std::pair<Private, std::string>>& private_things();

struct RedactOptions {
  std::set<Private> what;
  bool drop = false;  ///< values are removed; otherwise others take their place (scramble.h)
};

class Redactor {
 public:
  /// `doc`: the tables with the statistics and the culprit that replay found (they can't be found again
  /// later). Both arguments are copied or used only until `write` returns.
  Redactor(const SnapshotReader& file, const SnapshotDoc& doc, RedactOptions options);

  /// The tables as they will be written, without a Sharing.
  SnapshotDoc& doc() { return doc_; }
  /// The module path of the original as the new file calls it.
  std::string module_name(const std::string& path);
  /// Graphs of compiled regions were removed: what is inside one can no longer be found.
  bool graphs_go() const { return graphs_go_; }
  /// One line each: what was removed, and what remains.
  std::vector<std::string> gone() const;
  std::vector<std::string> stays() const;
  /// True if values of the step were removed: then it does not come back as it was.
  bool values_go() const {
    return asked(Private::samples) || asked(Private::weights) || asked(Private::texts);
  }

  /// Writes the new file. `io` or `usage` if it can't be written; then there is none.
  Status write(const std::string& out) const;

 private:
  /// A stored tensor that is replaced: the type of its bytes as the step reads them, and how many different
  /// numbers may be in it.
  struct Content {
    DType dtype = DType::uint8;
    std::vector<std::int64_t> shape;  ///< empty: as it is stored
    std::int64_t vocabulary = 0;
  };

  bool asked(Private thing) const { return options_.what.count(thing) != 0; }
  bool goes(SlotOrigin origin, DType dtype) const;
  void find_contents(const SnapshotDoc& original);
  void find_shapes(const SnapshotDoc& original);
  void find_vocabularies(const SnapshotDoc& original);
  void drop_contents();
  void clear_statistics();
  void clear_words();
  void clear_texts_of_arguments();
  void rename_all();

  const SnapshotReader& file_;
  SnapshotDoc doc_;
  RedactOptions options_;
  CopiedPaths paths_;
  bool graphs_go_ = false;                    ///< of compiled regions
  std::map<std::string, Content> contents_;   ///< what is removed, by its old path
  std::map<std::string, std::string> words_;  ///< parts of names, and their new names
};

}  // namespace nanquest
