#include "probe/trace/spike_note.h"

#include <gtest/gtest.h>

namespace nanquest {
namespace {

SnapshotDoc noted() {
  SnapshotDoc doc;
  doc.gate = Gate::spike;
  note_spike(doc, {.diverged = true,
                   .since = 340,
                   .loss = SpikeFigure{7.9, true, 1.9, 2.1, 2.3, 3.2, 4.1},
                   .norm = SpikeFigure{0.1 + 0.2, false, 0.1, 0.2, 0.4, 1, 2}});
  return doc;
}

TEST(SpikeNote, ComesBackAsItWasWritten) {
  const auto note = spike_note(noted());
  ASSERT_TRUE(note);
  EXPECT_TRUE(note->diverged);
  EXPECT_EQ(note->since, 340);
  EXPECT_TRUE(note->loss->out);
  EXPECT_FALSE(note->norm->out);
  EXPECT_EQ(note->norm->value, 0.1 + 0.2);
  EXPECT_EQ(note->loss->back, 3.2);
  EXPECT_EQ(note->loss->edge, 4.1);
  for (const auto& [key, value] : noted().environment) EXPECT_TRUE(tells_of_spike(key)) << key;
}

TEST(SpikeNote, WhatIsNoNoteIsNone) {
  EXPECT_FALSE(spike_note({}));
  for (const char* text :
       {"", "1 7.9 1.9", "1 7.9 1.9 2.1 2.3 5 4.1", "1 nan 1 1 1 1 1", "0 7.9 1.9 2.1 2.3 3.2 4.1"}) {
    SnapshotDoc doc = noted();
    doc.environment["spike.loss"] = text;  // the norm alone was not out
    EXPECT_FALSE(spike_note(doc)) << text;
  }
}

TEST(SpikeNote, SaysWhyTheStepIsOnRecord) {
  EXPECT_EQ(on_record_text(noted()),
            "the loss was 7.9, usually 1.9 to 2.3; it left its range at step 340 and has not come back");
  SnapshotDoc older;
  older.gate = Gate::spike;
  EXPECT_EQ(on_record_text(older), "its loss or gradient norm was far out of the run's usual range");
  older.gate = Gate::non_finite;
  EXPECT_EQ(on_record_text(older), "");
}

}  // namespace
}  // namespace nanquest
