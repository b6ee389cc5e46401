#include "run/tensorboard.h"

#include "base/crc32c.h"
#include "base/json.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sys/wait.h>

#include <cmath>
#include <cstdio>
#include <cstring>

namespace tokamak {
namespace {

/// The records of a file; fails where a length or a checksum is wrong.
std::vector<std::string> records_of(const std::filesystem::path& path) {
  std::string text = read_file(path);
  std::vector<std::string> records;
  auto masked = [](std::string_view bytes) {
    uint32_t crc = crc32c(bytes);
    return (crc >> 15 | crc << 17) + 0xA282EAD8u;
  };
  size_t at = 0;
  auto number = [&](auto value) {
    EXPECT_LE(at + sizeof value, text.size());
    std::memcpy(&value, text.data() + at, sizeof value);
    at += sizeof value;
    return value;
  };
  while (at < text.size()) {
    size_t begin = at, length = number(uint64_t());
    EXPECT_EQ(number(uint32_t()), masked(std::string_view(text).substr(begin, 8)));
    records.push_back(text.substr(at, length));
    at += length;
    EXPECT_EQ(number(uint32_t()), masked(records.back()));
  }
  EXPECT_EQ(at, text.size());
  return records;
}

StepMetrics metrics_of(int64_t step, double loss) {
  return {.step = step,
          .loss = loss,
          .grad_norm = 0.5,
          .lr = 1e-3,
          .ms = 20,
          .tokens_per_second = 100,
          .wall_seconds = 1e9};
}

// Three steps, of which the third is lost, and a second start behind the second.
void write_two_starts(const std::filesystem::path& run) {
  TensorBoardWriter first(run, 0, "{\"a\": 1}");
  for (int64_t step : {1, 2, 3}) first.write(metrics_of(step, 4 - double(step)));
  StepMetrics evaluated = metrics_of(2, 2);
  evaluated.val_loss = 2.5;
  evaluated.tasks = {{"hellaswag", "accuracy", 0.25}};
  first.write_evaluations(evaluated);
  first.write_text(2, "sample", "Once upon");
  TensorBoardWriter second(run, 2, "{\"a\": 1}");
  second.write(metrics_of(3, 0.75));
  second.write(metrics_of(4, std::nan("")));
}

TEST(TensorBoardWriter, WritesRecords) {
  TemporaryFolder folder;
  TensorBoardWriter writer(folder.path(), 0, "x");
  size_t before = records_of(writer.path()).size();
  EXPECT_EQ(before, 2u) << "version, configuration";
  writer.write(metrics_of(1, 3));
  std::vector<std::string> records = records_of(writer.path());
  ASSERT_EQ(records.size(), before + 1);
  EXPECT_NE(records[0].find("brain.Event:2"), std::string::npos);
  EXPECT_NE(records.back().find("train/loss"), std::string::npos);
  writer.write_evaluations(metrics_of(1, 3));
  EXPECT_EQ(records_of(writer.path()).size(), before + 1) << "nothing was evaluated";
}

TEST(TensorBoardWriter, IsReadByTensorBoard) {
  TemporaryFolder folder;
  write_two_starts(folder.path());
  std::string command = "python3 tests/run/tensorboard_reads.py " + (folder / "tensorboard").string() + " 2>/dev/null",
              out;
  FILE* pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  char buffer[4096];
  for (size_t count; (count = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.append(buffer, count);
  int status = ::pclose(pipe);
  if (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127) GTEST_SKIP() << "needs python3 with tensorboard";
  ASSERT_EQ(status, 0) << out;
  nlohmann::json told = parse_json(out);
  auto scalars = [&](const char* tag) { return told["scalars"][tag].dump(); };
  EXPECT_EQ(scalars("train/loss"), "[[1,3.0],[2,2.0],[3,0.75]]")
      << "the lost step does not count, nor what is no number";
  EXPECT_EQ(scalars("speed/tokens_per_second"), "[[1,100.0],[2,100.0],[3,100.0],[4,100.0]]");
  EXPECT_EQ(scalars("validation/loss"), "[[2,2.5]]");
  EXPECT_EQ(scalars("tasks/hellaswag/accuracy"), "[[2,0.25]]");
  EXPECT_EQ(told["texts"]["sample"].dump(), "[[2,\"Once upon\"]]");
  EXPECT_EQ(told["texts"]["config"][0][1], "{\"a\": 1}");
}

}  // namespace
}  // namespace tokamak
