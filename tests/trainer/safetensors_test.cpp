// Weights on disk: read and written by others too, complete or absent, and never trusted.
#include <ATen/ATen.h>
#include <signal.h>

#include <cmath>
#include <thread>

#include "tests/trainer/helpers.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/train_state.h"

namespace nanquest::trainer {
namespace {

NamedTensors samples() {
  at::manual_seed(1);
  const at::Tensor odd = at::tensor({std::nan(""), HUGE_VAL, -HUGE_VAL, -0.0}, at::kFloat);
  return {{"f32", at::randn({3, 5})},
          {"f16", at::randn({7}).to(at::kHalf)},
          {"bf16", at::randn({2, 3}).to(at::kBFloat16)},
          {"f64", at::randn({2}, at::kDouble)},
          {"i64", at::arange(5)},
          {"i32", at::arange(3, at::kInt)},
          {"u8", at::arange(9, at::kByte)},
          {"bool", at::tensor({1, 0, 1}, at::kLong).to(at::kBool)},
          {"scalar", at::scalar_tensor(2.5, at::kFloat)},
          {"empty", at::empty({0, 4})},
          {"non.finite", odd},
          {"name \"with\" quotes \xc3\xa4", at::ones({1})},
          {"strided", at::randn({4, 6}).t()}};
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const at::Tensor x = a.contiguous(), y = b.contiguous();
  return std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

TEST(Safetensors, ComesBackBitForBit) {
  const test::Folder folder;
  ASSERT_TRUE(write_safetensors(folder / "a.safetensors", samples(), {{"step", "7"}}));
  auto file = read_safetensors(folder / "a.safetensors");
  ASSERT_TRUE(file) << file.error().text();
  for (const auto& [name, t] : samples()) {
    ASSERT_TRUE(file->find(name).defined()) << name;
    EXPECT_TRUE(same_bits(file->find(name), t)) << name;
  }
  EXPECT_EQ(file->tensors.size(), samples().size());
  EXPECT_EQ(file->metadata.at("step"), "7");
  EXPECT_EQ(file->metadata.at("format"), "pt");
}

TEST(Safetensors, PythonReadsOursAndWeReadPythons) {
  const test::Folder folder;
  ASSERT_TRUE(write_safetensors(folder / "ours.safetensors", samples(), {}));
  test::write_file(
      folder / "round.py",
      "import sys, torch\n"
      "from safetensors.torch import load_file, save_file\n"
      "t = load_file(sys.argv[1])\n"
      "assert len(t) == 13, len(t)\n"
      "assert t['i64'].tolist() == [0, 1, 2, 3, 4] and t['bool'].tolist() == [True, False, True]\n"
      "assert t['scalar'].shape == () and float(t['scalar']) == 2.5 and t['empty'].shape == (0, 4)\n"
      "assert torch.isnan(t['non.finite'][0]) and t['f16'].dtype == torch.float16\n"
      "save_file(t, sys.argv[2], metadata={'by': 'python'})\n");
  const auto python =
      test::run(std::string(NANQUEST_TEST_PYTHON) + " '" + (folder / "round.py") + "' '" +
                    (folder / "ours.safetensors") + "' '" + (folder / "theirs.safetensors") + "'",
                folder);
  ASSERT_EQ(python.code, 0) << python.err;
  auto file = read_safetensors(folder / "theirs.safetensors");
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(file->metadata.at("by"), "python");
  for (const auto& [name, t] : samples()) EXPECT_TRUE(same_bits(file->find(name), t)) << name;
}

std::string with_header(const std::string& header, std::size_t data_bytes) {
  std::uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + std::string(data_bytes, 'x');
}

TEST(Safetensors, HostileFilesAreRefusedWithTheirName) {
  const test::Folder folder;
  std::string huge(8, '\xff');
  std::string deep = R"({"a":)";
  for (int i = 0; i < 100; ++i) deep += R"({"a":)";
  const std::pair<const char*, std::string> cases[] = {
      {"empty", ""},
      {"seven bytes", "1234567"},
      {"length beyond file", huge + "{}"},
      {"length beyond file by one", with_header("{}", 0).substr(0, 9)},
      {"not json", with_header("{nonsense", 0)},
      {"not an object", with_header("[1]", 0)},
      {"leading space", with_header(" {}", 0)},
      {"no tensor of this data", with_header("{}", 4)},
      {"unknown type", with_header(R"({"a":{"dtype":"Q7","shape":[1],"data_offsets":[0,4]}})", 4)},
      {"type is a number", with_header(R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", 4)},
      {"negative size", with_header(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4)},
      {"fractional size", with_header(R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4)},
      {"size overflow",
       with_header(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0)},
      {"size overflow to zero",
       with_header(R"({"a":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}})", 0)},
      {"size mismatch", with_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4)},
      {"end before begin", with_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4)},
      {"hole at the start", with_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8)},
      {"hole",
       with_header(
           R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
           12)},
      {"overlap",
       with_header(
           R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
           12)},
      {"data beyond file", with_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4)},
      {"bytes left over", with_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 5)},
      {"name twice",
       with_header(
           R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
           1)},
      {"extra field", with_header(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}})", 1)},
      {"field missing", with_header(R"({"a":{"dtype":"U8","shape":[1]}})", 1)},
      {"nine dimensions",
       with_header(R"({"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})", 1)},
      {"metadata not text", with_header(R"({"__metadata__":{"a":1}})", 0)},
      {"nested deeply", with_header(deep, 0)},
      {"bad utf-8", with_header("{\"\xff\xfe\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1)},
  };
  for (const auto& [what, content] : cases) {
    test::write_file(folder / "bad.safetensors", content);
    auto file = read_safetensors(folder / "bad.safetensors");
    ASSERT_FALSE(file) << what;
    EXPECT_EQ(file.error().code, ErrorCode::bad_file) << what;
    EXPECT_TRUE(file.error().message.starts_with(folder / "bad.safetensors")) << file.error().text();
    EXPECT_EQ(file.error().text().find('\n'), std::string::npos);
  }
  EXPECT_FALSE(read_safetensors(folder / "missing.safetensors"));
  test::write_file(folder / "fine.safetensors",
                   with_header(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}  )", 3));
  EXPECT_TRUE(read_safetensors(folder / "fine.safetensors"));
  EXPECT_FALSE(read_safetensors(folder / "fine.safetensors", 10));
}

TEST(Safetensors, EveryTruncationAndEveryFlippedBitIsFound) {
  const test::Folder folder;
  at::manual_seed(1);
  ASSERT_TRUE(write_safetensors(folder / "a.safetensors",
                                {{"w", at::randn({5})}, {"b", at::arange(3, at::kByte)}}, {}));
  const std::string whole = test::read_file(folder / "a.safetensors");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    test::write_file(folder / "b.safetensors", whole.substr(0, size));
    EXPECT_FALSE(read_safetensors(folder / "b.safetensors")) << size;
  }
  std::uint64_t header = 0;
  std::memcpy(&header, whole.data(), 8);
  for (std::size_t at = 8 + header; at < whole.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      test::write_file(folder / "b.safetensors", damaged);
      auto file = read_safetensors(folder / "b.safetensors");
      ASSERT_FALSE(file) << at;
      EXPECT_NE(file.error().message.find("checksum"), std::string::npos);
    }
}

// What the header says, its metadata too, is under a checksum: a digit that became another is noticed.
TEST(Safetensors, AnotherDigitInTheHeaderIsFound) {
  const test::Folder folder;
  const NamedTensors none_and_some{
      {"b", at::zeros({0, 2})}, {"a", at::zeros({3, 0})}, {"w", at::ones({2, 3})}};
  ASSERT_TRUE(write_safetensors(folder / "a.safetensors", none_and_some, {{"step", "123"}}));
  const std::string whole = test::read_file(folder / "a.safetensors");
  EXPECT_TRUE(read_safetensors(folder / "a.safetensors")->whole);
  for (const auto& [right, wrong] : {std::pair("\"123\"", "\"124\""), std::pair("\"step\"", "\"stop\""),
                                     std::pair("[2,3]", "[3,2]"), std::pair("\"w\"", "\"v\"")}) {
    std::string damaged = whole;
    const std::size_t at = damaged.find(right);
    ASSERT_NE(at, std::string::npos) << right;
    damaged.replace(at, std::string(right).size(), wrong);
    test::write_file(folder / "b.safetensors", damaged);
    const auto file = read_safetensors(folder / "b.safetensors");
    ASSERT_FALSE(file) << wrong;
    EXPECT_NE(file.error().message.find("checksum of its header"), std::string::npos) << file.error().text();
  }
}

// Files of before nq64 have a sum that nobody knows any more: they are read, and it is no metadata.
TEST(Safetensors, FilesWithTheOldSumAreRead) {
  const test::Folder folder;
  test::write_file(folder / "old.safetensors",
                   with_header(R"({"__metadata__":{"format":"pt","nanquest.checksum":"0123456789abcdef"},)"
                               R"("a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})",
                               3));
  const auto file = read_safetensors(folder / "old.safetensors");
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_FALSE(file->whole);
  EXPECT_EQ(file->tensors.size(), 1u);
  EXPECT_EQ(file->metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
}

TEST(Safetensors, AFailureLeavesTheOldFileAndNothingElse) {
  const test::Folder folder;
  const std::string path = folder / "f.safetensors";
  test::write_file(path, "old");
  EXPECT_EQ(write_safetensors(path, {{"odd", at::zeros({2}, at::kComplexDouble)}}, {}).error().code,
            ErrorCode::unsupported);
  EXPECT_EQ(write_safetensors(path + "/below", samples(), {}).error().code, ErrorCode::io);
  EXPECT_EQ(test::read_file(path), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(TrainState, EveryNumberComesBackExactly) {
  const test::Folder folder;
  TrainState state;
  state.counters = {.optimizer_step = 11,
                    .data_position = 1LL << 40,
                    .data_steps = 13,
                    .skipped = 2,
                    .consecutive_skips = 1,
                    .incidents = 3,
                    .rollbacks = 1,
                    .tokens = 99,
                    .fell_back = true,
                    .retried = true,
                    .backoff = 0.1 + 0.2,
                    .best_eval = 1.0 / 3};
  state.scaler = {.scale = 4096, .good_steps = 17, .overflows = 5, .patience = 2, .enabled = true};
  state.tensors = samples();
  state.fingerprint = "model 1";
  state.data_fingerprint = "data 1";
  state.settings = {{"lr", "0.1"}, {"on-incident", "skip"}};
  state.story = {.first_loss = 1.0 / 3,
                 .first_incident_step = 7,
                 .loss_at_incident = 0.1,
                 .last_eval = std::nan(""),
                 .recent_losses = {0.1, 1e-300},
                 .incidents = {"run/incidents/a \"b\".h5"},
                 .skipped_samples = {"text.txt@17", "größe@0"},
                 .scale_history = {{3, 65536, 32768}}};
  ASSERT_TRUE(save_state(folder / "s.safetensors", state));
  auto back = load_state(folder / "s.safetensors");
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(std::memcmp(&back->counters.backoff, &state.counters.backoff, sizeof(double)), 0);
  EXPECT_EQ(back->counters.best_eval, 1.0 / 3);
  EXPECT_EQ(back->counters.data_position, 1LL << 40);
  EXPECT_TRUE(back->counters.fell_back && back->counters.retried && back->scaler.enabled);
  EXPECT_EQ(back->counters.incidents, 3);
  EXPECT_EQ(back->scaler.good_steps, 17);
  EXPECT_EQ(back->scaler.patience, 2);
  EXPECT_EQ(back->fingerprint, "model 1");
  EXPECT_EQ(back->data_fingerprint, "data 1");
  EXPECT_EQ(back->settings, state.settings);
  EXPECT_EQ(back->story.first_loss, 1.0 / 3);
  EXPECT_EQ(back->story.first_incident_step, 7);
  EXPECT_EQ(back->story.loss_at_incident, 0.1);
  EXPECT_TRUE(std::isnan(back->story.last_eval));
  EXPECT_EQ(back->story.recent_losses, state.story.recent_losses);
  EXPECT_EQ(back->story.incidents, state.story.incidents);
  EXPECT_EQ(back->story.skipped_samples, state.story.skipped_samples);
  ASSERT_EQ(back->story.scale_history.size(), 1u);
  EXPECT_EQ(back->story.scale_history[0].step, 3);
  EXPECT_EQ(back->story.scale_history[0].from, 65536);
  EXPECT_EQ(back->story.scale_history[0].to, 32768);
  ASSERT_TRUE(write_safetensors(folder / "w.safetensors", samples(), {}));
  EXPECT_EQ(load_state(folder / "w.safetensors").error().code,
            ErrorCode::bad_file);  // weights are not a state
}

TEST(TrainState, KilledAtAnyMomentLeavesACompleteCheckpoint) {
  const test::Folder folder;
  const std::string path = folder / "state.safetensors";
  TrainState state;
  state.tensors = {{"w", at::zeros({200000})}};
  ASSERT_TRUE(save_state(path, state));
  std::int64_t last = 0;
  for (int round = 0; round < 12; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      // No ATen op in the child: threads did not survive the fork. Only bytes are copied and written.
      auto* w = state.tensors[0].second.mutable_data_ptr<float>();
      for (std::int64_t i = last + 1;; ++i) {
        state.counters.optimizer_step = i;
        for (int k = 0; k < 200000; ++k) w[k] = static_cast<float>(i);
        if (!save_state(path, state)) _exit(1);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + 7 * round));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    auto back = load_state(path);
    ASSERT_TRUE(back) << back.error().text();
    const at::Tensor w = back->tensors[0].second;
    EXPECT_EQ(w.min().item<double>(), static_cast<double>(back->counters.optimizer_step));
    EXPECT_EQ(w.max().item<double>(), static_cast<double>(back->counters.optimizer_step));
    EXPECT_GE(back->counters.optimizer_step, last);
    last = back->counters.optimizer_step;
  }
  EXPECT_GT(last, 0);
}

}  // namespace
}  // namespace nanquest::trainer
