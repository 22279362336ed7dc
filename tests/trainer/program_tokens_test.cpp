// nanquest-trainer on tokens from other programs, and its report of a run that learned nothing.
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/trainer/program_fixture.h"

namespace nanquest::trainer {
namespace {

using test::Program;
using test::Ran;

class Tokens : public Program {
 protected:
  /// nanoGPT's form: 16-bit tokens that count up to 199 and begin anew.
  std::string bin(std::size_t tokens) const {
    std::string content;
    for (std::size_t i = 0; i < tokens; ++i) content += {static_cast<char>(i % 200), '\0'};
    return content;
  }
  Ran train(const std::string& data, const std::string& more) const {
    return run(command("--data '" + (folder / data) + "' --run-dir '" + (folder / "run") +
                       "' --depth 1 --width 32 --heads 2 --context 16 --batch-size 4 --threads 1 --json " +
                       more));
  }
};

TEST_F(Tokens, NanoGptsBinIsLearnedAndHeldOut) {
  test::write_file(folder / "d/train.bin", bin(4000));
  test::write_file(folder / "d/val.bin", bin(400));
  const Ran r = train("d", "--steps 150 --lr 1e-2");
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("4400 tokens below 200"), std::string::npos) << r.err;
  const auto j = nlohmann::json::parse(r.out);
  EXPECT_NEAR(j["loss"]["start"].get<double>(), std::log(200), 0.5) << "as many tokens as the data has";
  EXPECT_LT(j["loss"]["end"].get<double>(), 2.0);
  EXPECT_LT(j["eval_loss"]["last"].get<double>(), 2.0);
}

TEST_F(Tokens, AStrangeTokenIsLeftOutBeforeTheStepAndNamed) {
  std::string content = bin(400);
  content[2 * 40] = '\xff';
  content[2 * 40 + 1] = '\x7f';
  test::write_file(folder / "x.bin", content);
  const std::string all =
      "--steps 20 --holdout-every 0 --vocabulary 200 --quarantine '" + (folder / "ids.txt") + "'";
  const Ran r = train("x.bin", all);
  EXPECT_EQ(r.code, 1) << r.err;  // finished, with a skip
  const std::string id = (folder / "x.bin") + "@32";
  EXPECT_NE(r.err.find(id + ": tokens holds 32767 at 8, not one of 200"), std::string::npos) << r.err;
  EXPECT_NE(test::read_file(folder / "ids.txt").find(id), std::string::npos);
  const auto j = nlohmann::json::parse(r.out);
  EXPECT_EQ(j["skipped_samples"], nlohmann::json::array({id}));
  EXPECT_EQ(j["incidents"], 0);
}

TEST_F(Tokens, OtherTokensAreNotTakenForTheSameOnAResume) {
  test::write_file(folder / "x.bin", bin(4000));
  ASSERT_EQ(train("x.bin", "--steps 4").code, 0);
  EXPECT_EQ(train("x.bin", "--steps 6 --resume").code, 0);
  test::write_file(folder / "x.bin", bin(4002));
  const Ran r = train("x.bin", "--steps 8 --resume");
  EXPECT_EQ(r.code, 2);
  EXPECT_NE(r.err.find("its checkpoint is of other data"), std::string::npos) << r.err;
}

TEST_F(Program, ARunThatLearnedNothingTellsOfNoLoss) {
  const Ran text = run(tiny("--policy stop --inject nan-loss@0"));
  EXPECT_EQ(text.code, 4) << text.err;
  EXPECT_NE(text.out.find("loss             none: no step was learned from\n"), std::string::npos)
      << text.out;
  const Ran r = run(tiny("--policy stop --inject nan-loss@0 --json"));
  EXPECT_TRUE(nlohmann::json::parse(r.out)["loss"]["start"].is_null()) << r.out;
  EXPECT_TRUE(nlohmann::json::parse(r.out)["loss"]["end"].is_null()) << r.out;
}

}  // namespace
}  // namespace nanquest::trainer
