// StepTables: what a step's program ran after the update leads to the next step.
#include <exception>
#include <utility>

#include "probe/record/lead.h"
#include "probe/record/tables.h"

namespace nanquest {

void StepTables::lead_to(StepTables& next) {
  if (step_.updated_at > step_.ops.size()) return;  // where its update ended is not known
  symbolise_all();
  std::size_t first = recording.doc.ops.size();
  // Bytes that the host wrote come before the op that reads them.
  if (step_.updated_at < rows_.size())
    first = step_.updated_at > 0 ? static_cast<std::size_t>(rows_[step_.updated_at]) : 0;
  record::LeadSource source{recording, OpId{first}, next.step_.at_once, {}, {}, {}};
  for (std::uint32_t i = 0; i < step_.slots.size(); ++i) {
    const record::SlotRecord& memory = step_.slots[i];
    const c10::StorageImpl* const storage = memory.storage._unsafe_get_target();
    const std::uint32_t there = storage ? next.step_.slots.find(storage) : record::SlotIndex::kMissing;
    source.now.push_back(there == record::SlotIndex::kMissing ? SlotId{} : SlotId{there});
    bool trusted = true;
    const bool known = memory.produced || first_values(step_, i, trusted).defined();
    source.lost.push_back(!known || !trusted || memory.unread);
    source.changed.push_back(memory.written_late || memory.put_back || memory.changed_unseen ||
                             memory.forgotten);
  }
  // Slots that only tables know.
  source.now.resize(recording.doc.slots.size());
  source.lost.resize(recording.doc.slots.size(), true);
  source.changed.resize(recording.doc.slots.size(), true);
  try {
    Recording joined = next.recording;
    (void)record::add_lead(joined, source);
    next.recording = std::move(joined);
  } catch (const std::exception&) {  // the step alone is as good as it was
  }
}

}  // namespace nanquest
