// Settings that parts declare: one list that the command line, the config file and the manifest walk.
#include "trainer/config/setting_list.h"

#include <gtest/gtest.h>

#include <limits>

#include "trainer/program/parts.h"

namespace nanquest::trainer {
namespace {

const Setting& find(const SettingList& list, const std::string& key) {
  for (const Setting& s : list.all())
    if (s.key == key) return s;
  ADD_FAILURE() << key << " is not declared";
  static const Setting none{};
  return none;
}

TEST(SettingList, StandsByGroupAndKeepsTheOrderOfDeclaration) {
  int a = 1, b = 2, c = 3, d = 4;
  SettingList list;
  list.group("First");
  list.add("a", a, "");
  list.group("Second");
  list.add("b", b, "");
  list.group("First");
  list.add("c", c, "");
  list.group("Second");
  list.add("d", d, "");
  std::string order;
  for (const Setting& s : list.all()) order += s.group[0] + s.key + " ";
  EXPECT_EQ(order, "Fa Fc Sb Sd ");
}

TEST(SettingList, NumbersAreTextThatReadsBackTheSame) {
  double third = 1.0 / 3, rate = 3e-4, tiny = 1e-8, big = 65536;
  std::uint64_t seed = std::numeric_limits<std::uint64_t>::max();
  std::int64_t low = std::numeric_limits<std::int64_t>::min();
  bool yes = true;
  std::string word = "x y";
  SettingList list;
  list.add("third", third, "");
  list.add("rate", rate, "");
  list.add("tiny", tiny, "");
  list.add("big", big, "");
  list.add("seed", seed, "");
  list.add("low", low, "");
  list.add("yes", yes, "");
  list.add("word", word, "");
  const auto text = list.as_text();
  EXPECT_EQ(std::strtod(text.at("third").c_str(), nullptr), third);
  EXPECT_EQ(text.at("rate"), "0.0003");
  EXPECT_EQ(text.at("tiny"), "1e-08");
  EXPECT_EQ(text.at("big"), "65536");
  EXPECT_EQ(text.at("seed"), "18446744073709551615");
  EXPECT_EQ(text.at("low"), "-9223372036854775808");
  EXPECT_EQ(text.at("yes"), "true");
  EXPECT_EQ(text.at("word"), "x y");
  rate = 0.5;
  EXPECT_EQ(list.as_text().at("rate"), "0.5") << "the list shows what stands there now";
}

TEST(SettingList, WordsStandForValuesBothWays) {
  GptConfig config;
  SettingList list;
  declare(list, config);
  const auto& norm = std::get<TextValue>(find(list, "norm").value);
  EXPECT_EQ(norm.words, (std::vector<std::string>{"pre", "post"}));
  EXPECT_EQ(norm.text(), "pre");
  ASSERT_TRUE(norm.set("post"));
  EXPECT_EQ(config.norm, NormPlace::post);
  EXPECT_EQ(list.as_text().at("norm"), "post");
  const Status refused = norm.set("none");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::usage);
  EXPECT_NE(refused.error().message.find("none"), std::string::npos);
  EXPECT_EQ(config.norm, NormPlace::post);
}

TEST(SettingList, InjectionsAreGivenOneByOneAndReadBack) {
  LoopConfig config;
  SettingList list;
  declare(list, config);
  const auto& inject = std::get<TextValue>(find(list, "inject").value);
  EXPECT_TRUE(inject.repeated);
  for (const char* text : {"nan-loss@40", "inf-grad@7x5", "nan-loss@2:amp"}) ASSERT_TRUE(inject.set(text));
  ASSERT_EQ(config.injections.size(), 3u);
  EXPECT_EQ(config.injections[1].kind, Injection::Kind::inf_gradient);
  EXPECT_EQ(config.injections[1].count, 5);
  EXPECT_TRUE(config.injections[2].only_low_precision);
  EXPECT_EQ(inject.text(), "nan-loss@40 inf-grad@7x5 nan-loss@2:amp");
  for (const char* wrong :
       {"", "nan-loss", "nan-loss@", "nan-loss@-1", "nan-loss@1x", "sometimes@3", "nan-loss@3:fp32"})
    EXPECT_FALSE(inject.set(wrong)) << wrong;
  EXPECT_EQ(config.injections.size(), 3u);
}

// An invalid setting is refused by its own part, with a message that names it.
TEST(SettingList, EachPartChecksItsOwn) {
  GptConfig model;
  DataOptions data;
  AdamWOptions adamw;
  ScheduleOptions schedule;
  ScalerOptions scaler;
  std::string path;
  SettingList list;
  declare(list, path, data);
  declare(list, model);
  declare(list, schedule);
  declare(list, adamw);
  declare(list, scaler);
  EXPECT_TRUE(list.check());
  const auto refused = [&](const char* key) {
    const Status s = list.check();
    ASSERT_FALSE(s) << key;
    EXPECT_EQ(s.error().code, ErrorCode::usage);
    EXPECT_NE(s.error().message.find(key), std::string::npos) << s.error().text();
    EXPECT_FALSE(s.error().hint.empty());
  };
  model.depth = 0, refused("depth"), model.depth = 1;
  data.eval_every = 1, refused("holdout-every"), data.eval_every = 0;
  schedule.peak = 0, refused("lr"), schedule.peak = 1;
  schedule.warmup_ratio = 1.5, refused("warmup-ratio"), schedule.warmup_ratio = 0;
  schedule.decay_ratio = 0, refused("decay-ratio"), schedule.decay_ratio = 1;
  adamw.beta2 = 1, refused("beta2"), adamw.beta2 = 0.9;
  scaler.floor = 0, refused("scale-floor"), scaler.floor = 1;
  scaler.hysteresis = 0, refused("scale-hysteresis"), scaler.hysteresis = 1;
  EXPECT_TRUE(list.check());
}

TEST(SettingList, KnowsWhatDecidesTheTraining) {
  const Parts every;
  const SettingList& list = every.list;
  const auto training = list.training();
  for (const char* key :
       {"lr", "warmup-ratio", "weight-decay", "beta2", "dropout", "seed", "batch-size", "accumulation",
        "grad-clip", "amp-dtype", "tf32-matmul", "tf32-conv", "schedule", "device", "on-incident"})
    EXPECT_TRUE(training.contains(key)) << key;
  for (const char* key : {"run-dir", "data", "resume", "steps", "epochs", "stop-after", "save-every",
                          "eval-every", "level", "width", "init-std", "strict", "init-from"})
    EXPECT_FALSE(training.contains(key)) << key;
}

// Otherwise two parts would write to one option of the command line.
TEST(SettingList, NoKeyIsDeclaredTwiceAndEveryOneIsExplained) {
  const Parts every;
  const SettingList& list = every.list;
  EXPECT_EQ(list.as_text().size(), list.all().size());
  for (const Setting& s : list.all()) {
    EXPECT_FALSE(s.help.empty()) << s.key;
    EXPECT_FALSE(s.group.empty()) << s.key;
    EXPECT_EQ(s.key.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos) << s.key;
  }
}

}  // namespace
}  // namespace nanquest::trainer
