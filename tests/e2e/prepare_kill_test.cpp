// `tokamak prepare` under real signals: the same command goes on, and the result is that of a run in one go.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <map>
#include <random>
#include <thread>

#include "base/file.h"
#include "data/prepare.h"
#include "tests/support/run_program.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;

class PrepareKillTest : public testing::Test {
 protected:
  void SetUp() override {
    test::make_tiny_data(folder_.path());  // for its tokenizer
    write_file_quickly(folder_ / "long.txt", test::tiny_text(3'000'000));
  }

  static std::vector<std::string> command(const std::string& out) {
    return {"prepare", "long.txt", "--vocab=data", "--shard-tokens=20000", "--out=" + out};
  }

  bool has_shard(const std::string& out) {
    return fs::exists(folder_ / out / kUnfinishedFolder / "tokens_000000.bin") ||
           fs::exists(folder_ / out / kIndexFile);
  }

  /// Waits until there is something to go on from.
  void wait_for_shard(const std::string& out) {
    for (int i = 0; i < 60'000 && !has_shard(out); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  std::map<std::string, std::string> content(const std::string& out) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(folder_ / out))
      files[entry.path().filename()] = entry.is_directory() ? "a folder" : read_file(entry.path());
    return files;
  }

  MemoryFolder folder_;
};

TEST_F(PrepareKillTest, KillAtRandomMoments) {
  ASSERT_EQ(run_program(folder_.path(), command("straight")).status, 0);
  unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int killed = 0;
  for (int i = 0; i < 8; ++i) {
    RunningProgram program(folder_.path(), command("broken"));
    wait_for_shard("broken");
    // The first one at once: a fast machine needs little more than this for the rest.
    std::this_thread::sleep_for(std::chrono::microseconds(random() % unsigned(1 + 10'000 * i)));
    program.send(SIGKILL);
    if (program.wait().status == 0) break;
    ++killed;
  }
  EXPECT_GE(killed, 1);
  ProgramResult last = run_program(folder_.path(), command("broken"));
  EXPECT_EQ(last.status, 0) << last.err;
  EXPECT_EQ(content("broken"), content("straight"));
}

TEST_F(PrepareKillTest, CtrlCSaysHowToGoOn) {
  RunningProgram program(folder_.path(), command("broken"));
  wait_for_shard("broken");
  program.send(SIGINT);
  ProgramResult stopped = program.wait();
  if (stopped.status == 0) GTEST_SKIP() << "the program was faster than the signal";
  EXPECT_EQ(stopped.status, 128 + SIGINT);
  for (const char* piece : {"stopped", "The same command goes on from here", "broken"})
    EXPECT_NE(stopped.err.find(piece), std::string::npos) << stopped.err;
  ProgramResult rest = run_program(folder_.path(), command("broken"));
  EXPECT_EQ(rest.status, 0) << rest.err;
  EXPECT_NE(rest.err.find("going on after the"), std::string::npos) << rest.err;
  ASSERT_EQ(run_program(folder_.path(), command("straight")).status, 0);
  EXPECT_EQ(content("broken"), content("straight"));
}

TEST_F(PrepareKillTest, EndsWhileItWaitsForInput) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  FileDescriptor writer(::open((folder_ / "pipe").c_str(), O_RDWR | O_CLOEXEC));
  RunningProgram program(folder_.path(), {"prepare", "-", "--vocab=data", "--out=piped"}, "", {.in = folder_ / "pipe"});
  for (int i = 0; i < 60'000 && !fs::exists(folder_ / "piped" / kUnfinishedFolder / "journal.json"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  program.send(SIGTERM);
  ProgramResult stopped = program.wait();
  EXPECT_EQ(stopped.status, 128 + SIGTERM) << stopped.err;
}

TEST_F(PrepareKillTest, SaysWhatItMadeOfItsInput) {
  for (const char* name : {"corpus/a.py", "corpus/b.py", "corpus/Makefile"}) {
    make_folder(folder_ / "corpus");
    write_file_quickly(folder_ / name, "text");
  }
  write_file_quickly(folder_ / "corpus/a.jsonl", "{\"text\": \"one one one one\"}\nbad\n{\"text\": \"two two\"}\n");
  write_file_quickly(folder_ / "table", "a,b\n1,2\n3,4\n5,6\n7,8\n");
  ProgramResult result =
      run_program(folder_.path(), {"prepare", "corpus", "table", "--vocab=data", "--skip-bad", "--out=odd, name"});
  EXPECT_EQ(result.status, 0) << result.err;
  for (const char* piece : {"passed over 3 files", "2 .py", "1 without an ending", "'corpus/**/*.py'",
                            "table is a table", "skipped 1 bad line of JSONL"})
    EXPECT_NE(result.err.find(piece), std::string::npos) << piece << " is not in " << result.err;
  EXPECT_NE(result.out.find("tokamak train --data.path='odd\\, name' --model.preset=small\n"), std::string::npos)
      << result.out;
}

}  // namespace
}  // namespace tokamak
