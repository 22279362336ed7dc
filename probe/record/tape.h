/// Tape: an unbroken record of many steps, out of the records that the recorder makes anyway.
///
///     tape.begin();                    // an anchor: from here on nothing is missing
///     tape.read(tensor, slot);         // a storage is met: what the tape has not seen is copied, once
///     tape.append(step);               // a stretch of ops is over: a step, or what ran between two
///     auto whole = tape.whole(&now);   // all of it as one long step, for StepTables
///
/// Storages keep their identity from stretch to stretch: by their address, which a weak reference keeps from
/// becoming another's. What the tape itself left in a storage is not stored; everything else is copied when
/// it is read first (weights, moments and buffers after an anchor; a batch in every step; what the host
/// wrote), never held: a loader's shared memory must not be pinned. So an anchor is the moment from which on
/// everything that is met counts as unknown. There are up to two of them, the steps since the older one are
/// at hand; what nobody has written since the older one read it is shared by both.
///
/// Whatever can't be run again from its record cuts the tape: nothing before the cut is of use.
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
  int steps = 0;       ///< so many at least are at hand when all is well, up to twice as many; 0: no tape
  TapeRoom room = {};  ///< for values; rows are in the host's share of it
  int futile = 3;      ///< cuts in a row before so many steps were on it: then there is none any more
};

class Tape {
 public:
  explicit Tape(TapeOptions options) : options_(std::move(options)) {}

  /// A step is about to begin: the first anchor, or another one if it is time.
  void begin();
  /// Whether ops go onto it.
  bool running() const { return !anchors_.empty(); }
  /// Whether there will be one again after a cut.
  bool gave_up() const { return off_; }
  /// Why it was cut last, "" if it never was.
  const std::string& why_cut() const { return why_; }
  /// The same, once each time that it is worth a word to the user, otherwise "".
  std::string complaint();

  /// A stretch of ops meets a storage for the first time, of which `slot` is its record: what is in it is
  /// copied if no anchor's record tells it. If somebody wrote to it behind the dispatcher since the tape saw
  /// it last, it counts as another storage from here on. Throws std::bad_alloc.
  void read(const at::Tensor& tensor, const SlotRecord& slot);
  /// An op between two steps that reads no tensor made this one (full, zeros): hosts like to fill such memory
  /// without an op (a batch that is padded first), so its bytes are compared when it is read.
  void made(const at::Tensor& tensor);
  /// The stretch is over, and its records stay here.
  void append(const Step& step);
  /// Nothing of what is on it is of use any more: `why`, in words that go on from "the tape was cut: ".
  /// `every_step`: each step may well do it again, so that after `futile` such cuts there is no tape any
  /// more.
  void cut(std::string why, bool every_step = true);

  /// Steps whose gate was passed since the older anchor.
  int steps() const;
  /// Bytes held.
  std::uint64_t memory() const { return values_ ? values_->held() : 0; }

  /// All since the older anchor as one step, `now` (may be null) being the stretch that has not been appended
  /// yet. Its values are the tape's own memory: right until the tape goes on. Null if there is no tape.
  std::unique_ptr<Step> whole(const Step* now);

 private:
  /// What a stretch knew of a storage.
  struct Met {
    std::uint32_t id;  ///< the storage's, for as long as the tape runs
    std::uint64_t bytes, first_bytes;
    at::ScalarType type;
    c10::Device device;
  };
  struct Stretch {
    std::vector<OpRecord> ops;
    std::vector<std::uint64_t> words;
    std::vector<Met> slots;
    std::vector<HostWrite> host_writes;
    std::vector<at::Tensor> host_bytes;  ///< of those on a CPU
    std::vector<GeneratorState> generators;
    std::vector<HostRead> reads;
    std::vector<TapeMark> marks;
    std::uint64_t bytes = 0;
    int gates = 0;
  };
  /// A storage that was alive when it was seen last.
  struct Known {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    std::uint32_t id = 0;
    std::int64_t last = 0;  ///< stretch that touched it last
    bool initialised = true;
    bool foreign = false;  ///< others than LibTorch may write to it: its bytes had this hash
    std::uint64_t hash = 0;
    bool made = false;     ///< the hash is of what an op left there, to be held against what is read
    TapeValue value;       ///< the copy that was made last …
    bool written = false;  ///< … and whether it was overwritten since
  };
  struct Anchor {
    std::int64_t begins = 0;  ///< first stretch
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
  std::optional<TapeValues> values_;  ///< from the first anchor on
  bool off_ = false, told_ = false;
  int futile_ = 0;
  std::string why_, complaint_;
};

}  // namespace nanquest::record
