/// A record of several steps as the tape of a snapshot: where each of them ends, and what the host was told.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "probe/record/tables.h"

namespace nanquest {

/// The finished tables of a step that consists of several (Recorder::taped), with the extra data of a tape;
/// their values lie under kTapePrefix. `rows`: per op of the step, its row. They refer to the step's memory.
std::shared_ptr<TapeRecording> tape_recording(Recording recording, const record::Step& whole,
                                              const std::vector<std::int32_t>& rows);

/// The recorder's tape up to now; `tables` makes the tables of its one long step, up to StepTables::finish.
/// Null if there is no tape or it can't be assembled. `complaint` then says why, as one sentence: it goes
/// into the file of the bad step, which is worth more than the steps before it. `held` keeps the memory of
/// its values. With `embed_weights` no value is left in another file. Never throws.
std::shared_ptr<TapeRecording> tape_so_far(Recorder& recorder, std::unique_ptr<record::Step>& held,
                                           const std::function<StepTables(record::Step&)>& tables,
                                           bool embed_weights, std::string& complaint);

}  // namespace nanquest
