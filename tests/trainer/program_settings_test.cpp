// nanquest-trainer: settings on the command line and in a file, and which are refused.
#include <nlohmann/json.hpp>

#include "tests/trainer/program_fixture.h"

namespace nanquest::trainer {
namespace {

using test::Ran;

class ProgramSettings : public test::Program {};

TEST_F(ProgramSettings, ConfigFileIsReadAndTheCommandLineWins) {
  test::write_file(
      folder / "c.toml",
      "# comment\nsteps = 7\nwarmup_ratio = 0.5\nactivation = \"relu2\"\nqk-norm = true\nlr = 0.01\n");
  const Ran r =
      run(command("--json --config '" + (folder / "c.toml") + "' --steps 3 --data '" + (folder / "data") +
                  "' --run-dir '" + (folder / "run") + "' --depth 1 --width 16 --heads 2 --context 16"));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(nlohmann::json::parse(r.out)["steps"], 3);
  const auto manifest = nlohmann::json::parse(test::read_file(folder / "run/manifest.json"));
  for (const char* setting :
       {"\"activation\":\"relu2\"", "\"warmup-ratio\":\"0.5\""})  // with dashes or underscores
    EXPECT_NE(manifest.dump().find(setting), std::string::npos) << manifest.dump();
}

TEST_F(ProgramSettings, AnotherNameForASettingIsTheSameSetting) {
  for (const char* key : {"on-incident", "policy"}) {
    test::write_file(folder / "c.toml", std::string(key) + " = \"stop\"\n");
    EXPECT_EQ(run(tiny("--inject nan-loss@3 --config '" + (folder / "c.toml") + "'")).code, 4) << key;
    const auto manifest = nlohmann::json::parse(test::read_file(folder / "run/manifest.json"));
    EXPECT_NE(manifest.dump().find("\"on-incident\":\"stop\""), std::string::npos) << manifest.dump();
  }
}

TEST_F(ProgramSettings, UnknownKeysAndFlagsNameTheWayOut) {
  test::write_file(folder / "c.toml", "warmup-ration = 0.1\n");
  const Ran key = run(tiny("--config '" + (folder / "c.toml") + "'"));
  EXPECT_EQ(key.code, 2);
  EXPECT_NE(key.err.find("unknown key \"warmup-ration\" (did you mean \"warmup-ratio\"?)"), std::string::npos)
      << key.err;
  EXPECT_TRUE(one_line(key.err));
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
  test::write_file(folder / "s.toml", "[model]\ndepth = 2\n");
  EXPECT_EQ(run(tiny("--config '" + (folder / "s.toml") + "'")).code, 2);
  EXPECT_EQ(run(tiny("--config '" + (folder / "none.toml") + "'")).code, 3);
  for (const char* bad : {"--no-such-flag",
                          "--lr nonsense",
                          "--policy sometimes",
                          "--amp-dtype fp12",
                          "--width 15",
                          "--batch-size 3 --accumulation 2",
                          "--lr 0",
                          "--level loud",
                          "--policy retryfp32",
                          "--inject sometimes",
                          "--device tpu",
                          "--dropout 2",
                          "--warmup-ratio 3",
                          "--lr-backoff 0",
                          "--holdout-every 1",
                          "--scale-floor 0",
                          "--beta2 1",
                          "--ring-every 0",
                          "--tape 8",
                          "--tape 8 --level watch",
                          "--tape -1 --level trace",
                          "--tape 8 --level trace --zclip true"}) {
    const Ran r = run(tiny(bad));
    EXPECT_EQ(r.code, 2) << bad << ": " << r.err;
    EXPECT_TRUE(one_line(r.err)) << bad << ": " << r.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "run")) << bad;
  }
}

TEST_F(ProgramSettings, MissingCudaIsSaidPlainly) {
  const Ran r = run(tiny("--device cuda:99"));
  EXPECT_EQ(r.code, 2);
  EXPECT_NE(r.err.find("use --device cpu"), std::string::npos) << r.err;
  EXPECT_TRUE(one_line(r.err));
}

TEST_F(ProgramSettings, AFormatThatTheDeviceLacksIsSaidPlainly) {
  const Ran r = run(tiny("--tf32-matmul --strict"));
  EXPECT_EQ(r.code, 2);
  EXPECT_NE(r.err.find("tf32-matmul: cpu has no tf32"), std::string::npos) << r.err;
  EXPECT_TRUE(one_line(r.err));
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
  const Ran other = run(tiny("--tf32-matmul"));
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_NE(other.err.find("tf32-matmul: cpu has no tf32, it needs CUDA and compute capability 8.0; fp32 is "
                           "used in its place"),
            std::string::npos)
      << other.err;
}

TEST_F(ProgramSettings, BadDataIsNamed) {
  test::write_file(folder / "empty.txt", "");
  test::write_file(folder / "binary.txt", std::string("a\0b", 3));
  std::filesystem::create_directories(folder / "nothing");
  for (const char* name : {"empty.txt", "binary.txt", "nothing", "missing"}) {
    const Ran r = run(tiny("--data '" + (folder / name) + "'"));
    EXPECT_EQ(r.code, 3) << name;
    EXPECT_NE(r.err.find(folder / name), std::string::npos) << r.err;
    EXPECT_TRUE(one_line(r.err)) << r.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "run"));
  }
  EXPECT_EQ(run(command("--steps 3")).code, 2);
}

TEST_F(ProgramSettings, AnUnwritableRunDirectoryIsAnErrorAtTheStart) {
  test::write_file(folder / "file", "x");
  const Ran r = run(tiny("--run-dir '" + (folder / "file/run") + "'"));
  EXPECT_EQ(r.code, 3);
  EXPECT_TRUE(one_line(r.err)) << r.err;
  EXPECT_NE(r.err.find(folder / "file/run"), std::string::npos);
}

}  // namespace
}  // namespace nanquest::trainer
