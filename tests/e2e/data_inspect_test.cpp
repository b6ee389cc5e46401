// `tokamak data inspect` through the program: what it prints of good data and of damaged data.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "data/token_shard_index.h"
#include "tests/support/expect_refused.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

using nlohmann::json;

class DataInspect : public testing::Test {
 protected:
  void SetUp() override { test::make_tiny_data(folder_.path()); }

  ProgramResult inspect(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"data", "inspect"});
    return run_program(folder_.path(), arguments);
  }

  TemporaryFolder folder_;
};

TEST_F(DataInspect, ShowsCountsChecksumsAndText) {
  TokenShardIndex index = read_token_shard_index(folder_ / "data");
  ProgramResult result = inspect({"data"});
  EXPECT_EQ(result.status, 0) << result.err;
  std::string text = read_file(folder_ / "text.txt");
  for (const std::string& piece :
       {std::string("vocabulary of 301"), std::to_string(index.train.tokens()), index.train.shards.at(0).checksum,
        index.val.shards.at(0).checksum, text.substr(0, 40)})
    EXPECT_NE(result.out.find(piece), std::string::npos) << result.out << "\nlacks: " << piece;
}

TEST_F(DataInspect, PrintsJson) {
  TokenShardIndex index = read_token_shard_index(folder_ / "data");
  ProgramResult result = inspect({"data", "--json", "--samples=2", "--tokens=5"});
  EXPECT_EQ(result.status, 0) << result.err;
  json report = json::parse(result.out);
  EXPECT_EQ(report["vocab_size"], 301);
  EXPECT_EQ(report["train"]["tokens"], index.train.tokens());
  EXPECT_EQ(report["damaged_files"], 0);
  ASSERT_EQ(report["samples"].size(), 2u);
  EXPECT_EQ(report["samples"][0]["ids"].size(), 5u);
  std::string text = report["samples"][0]["text"];
  EXPECT_TRUE(read_file(folder_ / "text.txt").starts_with(text)) << text;
}

TEST_F(DataInspect, DamageIsNamedAndFails) {
  auto path = folder_ / "data" / read_token_shard_index(folder_ / "data").train.shards.at(0).file;
  std::string bytes = read_file(path);
  bytes[bytes.size() / 2] ^= 1;
  write_file_quickly(path, bytes);
  ProgramResult result = inspect({"data"});
  expect_refused(result, {"[inspect]", "got 1 damaged"});
  EXPECT_NE(result.out.find("DAMAGED: [shard] data/" + path.filename().string()), std::string::npos) << result.out;
  result = inspect({"data", "--json"});
  expect_refused(result, {"got 1 damaged"});
  json report = json::parse(result.out);
  EXPECT_EQ(report["damaged_files"], 1);
  EXPECT_EQ(report["files"][0]["good"], false);
}

TEST_F(DataInspect, MistakesAreNamed) {
  expect_refused(inspect({"nowhere"}), {"nowhere"});
  expect_refused(inspect({}), {"[path]", "got nothing"});
  make_folder(folder_ / "run");
  write_file_quickly(folder_ / "run/ledger.jsonl", "{}\n");
  expect_refused(inspect({"run"}), {"the folder of a run", "tokamak data ledger run"});
  expect_refused(run_program(folder_.path(), {"data", "inspekt"}),
                 {"got 'data inspekt'", "did you mean 'data inspect'?"});
  ProgramResult help = run_program(folder_.path(), {"data", "--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.out.find("data inspect"), std::string::npos);
  EXPECT_EQ(run_program(folder_.path(), {"data"}).status, 1);
  help = run_program(folder_.path(), {"data", "inspect", "--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.out.find("--samples"), std::string::npos);
}

}  // namespace
}  // namespace tokamak
