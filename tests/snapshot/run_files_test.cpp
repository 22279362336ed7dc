// Manifest, run directory and atomic files.
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "probe/snapshot/atomic_file.h"
#include "probe/snapshot/manifest.h"
#include "probe/snapshot/run_dir.h"
#include "tests/snapshot/rich_doc.h"

namespace nanquest {
namespace {

using testing::TempDir;

void touch(const std::string& path) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << "x";
}

TEST(AtomicFile, ReplacesAndLeavesNothingElse) {
  TempDir dir;
  const std::string path = dir / "a/b/x.json";
  ASSERT_TRUE(write_file_atomically(path, "first"));
  ASSERT_TRUE(write_file_atomically(path, std::string("second\0!", 8)));
  Result<std::string> text = read_whole_file(path);
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, std::string("second\0!", 8));
  EXPECT_EQ(dir.entries("a/b"), 1u);
}

TEST(AtomicFile, UncommittedOneKeepsTheOldFile) {
  TempDir dir;
  const std::string path = dir / "x";
  ASSERT_TRUE(write_file_atomically(path, "old"));
  {
    Result<AtomicFile> file = AtomicFile::create(path);
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->append("new", 3));
  }
  EXPECT_EQ(*read_whole_file(path), "old");
  EXPECT_EQ(dir.entries(), 1u);
}

TEST(AtomicFile, ContentsInPieces) {
  TempDir dir;
  Result<AtomicFile> file = AtomicFile::create(dir / "x");
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->append("head", 4));
  ASSERT_TRUE(file->append("body", 4));
  ASSERT_TRUE(file->append("!", 1));
  ASSERT_TRUE(file->commit());
  EXPECT_FALSE(file->append("x", 1));
  EXPECT_FALSE(file->commit());
  EXPECT_EQ(*read_whole_file(dir / "x"), "headbody!");
}

TEST(AtomicFile, SaysWhereAndWhatToDo) {
  TempDir dir;
  touch(dir / "file");
  const Status status = write_file_atomically(dir / "file/below", "x");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::io);
  EXPECT_NE(status.error().message.find(dir / "file"), std::string::npos) << status.error().text();
  EXPECT_FALSE(status.error().hint.empty());
  EXPECT_EQ(status.error().text().find('\n'), std::string::npos);
  EXPECT_FALSE(write_file_atomically(dir.string(), "x"));
  EXPECT_FALSE(read_whole_file(dir / "missing"));
  EXPECT_FALSE(read_whole_file(dir.string()));
  EXPECT_FALSE(read_whole_file(dir / "file", 0));
}

TEST(RunDir, Names) {
  EXPECT_EQ(incident_path("run", 131, 0), "run/incidents/step-00000131.r0.h5");
  EXPECT_EQ(incident_path("run/", 123456789012, 15), "run/incidents/step-123456789012.r15.h5");
  EXPECT_EQ(series_path("run", 2), "run/series.r2.h5");
  EXPECT_EQ(manifest_path("run"), "run/manifest.json");
  EXPECT_EQ(verdict_path("run/incidents/step-00000131.r0.h5"), "run/incidents/step-00000131.r0.json");
  EXPECT_EQ(report_path("a.h5"), "a.md");
  EXPECT_EQ(replay_path("a.h5"), "a.replay.h5");
  EXPECT_EQ(verdict_path("odd"), "odd.json");
}

TEST(RunDir, ParsesOnlySnapshotNames) {
  const auto parsed = parse_incident_name("x/step-00000131.r7.h5");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->step, 131);
  EXPECT_EQ(parsed->rank, 7);
  EXPECT_EQ(parsed->attempt, 1);
  EXPECT_EQ(parse_incident_name("step-00000131.r7.3.h5")->attempt, 3);
  EXPECT_FALSE(parse_incident_name(""));
  std::ifstream names(std::string(NANQUEST_GOLDEN_DIR) + "/step_names.txt");
  int read = 0;
  for (std::string line; std::getline(names, line);) {
    if (line.starts_with("#")) continue;
    const auto space = line.find(' ');
    const std::string name = line.substr(0, space), step = line.substr(space + 1);
    const auto file = parse_incident_name(name);
    EXPECT_EQ(file ? std::to_string(file->step) : "-", step) << name;
    ++read;
  }
  EXPECT_GT(read, 10);
}

TEST(RunDir, ListsInOrder) {
  TempDir dir;
  for (const char* name :
       {"manifest.json", "series.r10.h5", "series.r2.h5", "series.h5", "incidents/step-00000200.r0.h5",
        "incidents/step-00000010.r1.h5", "incidents/step-00000010.r0.h5", "incidents/step-00000010.r0.json",
        "incidents/step-00000010.r0.md", "incidents/step-00000010.r0.replay.h5",
        "incidents/step-00000010.r0.2.h5", "incidents/step-00000011.r0.h5.tmp-1-1"})
    touch(dir / name);
  Result<RunListing> run = list_run(dir.string());
  ASSERT_TRUE(run) << run.error().text();
  EXPECT_EQ(run->manifest, dir / "manifest.json");
  ASSERT_EQ(run->series.size(), 2u);
  EXPECT_EQ(run->series[0].rank, 2);
  ASSERT_EQ(run->incidents.size(), 4u);
  EXPECT_EQ(run->incidents[0].snapshot, dir / "incidents/step-00000010.r0.h5");
  EXPECT_EQ(run->incidents[0].verdict, dir / "incidents/step-00000010.r0.json");
  EXPECT_EQ(run->incidents[0].replay, dir / "incidents/step-00000010.r0.replay.h5");
  EXPECT_EQ(run->incidents[1].attempt, 2);
  EXPECT_EQ(run->incidents[1].verdict, "");
  EXPECT_EQ(run->incidents[2].rank, 1);
  EXPECT_EQ(run->incidents[3].step, 200);
  EXPECT_EQ(free_incident_path(dir.string(), 10, 0), dir / "incidents/step-00000010.r0.3.h5");
  EXPECT_EQ(free_incident_path(dir.string(), 12, 0), incident_path(dir.string(), 12, 0));
}

TEST(RunDir, RefusesWhatIsNotARun) {
  TempDir dir;
  EXPECT_EQ(list_run(dir.string()).error().code, ErrorCode::bad_file);
  EXPECT_EQ(list_run(dir / "missing").error().code, ErrorCode::bad_file);
}

TEST(Manifest, RoundTrip) {
  TempDir dir;
  Manifest m;
  m.created = utc_now();
  m.nanquest = "0.1.0";
  m.command = "nanquest-trainer --config \"a b\"";
  m.config = {{"lr", "3e-4"}, {"naïve", "∞"}};
  m.rank = 1;
  m.world_size = 4;
  m.status = "finished";
  m.outcome = "2 incidents, survived";
  m.incidents = {{131, 1, "incidents/step-00000131.r1.h5", "non_finite", "aten::mm made 17 +Inf"},
                 {140, 1, "", "spike", ""}};
  m.replicas = {{400, {2, 3}, "head.weight", "step 400: replicas differ"}};
  ASSERT_TRUE(write_manifest(dir.string(), m));
  Result<Manifest> got = read_manifest(dir.string());
  ASSERT_TRUE(got) << got.error().text();
  EXPECT_EQ(got->format_version, "1.0");
  EXPECT_EQ(got->created, m.created);
  EXPECT_EQ(got->nanquest, m.nanquest);
  EXPECT_EQ(got->command, m.command);
  EXPECT_EQ(got->config, m.config);
  EXPECT_EQ(got->rank, 1);
  EXPECT_EQ(got->world_size, 4);
  EXPECT_EQ(got->status, m.status);
  EXPECT_EQ(got->outcome, m.outcome);
  ASSERT_EQ(got->incidents.size(), 2u);
  EXPECT_EQ(got->incidents[0].step, 131);
  EXPECT_EQ(got->incidents[0].rank, 1);
  EXPECT_EQ(got->incidents[0].file, m.incidents[0].file);
  EXPECT_EQ(got->incidents[0].gate, "non_finite");
  EXPECT_EQ(got->incidents[0].summary, m.incidents[0].summary);
  ASSERT_EQ(got->replicas.size(), 1u);
  EXPECT_EQ(got->replicas[0].step, 400);
  EXPECT_EQ(got->replicas[0].ranks, (std::vector<std::int32_t>{2, 3}));
  EXPECT_EQ(got->replicas[0].tensor, "head.weight");
  EXPECT_EQ(got->replicas[0].text, m.replicas[0].text);
  EXPECT_EQ(got->created.size(), 20u);
}

TEST(Manifest, BadTextIsMendedNotLost) {
  TempDir dir;
  Manifest m;
  m.command = "train \xff.txt";
  ASSERT_TRUE(write_manifest(dir.string(), m));
  EXPECT_EQ(read_manifest(dir.string())->command, "train \xEF\xBF\xBD.txt");
}

TEST(Manifest, RefusesOthers) {
  TempDir dir;
  EXPECT_EQ(read_manifest(dir.string()).error().code, ErrorCode::bad_file);
  for (const char* text :
       {"", "{", "[]", "{\"format\": \"other\"}", "{\"format\": 3}", "{\"format\": \"nanquest.run\"}",
        R"({"format": "nanquest.run", "format_version": "1.0", "rank": "x"})",
        R"({"format": "nanquest.run", "format_version": "1.0", "incidents": [1]})"}) {
    ASSERT_TRUE(write_file_atomically(manifest_path(dir.string()), text));
    Result<Manifest> got = read_manifest(dir.string());
    ASSERT_FALSE(got) << text;
    EXPECT_EQ(got.error().code, ErrorCode::bad_file) << text;
  }
  ASSERT_TRUE(write_file_atomically(manifest_path(dir.string()),
                                    R"({"format": "nanquest.run", "format_version": "2.0"})"));
  EXPECT_NE(read_manifest(dir.string()).error().message.find("2.0"), std::string::npos);
  ASSERT_TRUE(
      write_file_atomically(manifest_path(dir.string()),
                            R"({"format": "nanquest.run", "format_version": "1.7", "later": [1, 2]})"));
  EXPECT_TRUE(read_manifest(dir.string()));
}

}  // namespace
}  // namespace nanquest
