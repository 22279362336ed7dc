/// Tape: an unbroken record of many steps, made of the records that the recorder makes anyway.
///
///     tape.begin();                    // an anchor: from here on nothing is missing
///     tape.read(tensor, slot);         // a storage is used: what the tape has not seen is copied, once
///     tape.append(step);               // a stretch of ops is over: a step, or what ran between two
///     auto whole = tape.whole(&now);   // all of it as one long step, for StepTables
///
/// Storages keep their identity from stretch to stretch: by their address, which a weak reference keeps from
/// being reused. What the recorded ops left in a storage is not stored. Everything else is copied when it is
/// first read (weights, moments and buffers after an anchor; a batch in every step; what the host wrote). It
/// is never held by reference, because a loader's shared memory must not be pinned. An anchor is the moment
/// from which on everything counts as unknown. There are up to two anchors, and the steps since the older one
/// are available; values that were not written since the older one read them are shared by both.
///
/// Whatever can't be run again from its record cuts the tape: nothing before the cut can be used.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "probe/record/step.h"
#include "probe/record/tape_values.h"

namespace nanquest::record {

struct TapeOptions {
  int steps = 0;       ///< at least this many steps are available in normal operation, up to twice as many;
                       ///< 0: no tape
  TapeRoom room = {};  ///< for values; records count towards the host's share
  int futile = 3;      ///< after this many cuts in a row, each before so many steps were recorded, there is
                       ///< no tape any more
};

class Tape {
 public:
  explicit Tape(TapeOptions options) : options_(std::move(options)) {}

  /// A step is about to begin: sets the first anchor, or another one if it is time.
  void begin();
  /// Whether ops are recorded on it.
  bool running() const { return !anchors_.empty(); }
  /// Whether it will start again after a cut.
  bool gave_up() const { return off_; }
  /// Why it was last cut; "" if it never was.
  const std::string& why_cut() const { return why_; }
  /// The same, once each time it is worth telling the user; otherwise "".
  std::string complaint();

  /// A stretch of ops uses a storage for the first time; `slot` is its record. Its content is copied if
  /// neither anchor's record determines it. If it was written without an op since the tape last saw it, it
  /// counts as another storage from here on. Throws std::bad_alloc.
  void read(const at::Tensor& tensor, const SlotRecord& slot);
  /// An op between two steps that reads no tensor (full, zeros) made this one. Hosts often fill such memory
  /// without an op (a batch that is padded first), so its bytes are compared when it is read.
  void made(const at::Tensor& tensor);
  /// The stretch is over; its records are kept.
  void append(const Step& step);
  /// Nothing on the tape can be used any more. `why` continues the sentence "the tape was cut: ".
  /// `every_step`: the same may happen in every step, so after `futile` such cuts there is no tape any more.
  void cut(std::string why, bool every_step = true);

  /// Steps that passed their gate since the older anchor.
  int steps() const;
  /// Bytes held.
  std::uint64_t memory() const { return values_ ? values_->held() : 0; }

  /// Everything since the older anchor as one step; `now` (may be null) is the stretch that has not been
  /// appended yet. Its values are the tape's own memory: valid until the tape goes on. Null if there is no
  /// tape.
  std::unique_ptr<Step> whole(const Step* now);

 private:
  /// What a stretch knew of a storage.
  struct Met {
    std::uint32_t id;  ///< number of the storage for as long as the tape runs
    std::uint64_t bytes, first_bytes;
    at::ScalarType type;
    c10::Device device;
  };
  struct Stretch {
    std::vector<OpRecord> ops;
    std::vector<std::uint64_t> words;
    std::vector<Met> slots;
    std::vector<HostWrite> host_writes;
    std::vector<at::Tensor> host_bytes;  ///< the bytes of those on a CPU
    std::vector<GeneratorState> generators;
    std::vector<HostRead> reads;
    std::vector<TapeMark> marks;
    std::uint64_t bytes = 0;
    int gates = 0;
  };
  /// A storage that was alive when last seen.
  struct Known {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    std::uint32_t id = 0;
    std::int64_t last = 0;  ///< the stretch that used it last
    bool initialised = true;
    bool foreign = false;  ///< may be written without an op: its bytes had this hash
    std::uint64_t hash = 0;
    bool made = false;     ///< the hash is of what an op left there, to be compared with what is read
    TapeValue value = {};  ///< the copy that was made last …
    bool written = false;  ///< … and whether the storage was overwritten since
  };
  struct Anchor {
    std::int64_t begins = 0;  ///< index of its first stretch
    int gates = 0;
    std::unordered_map<std::uint32_t, TapeValue> values;
  };

  Stretch stretch_of(const Step& step);
  Known& known(const c10::StorageImpl* storage, const c10::weak_intrusive_ptr<c10::StorageImpl>& weak);
  void refuse();
  void drop_oldest();
  void prune();
  void recount();
  static void join(Step& whole, const Stretch& part, std::unordered_map<std::uint32_t, std::uint32_t>& slots);

  TapeOptions options_;
  std::deque<Stretch> stretches_;
  std::int64_t first_ = 0;  ///< number of the first of them
  std::deque<Anchor> anchors_;
  std::unordered_map<const c10::StorageImpl*, Known> known_;
  std::uint32_t next_id_ = 0;
  std::optional<TapeValues> values_;  ///< since the first anchor
  bool off_ = false, told_ = false;
  int futile_ = 0;
  std::string why_, complaint_;
};

}  // namespace nanquest::record
