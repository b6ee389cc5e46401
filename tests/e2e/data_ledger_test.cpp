// `tokamak data ledger` on real runs: stopped, killed and continued with other batches.
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "data/ledger_record.h"
#include "tests/support/expect_refused.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

using nlohmann::json;

class DataLedger : public testing::Test {
 protected:
  void SetUp() override { test::make_tiny_data(folder_.path()); }

  ProgramResult train(const std::vector<std::string>& more) {
    ProgramResult result = run_program(folder_.path(), test::tiny_arguments("train", more));
    EXPECT_EQ(result.status, 0) << result.err;
    return result;
  }

  ProgramResult ledger(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"data", "ledger", "run"});
    return run_program(folder_.path(), more);
  }

  json ledger_json(std::vector<std::string> more = {}) {
    more.push_back("--json");
    ProgramResult result = ledger(more);
    EXPECT_EQ(result.status, 0) << result.err;
    return json::parse(result.out);
  }

  /// Changes the text of ledger.jsonl and expects that it is found.
  void expect_found(const std::function<void(std::vector<std::string>&)>& change, const std::string& piece) {
    std::string good = read_file(folder_ / "run" / kLedgerFile);
    std::vector<std::string> lines;
    for (size_t begin = 0, end; (end = good.find('\n', begin)) != std::string::npos; begin = end + 1)
      lines.push_back(good.substr(begin, end - begin));
    change(lines);
    std::string bad;
    for (const std::string& line : lines) bad += line + "\n";
    write_file_quickly(folder_ / "run" / kLedgerFile, bad);
    expect_refused(ledger(), {"[ledger]", piece});
    write_file_quickly(folder_ / "run" / kLedgerFile, good);
    EXPECT_EQ(ledger().status, 0);
  }

  TemporaryFolder folder_;
};

TEST_F(DataLedger, ProvesARunThatWasStoppedAndContinued) {
  train({"--train.steps=20"});
  train({"--train.steps=90", "--train.batch=4"});
  ProgramResult result = ledger();
  EXPECT_EQ(result.status, 0) << result.err;
  for (const char* piece : {"90 steps, 320 samples of 16 tokens, 2 starts, ended as it should",
                            "steps 1 to 20: samples 0 to 39, 2 a step", "steps 21 to 90: samples 40 to 319, 4 a step",
                            "PROVEN: samples 0 to 319 were used once each", "1 as the run used them, 0 changed"})
    EXPECT_NE(result.out.find(piece), std::string::npos) << result.out << "\nlacks: " << piece;
  json report = ledger_json();
  EXPECT_EQ(report["samples"], 320);
  EXPECT_EQ(report["datasets"][0]["proven"], true);
  int64_t windows = report["datasets"][0]["windows"];
  EXPECT_EQ(report["datasets"][0]["least_uses"], 320 / windows);
  EXPECT_EQ(report["datasets"][0]["windows_used_most"], 320 % windows);
}

TEST_F(DataLedger, ProvesARunThatWasKilled) {
  std::vector<std::string> more = {"--train.steps=4000", "--train.checkpoint_every=20"};
  for (int i = 0; i < 3; ++i) {
    RunningProgram program(folder_.path(), test::tiny_arguments("train", more));
    ASSERT_TRUE(program.wait_for(i == 0 ? "\nsaved run/" : "\nstep "));  // after the ledger
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    program.send(SIGKILL);
    ASSERT_EQ(program.wait().status, -SIGKILL);
    json report = ledger_json();
    EXPECT_EQ(report["ended"], false);
    EXPECT_EQ(report["starts"], i + 1);
    EXPECT_EQ(report["datasets"][0]["proven"], true);
    EXPECT_EQ(report["samples"].get<int64_t>() % 40, 0);  // 20 steps of 2
  }
}

TEST_F(DataLedger, ShowsTheSamplesOfAStep) {
  train({"--train.steps=5"});
  json step = ledger_json({"--step=3", "--tokens=8"});
  EXPECT_EQ(step["step"], 3);
  ASSERT_EQ(step["samples"].size(), 2u);
  std::string text = read_file(folder_ / "text.txt");
  for (size_t i = 0; i < 2; ++i) {
    const json& sample = step["samples"][i];
    EXPECT_EQ(sample["sample"], 4 + i);
    EXPECT_EQ(sample["epoch"], 1);
    EXPECT_EQ(sample["files"][0]["path"], (folder_ / "data/train_000000.bin").string());
    EXPECT_EQ(sample["files"][0]["begin"], sample["window"].get<int64_t>() * 16);
    EXPECT_EQ(sample["files"][0]["length"], 17);
    EXPECT_NE(text.find(sample["beginning"].get<std::string>()), std::string::npos) << sample;
  }
  json one = ledger_json({"--sample=5", "--tokens=8"});
  EXPECT_EQ(one["step"], 3);
  EXPECT_EQ(one["samples"][0], step["samples"][1]);
  ProgramResult shown = ledger({"--step=3"});
  EXPECT_NE(shown.out.find("data/train_000000.bin, tokens "), std::string::npos) << shown.out;

  expect_refused(ledger({"--step=6"}), {"[--step]", "from 1 to 5", "got 6"});
  expect_refused(ledger({"--sample=10"}), {"[--sample]", "from 0 to 9", "got 10"});
  // Without the data the numbers are still known.
  std::filesystem::rename(folder_ / "data", folder_ / "elsewhere");
  shown = ledger({"--step=3"});
  EXPECT_EQ(shown.status, 0);
  EXPECT_NE(shown.out.find("sample 5: data, epoch 1, window "), std::string::npos) << shown.out;
  EXPECT_NE(shown.err.find("warning: only the numbers"), std::string::npos) << shown.err;
  EXPECT_EQ(ledger_json()["files"][0]["found"], false);
}

TEST_F(DataLedger, FindsFilesOfAnotherRun) {
  train({"--train.steps=10"});
  train({"--train.steps=10", "--train.out=other", "--train.seed=5"});
  for (const char* name : {kLedgerFile, kDataRecordFile})
    std::filesystem::copy_file(folder_ / "other" / name, folder_ / "run" / name,
                               std::filesystem::copy_options::overwrite_existing);
  expect_refused(ledger(), {"[ledger]", "than the newest checkpoint was trained on", "another run's"});
}

TEST_F(DataLedger, FindsWhatWasChanged) {
  train({"--train.steps=10", "--train.checkpoint_every=5"});
  train({"--train.steps=20", "--train.checkpoint_every=5"});
  auto replace = [](std::string& line, const std::string& from, const std::string& to) {
    size_t at = line.find(from);
    ASSERT_NE(at, std::string::npos) << line;
    line.replace(at, from.size(), to);
  };
  expect_found([](auto& lines) { lines.erase(lines.begin() + 1); }, "a line was removed");
  expect_found([](auto& lines) { lines.insert(lines.begin() + 1, lines[1]); }, "repeated");
  expect_found([&](auto& lines) { replace(lines[1], "\"sample\":10", "\"sample\":12"); }, "follow");
  expect_found([&](auto& lines) { lines.resize(4); }, "newest checkpoint");

  std::string record = read_file(folder_ / "run" / kDataRecordFile);
  std::string other = record;
  replace(other, "\"seed\": 1337", "\"seed\": 1338");
  write_file_quickly(folder_ / "run" / kDataRecordFile, other);
  expect_refused(ledger(), {"data of another order"});
  write_file_quickly(folder_ / "run" / kDataRecordFile, record);

  auto shard = folder_ / "data" / "train_000000.bin";
  std::string bytes = read_file(shard);
  bytes[1100] ^= 1;
  write_file_quickly(shard, bytes);
  expect_refused(ledger(), {"data/train_000000.bin", "has changed since the run used it"});
  EXPECT_EQ(ledger({"--no-verify"}).status, 0);
}

// The chain of the lines that are left is whole.
TEST_F(DataLedger, FindsThatItWasCut) {
  train({"--train.steps=20", "--train.checkpoint_every=5"});
  std::string text = read_file(folder_ / "run" / kLedgerFile);
  size_t half = text.rfind('\n', text.size() / 2) + 1;  // behind the second of four checkpoints
  write_file_quickly(folder_ / "run" / kLedgerFile, text.substr(0, half));
  expect_refused(ledger(), {"[ledger]", "lines were removed"});
  train({"--train.steps=30", "--train.checkpoint_every=5"});
  expect_refused(ledger(), {"[ledger]", "a line was removed"});
}

// What the record says of its windows takes hours to count.
TEST_F(DataLedger, CountsNothingOfARecordThatIsNotOfTheLines) {
  train({"--train.steps=20"});
  std::string text = read_file(folder_ / "run" / kDataRecordFile), windows = "\"windows\": ";
  write_file_quickly(folder_ / "run" / kDataRecordFile,
                     text.replace(text.find(windows), windows.size(), windows + "4000000000"));
  ProgramResult result = ledger();
  expect_refused(result, {"[ledger]", "belongs to data of another order"});
  EXPECT_NE(result.out.find("uses of windows: not counted"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("uses of a window"), std::string::npos) << result.out;
}

// Lines and record fit together, but what they say would take days to count. There is no checkpoint that says less.
TEST_F(DataLedger, ClaimsAreBoundedBeforeTheyAreCounted) {
  train({"--train.steps=20"});
  std::filesystem::remove_all(folder_ / "run/checkpoints");
  DataRecord record = read_data_record(folder_ / "run");
  auto forge = [&](int64_t windows, int64_t step) {
    record.datasets[0].share.windows = windows;
    std::vector<LedgerLine> lines = read_ledger(folder_ / "run");
    std::string text, chain;
    std::erase_if(lines, [](const LedgerLine& line) { return line.event == LedgerLine::Event::kCheckpoint; });
    for (LedgerLine& line : lines) {
      line.order = order_checksum(record);
      if (line.event == LedgerLine::Event::kEnd) line.step = line.reached = step, line.sample = step * 2;
      chain = line.chain = ledger_chain(chain, line);
      text += format_ledger_line(line) + "\n";
    }
    write_file_quickly(folder_ / "run" / kLedgerFile, text);
    write_file_quickly(folder_ / "run" / kDataRecordFile, to_json(record));
  };
  int64_t windows = record.datasets[0].share.windows, many = int64_t(1) << 37;
  forge(windows, 20);
  EXPECT_EQ(ledger().status, 0) << "what can be is counted";
  forge(many, many);
  ProgramResult result = ledger();
  expect_refused(result, {"[ledger]", "data: data.json has 137438953472 windows of it, but its files hold at most"});
  EXPECT_EQ(result.out.find("uses of a window"), std::string::npos) << result.out;
  forge(windows, many);
  expect_refused(ledger(), {"[ledger] expected at most 8589934592 samples to count, got 274877906944 in 1 passes",
                            "--max-count=2.8e+11"});
  EXPECT_EQ(ledger({"--no-verify"}).status, 0);
  forge(windows, 50);
  expect_refused(ledger({"--max-count=99"}), {"expected at most 99 samples to count, got 100"});
  EXPECT_EQ(ledger({"--max-count=100"}).status, 0);
}

TEST_F(DataLedger, NamesTheFolderThatIsNoRun) {
  expect_refused(run_program(folder_.path(), {"data", "ledger", "data"}),
                 {"data.json", "run folder data", "train.out"});
}

}  // namespace
}  // namespace tokamak
