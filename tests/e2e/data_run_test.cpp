// Training on every form of data: the same samples whatever reads them, restarts that go on in the global order, and
// data that changed meanwhile is found.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "checkpoint/hugging_face_files.h"
#include "data/data_tokenizer.h"
#include "data/ledger_record.h"
#include "data/token_shard_index.h"
#include "run/run_data.h"
#include "run/run_progress.h"
#include "tests/e2e/finished_run.h"
#include "tests/e2e/small_run.h"
#include "tests/support/expect_error.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using Event = LedgerLine::Event;
using test::expect_same;
using test::read_run;

class DataRunTest : public test::SmallRun {
 protected:
  /// Prepared folder, shard file and text in one mixture.
  RunConfig mixture(const std::string& out) const {
    RunConfig config = SmallRun::config(out);
    fs::path shard = folder_ / "data" / read_token_shard_index(folder_ / "data").train.shards.at(0).file;
    config.data.path = {(folder_ / "data").string() + "@2", shard.string() + "@1",
                        (folder_ / "text.txt").string() + "@1"};
    return config;
  }
};

TEST_F(DataRunTest, SamplesBeginWithWhatTheDataHas) {
  RunData one(resolve(with_data_vocab(test::tiny_config(folder_.path())), {}), nullptr);
  EXPECT_EQ(one.sample_prompt(), one.tokenizer()->encode("\n")) << "a single document";
  PrepareOptions options;
  for (int i = 0; i < 4; ++i) {
    fs::path file = folder_ / fmt::format("{}.txt", i);
    write_file_quickly(file, test::tiny_text(1000, uint64_t(i)));
    options.inputs.push_back(file.string());
  }
  options.out = folder_ / "many";
  options.vocab_size = 280;
  prepare(options);
  RunConfig config = test::tiny_config(folder_.path());
  config.data.path = {(folder_ / "many").string()};
  RunData many(resolve(with_data_vocab(config), {}), nullptr);
  EXPECT_EQ(many.sample_prompt(), std::vector{many.tokenizer()->end_of_text()});
}

TEST_F(DataRunTest, WorkersDoNotChangeABit) {
  RunConfig none = mixture("none"), many = mixture("many");
  none.data.workers = 0;
  many.data.workers = 5;
  run(none);
  run(many);
  expect_same(read_run(none.train.out, 20), read_run(many.train.out, 20));
}

TEST_F(DataRunTest, GoesOnInTheSameOrderFromAnotherPlace) {
  RunConfig straight = mixture("straight"), broken = mixture("broken");
  run(straight);
  run(broken, 10);
  fs::rename(folder_ / "data", folder_ / "moved");
  fs::rename(folder_ / "text.txt", folder_ / "moved.txt");
  fs::path shard = folder_ / "moved" / read_token_shard_index(folder_ / "moved").train.shards.at(0).file;
  broken.data.path = {(folder_ / "moved").string() + "@0.5", shard.string() + "@0.25",
                      (folder_ / "moved.txt").string() + "@0.25"};
  broken.data.workers = 1;
  run(broken);
  expect_same(read_run(straight.train.out, 20), read_run(broken.train.out, 20));
}

// 7 steps of 2 samples, then 5 of 4: 34 samples, and the ledger says so.
TEST_F(DataRunTest, AnotherMicroBatchGoesOnAtTheSameSample) {
  RunConfig config = mixture("run");
  run(config, 7);
  config.train.batch = 4;
  config.train.steps = 12;
  run(config);
  std::vector<LedgerLine> lines = read_ledger(config.train.out);
  std::vector<std::tuple<Event, int64_t, int64_t, int64_t>> got;
  for (const LedgerLine& line : lines) got.emplace_back(line.event, line.step, line.sample, line.samples_per_step);
  EXPECT_EQ(got, (std::vector<std::tuple<Event, int64_t, int64_t, int64_t>>{{Event::kStart, 0, 0, 2},
                                                                            {Event::kCheckpoint, 7, 14, 2},
                                                                            {Event::kEnd, 7, 14, 2},
                                                                            {Event::kStart, 7, 14, 4},
                                                                            {Event::kCheckpoint, 12, 34, 4},
                                                                            {Event::kEnd, 12, 34, 4}}));
  DataRecord record = read_data_record(config.train.out);
  for (const LedgerLine& line : lines) EXPECT_EQ(line.order, order_checksum(record));
  ASSERT_EQ(record.datasets.size(), 3u);
  EXPECT_EQ(record.datasets[0].kind, "prepared");
  EXPECT_EQ(record.datasets[1].kind, "tokens");
  EXPECT_EQ(record.datasets[2].kind, "text");
  EXPECT_EQ(record.datasets[0].share.quota, 2048);
}

TEST_F(DataRunTest, StepsLostInACrashAreVisible) {
  RunConfig config = mixture("run");
  config.train.checkpoint_every = 5;
  listener_.throw_at_step = 13;
  EXPECT_THROW(run(config), std::runtime_error);
  listener_.throw_at_step = 0;
  run(config);
  std::vector<LedgerLine> lines = read_ledger(config.train.out);
  auto again = std::find_if(lines.begin() + 1, lines.end(), [](auto& line) { return line.event == Event::kStart; });
  ASSERT_NE(again, lines.end());
  EXPECT_EQ(again->step, 10);
  EXPECT_EQ(again->sample, 20);
  EXPECT_EQ(again->reached, 13);
  EXPECT_EQ(lines.back().event, Event::kEnd);
  EXPECT_EQ(lines.back().sample, 40);
}

TEST_F(DataRunTest, MetricsSayHowLongDataWasWaitedFor) {
  RunConfig config = mixture("run");
  run(config);
  std::ifstream lines(folder_ / "run/metrics.jsonl");
  for (std::string line; std::getline(lines, line);) EXPECT_GE(nlohmann::json::parse(line)["data_wait_ms"], 0.0);
}

TEST_F(DataRunTest, ValidatesOnDataOfItsOwn) {
  RunConfig config = mixture("run");
  config.data.path = {(folder_ / "text.txt").string()};
  config.data.tokenizer = (folder_ / "data").string();
  config.train.eval_every = 10;
  EXPECT_FALSE(run(config).val_loss);
  EXPECT_NE(listener_.messages.find("no validation: it needs data.val_path"), std::string::npos) << listener_.messages;
  config.train.out = (folder_ / "run2").string();
  config.data.val_path = {(folder_ / "data").string()};
  TrainSummary summary = run(config);
  EXPECT_TRUE(summary.val_loss && summary.bits_per_byte);
}

TEST_F(DataRunTest, FilesOfTokensNeedNoTokenizer) {
  RunConfig config = mixture("run");
  fs::path shard = folder_ / "data" / read_token_shard_index(folder_ / "data").train.shards.at(0).file;
  config.data.path = {shard.string()};
  expect_user_error([&] { run(config); }, {"[model.vocab]", "--model.vocab", "--data.tokenizer"});
  config.model.vocab = 100;
  expect_user_error([&] { run(config); }, {shard.string() + ": token", "ids below 100"});
  config.model.vocab = 301;
  config.train.sample_every = 5;
  expect_user_error([&] { run(config); }, {"tokenizer for samples", "train.sample_every", "--data.tokenizer"});
  config.train.sample_every = 0;
  config.train.resume = false;
  EXPECT_EQ(run(config).steps, 20);
}

TEST_F(DataRunTest, ChangedDataIsFoundBeforeAnyWork) {
  RunConfig config = mixture("run");
  run(config, 5);
  std::string text = read_file(folder_ / "text.txt"), changed = text;
  changed[100] ^= 1;
  write_file_quickly(folder_ / "text.txt", changed);
  std::string before = read_file(folder_ / "run/ledger.jsonl");
  expect_user_error([&] { run(config); }, {(folder_ / "text.txt").string(), "has changed since", "restore it"});
  write_file_quickly(folder_ / "text.txt", text);
  fs::path shard = folder_ / "data" / read_token_shard_index(folder_ / "data").train.shards.at(0).file;
  std::string tokens = read_file(shard), flipped = tokens;
  flipped[flipped.size() / 2] ^= 1;
  write_file_quickly(shard, flipped);
  // That it has changed, or first that its checksum is not that of its index: shards are read whole beside the start.
  expect_user_error([&] { run(config); }, {shard.string()});
  write_file_quickly(shard, tokens);
  EXPECT_EQ(read_file(folder_ / "run/ledger.jsonl"), before);
  EXPECT_EQ(run(config).steps, 20);
}

// Samples do not depend on it, so the run goes on.
TEST_F(DataRunTest, OtherValidationDataIsTold) {
  RunConfig config = mixture("run");
  config.train.eval_every = 5;
  fs::path validation = folder_ / "validation.txt";
  config.data.val_path = {validation.string()};
  write_file_quickly(validation, test::tiny_text(2000, 7));
  auto run_to = [&](int64_t steps) {
    config.train.steps = steps;
    return run(config).steps;
  };
  run_to(5);
  run_to(10);
  EXPECT_EQ(listener_.messages.find("validation data"), std::string::npos) << listener_.messages;
  fs::path moved = folder_ / "moved.txt";
  fs::rename(validation, moved);
  config.data.val_path = {moved.string()};
  run_to(13);
  EXPECT_EQ(listener_.messages.find("validation data"), std::string::npos) << "the same, elsewhere";
  write_file_quickly(moved, test::tiny_text(2000, 8));
  run_to(16);
  EXPECT_NE(listener_.messages.find("warning: the validation data is not that of step 13"), std::string::npos)
      << listener_.messages;
  listener_.messages.clear();
  EXPECT_EQ(run_to(20), 20);
  EXPECT_EQ(listener_.messages.find("validation data"), std::string::npos) << "it is told once";
}

TEST_F(DataRunTest, NothingIsSavedThatCameOfADamagedShard) {
  RunConfig config = test::tiny_config(folder_.path());
  config.train.out = (folder_ / "run").string();
  fs::path shard = folder_ / "data" / read_token_shard_index(folder_ / "data").train.shards.at(0).file;
  std::string good = read_file(shard), bad = good;
  bad[bad.size() / 2 & ~size_t(1)] ^= 1;  // a token of the vocabulary becomes another one
  write_file_quickly(shard, bad);
  expect_user_error([&] { run(config); }, {shard.string(), "checksum", "damaged"});
  EXPECT_FALSE(find_checkpoint(config.train.out, nullptr));
  write_file_quickly(shard, good);
  EXPECT_EQ(run(config).steps, 20);
}

TEST_F(DataRunTest, SaysThatAnIndexHasNoChecksum) {
  fs::path path = folder_ / "data" / kIndexFile;
  nlohmann::json root = nlohmann::json::parse(read_file(path));
  root["version"] = 1;
  root.erase("tokenizer");
  root.erase("checksum");
  write_file_quickly(path, root.dump());
  RunConfig config = test::tiny_config(folder_.path());
  config.train.out = (folder_ / "run").string();
  EXPECT_EQ(run(config).steps, 20);
  EXPECT_NE(listener_.messages.find("without checksums of itself"), std::string::npos) << listener_.messages;
}

// The lines of a ledger that began without checksums of tokens stay those of its order.
TEST_F(DataRunTest, ARecordWithoutTokensStaysSo) {
  RunConfig config = mixture("run");
  config.model.vocab = 301;
  FoundCheckpoint found{.path = folder_ / "run", .state = {}};
  RunData(resolve(config, {}), nullptr).describe(found.state, 0);
  DataRecord record = data_record_from_json(found.state.data_json, "test");
  for (DatasetRecord& dataset : record.datasets) {
    EXPECT_FALSE(dataset.tokens.empty());
    dataset.tokens.clear();
  }
  found.state.data_json = to_json(record);
  CheckpointState state;
  RunData(resolve(config, {}), &found).describe(state, 0);
  EXPECT_EQ(state.data_json, found.state.data_json);
}

// A large vocabulary is not written as text again at each save, and on ranks that write no files not once.
TEST_F(DataRunTest, FilesForOthersAreMadeOnceWhereTheyAreWritten) {
  RunConfig config = test::tiny_config(folder_.path());
  config.model.vocab = 301;
  ResolvedRun run = resolve(config, {});
  RunData data(run, nullptr, false);
  EXPECT_TRUE(describe_progress({}, run, data, false).for_others.empty());
  EXPECT_EQ(&data.files_for_others(), &data.files_for_others());
  CheckpointState written = describe_progress({}, run, data, true);
  EXPECT_EQ(written.for_others, checkpoint_files_for_others(config.model, data.tokenizer()));
  EXPECT_TRUE(written.for_others.contains("tokenizer.json"));
}

TEST_F(DataRunTest, OtherSettingsThatWouldChangeTheOrder) {
  RunConfig config = mixture("run");
  run(config, 5);
  auto with = [&](auto change) {
    RunConfig other = config;
    change(other);
    return [this, other] { run(other); };
  };
  expect_user_error(with([](RunConfig& c) { c.data.path.pop_back(); }), {"entries of data.path as the 3", "got 2"});
  expect_user_error(with([](RunConfig& c) { c.data.path[0].back() = '3'; }), {"weight of", "2048 samples of a block"});
  expect_user_error(with([](RunConfig& c) { std::swap(c.data.path[0], c.data.path[2]); }), {"has changed since"});
  expect_user_error(with([](RunConfig& c) { c.model.context = 8; }), {"model.context = 16", "got 8"});
  expect_user_error(with([](RunConfig& c) { c.train.seed = 5; }), {"train.seed = 1337", "got 5"});
  EXPECT_EQ(run(config).steps, 20);
}

}  // namespace
}  // namespace tokamak
