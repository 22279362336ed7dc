// What --set takes: one rule for the trainer, rewind and rehearsals.
#include "replay/verdict/setting_change.h"

#include <gtest/gtest.h>

#include "replay/verdict/rehearsal.h"

namespace nanquest {
namespace {

TEST(SettingChange, ANameAndAValueOrAFactor) {
  const auto factor = parse_setting("weight_decay=*0.5");
  ASSERT_TRUE(factor) << factor.error().text();
  EXPECT_EQ(factor->key, "weight-decay");
  EXPECT_EQ(factor->value, "*0.5");
  EXPECT_TRUE(factor->factor);
  EXPECT_EQ(factor->number, 0.5);
  EXPECT_FALSE(factor->plain());
  const auto path = parse_setting("data=a=b,c");
  ASSERT_TRUE(path);
  EXPECT_EQ(path->value, "a=b,c") << "all behind the first = is the value";
  EXPECT_FALSE(path->number || path->factor);
  EXPECT_EQ(parse_setting("clip=1e-3")->plain(), 1e-3);
  for (const char* no_number : {"lr=*", "lr=*fast", "lr=inf", "lr=nan", "lr=1 2"})
    EXPECT_FALSE(parse_setting(no_number)->number) << no_number;
}

TEST(SettingChange, SeveralAreJoinedByCommasAndAValueMayBeAList) {
  const auto all = parse_settings("skip=3,4,lr=*0.5");
  ASSERT_TRUE(all) << all.error().text();
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ(all->at(0).value, "3,4");
  EXPECT_EQ(all->at(1).key, "lr");
  EXPECT_TRUE(parse_settings("")->empty());
}

TEST(SettingChange, WithoutANameOrAValueItIsRefused) {
  for (const auto& [text, words] : {std::pair{"lr", "--set lr has no value"},
                                    {"lr=", "--set lr= has no value"},
                                    {"=3", "--set =3 has no name"},
                                    {"lr=1,=3", "--set =3 has no name"}}) {
    const auto changes = parse_settings(text);
    ASSERT_FALSE(changes) << text;
    EXPECT_EQ(changes.error().code, ErrorCode::usage);
    EXPECT_EQ(changes.error().message, words);
  }
}

TEST(SettingChange, StepsThatWereSkippedTogetherAreBadData) {
  Rehearsal r{.step = 100, .began = "state-40", .runs = {}};
  const auto run = [&](RehearsedKind kind, const std::string& change, std::int64_t to, bool bad) {
    RehearsedRun made{.kind = kind, .change = change, .first_step = 40};
    for (std::int64_t step = 40; step < to; ++step)
      made.losses.push_back(4 - 0.01 * static_cast<double>(step));
    if (bad) made.failed_step = to;
    r.runs.push_back(made);
  };
  run(RehearsedKind::unchanged, "", 100, true);
  run(RehearsedKind::change, "skip=99,100", 180, false);
  judge(r);
  ASSERT_TRUE(r.root);
  EXPECT_EQ(r.root->cause, "BAD_DATA");
}

}  // namespace
}  // namespace nanquest
