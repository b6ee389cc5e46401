#include "data/ledger_record.h"

#include <gtest/gtest.h>

#include "data/ledger.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

using Event = LedgerLine::Event;

DataRecord small_record() {
  return {.seed = 7,
          .context = 16,
          .datasets = {{.path = "web",
                        .kind = "prepared",
                        .share = {100, 4000},
                        .window_bytes = 0,
                        .files = {{"web/train_000000.bin", 4224, "xxh64:1"}, {"web/train_000001.bin", 99, "xxh64:2"}}},
                       {.path = "books/*.txt",
                        .kind = "text",
                        .share = {50, 96},
                        .window_bytes = 64,
                        .files = {{"books/a.txt", 3300, "xxh64:3"}}}}};
}

TEST(DataRecord, ReadsBack) {
  DataRecord record = small_record();
  DataRecord read = data_record_from_json(to_json(record), "data.json");
  EXPECT_EQ(to_json(read), to_json(record));
  EXPECT_EQ(read.datasets[1].files, record.datasets[1].files);
  SampleOrder order = read.order(), expected(7, {{100, 4000}, {50, 96}});
  for (int64_t sample = 0; sample < 5000; ++sample) ASSERT_EQ(order.at(sample), expected.at(sample));
}

TEST(DataRecord, RefusesWhatMakesNoSense) {
  std::string text = to_json(small_record());
  auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos);
    changed.replace(at, from.size(), to);
    return [changed] { data_record_from_json(changed, "run/data.json"); };
  };
  expect_user_error(with("\"seed\"", "\"sead\""), {"run/data.json", "`seed`", "nothing", "damaged"});
  expect_user_error(with("4000", "4001"), {"quotas with a sum of 4096", "got 4097"});
  expect_user_error(with("100", "0"), {"at least 1 as `windows`", "got 0"});
  expect_user_error(with("100", std::to_string(int64_t(1) << 50)),
                    {"run/data.json", "at most 4398046511104 as `windows`", "got 1125899906842624", "damaged"});
  expect_user_error(with("tokamak-data", "something"), {"tokamak-data as `format`", "something"});
  expect_user_error([] { data_record_from_json("no JSON", "x"); }, {"JSON object", "no JSON"});
}

TEST(DataRecord, TheChecksumIsOfAllButPaths) {
  DataRecord moved = small_record();
  moved.datasets[0].path = "elsewhere";
  moved.datasets[0].files[0].path = "elsewhere/train_000000.bin";
  EXPECT_EQ(order_checksum(moved), order_checksum(small_record()));
  auto differs = [](auto change) {
    DataRecord record = small_record();
    change(record);
    return order_checksum(record) != order_checksum(small_record());
  };
  EXPECT_TRUE(differs([](DataRecord& r) { r.seed = 8; }));
  EXPECT_TRUE(differs([](DataRecord& r) { r.context = 17; }));
  EXPECT_TRUE(differs([](DataRecord& r) { r.datasets[0].share = {101, 4000}; }));
  EXPECT_TRUE(differs([](DataRecord& r) { r.datasets[1].window_bytes = 65; }));
  EXPECT_TRUE(differs([](DataRecord& r) { r.datasets[1].files[0].checksum = "xxh64:4"; }));
  EXPECT_TRUE(differs([](DataRecord& r) { r.datasets[1].tokens = "xxh64:4"; }));
  EXPECT_TRUE(differs([](DataRecord& r) { std::swap(r.datasets[0], r.datasets[1]); }));
}

TEST(DataRecord, SaysWhatBecameOfTheData) {
  DataRecord was = small_record();
  auto with = [&](auto change) {
    DataRecord is = small_record();
    change(is);
    return [=] { require_same_data(was, is, "run"); };
  };
  EXPECT_NO_THROW(with([](DataRecord& r) { r.datasets[0].files[0].path = r.datasets[0].path = "moved"; })());
  expect_user_error(with([](DataRecord& r) { r.seed = 8; }), {"train.seed = 7", "run", "got 8"});
  expect_user_error(with([](DataRecord& r) { r.context = 32; }), {"model.context = 16", "got 32"});
  expect_user_error(with([](DataRecord& r) { r.datasets.pop_back(); }), {"entries of data.path as the 2", "got 1"});
  expect_user_error(with([](DataRecord& r) { r.datasets[0].files[1].checksum = "xxh64:5"; }),
                    {"web/train_000001.bin", "xxh64:2", "xxh64:5", "another one, or has changed since",
                     "restore it or name", "on purpose", "--train.out", "--train.resume=false"});
  expect_user_error(with([](DataRecord& r) { r.datasets[0].files.pop_back(); }), {"files in web as the 2", "got 1"});
  expect_user_error(with([](DataRecord& r) { r.datasets[0].share.quota = 3999; }),
                    {"weight of web", "4000 samples of a block", "got 3999"});
  expect_user_error(with([](DataRecord& r) { r.datasets[1].kind = "tokens"; }), {"kind text", "got tokens"});
}

TEST(Ledger, LinesReadBack) {
  LedgerLine line{.event = Event::kCheckpoint,
                  .step = 3,
                  .sample = 24,
                  .samples_per_step = 8,
                  .reached = 5,
                  .order = "xxh64:00",
                  .time = 1.5e9,
                  .chain = "xxh64:01"};
  EXPECT_EQ(format_ledger_line(line),
            R"({"event":"checkpoint","step":3,"sample":24,"samples_per_step":8,"reached":5,"order":"xxh64:00",)"
            R"("time":1500000000.0,"chain":"xxh64:01"})");
  EXPECT_EQ(parse_ledger_line(format_ledger_line(line), "x"), line);
  expect_user_error([] { parse_ledger_line("{\"event\":\"pause\"}", "ledger.jsonl:3"); },
                    {"ledger.jsonl:3", "start, checkpoint or end", "pause"});
  expect_user_error([] { parse_ledger_line("{}", "ledger.jsonl:3"); }, {"event"});
  line.reached = 2;
  expect_user_error([&] { parse_ledger_line(format_ledger_line(line), "x"); },
                    {"at least 3 (`step`) as `reached`", "got 2"});
  line.reached = 5;
  for (double time : {-1.0, 1e18}) {  // which no calendar can show
    line.time = time;
    expect_user_error([&] { parse_ledger_line(format_ledger_line(line), "x"); }, {"seconds since 1970", "time"});
  }
}

TEST(Ledger, AppendsAcrossRestartsAndDropsATornLine) {
  TemporaryFolder run;
  DataRecord record = small_record();
  LedgerLine line{.step = 0, .sample = 0, .samples_per_step = 4};
  LedgerWriter(run.path(), record, true).write(line);
  std::string whole = read_file(run / kLedgerFile);
  write_file_atomic(run / kLedgerFile, whole + "{\"event\":\"chec");
  EXPECT_EQ(read_ledger(run.path()).size(), 1u);
  LedgerWriter(run.path(), record, false).write({.step = 2, .sample = 8, .samples_per_step = 4, .reached = 2});
  std::vector<LedgerLine> lines = read_ledger(run.path());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1].sample, 8);
  EXPECT_EQ(lines[1].order, order_checksum(record));
  EXPECT_EQ(lines[0].chain, ledger_chain("", lines[0]));
  EXPECT_EQ(lines[1].chain, ledger_chain(lines[0].chain, lines[1]));
  EXPECT_EQ(to_json(read_data_record(run.path())), to_json(record));
  LedgerWriter(run.path(), record, true).write(line);
  EXPECT_EQ(read_ledger(run.path()).size(), 1u);
}

// Else a run that goes on would join what does not belong together.
TEST(Ledger, GoesOnFromWhatTheCheckpointKnows) {
  TemporaryFolder run;
  DataRecord record = small_record();
  std::string chain;
  {
    LedgerWriter writer(run.path(), record, true);
    for (int64_t step : {0, 1, 2})
      writer.write({.step = step, .sample = 4 * step, .samples_per_step = 4, .reached = step});
    chain = writer.chain();
  }
  std::string whole = read_file(run / kLedgerFile);
  EXPECT_EQ(LedgerWriter(run.path(), record, false, chain).chain(), chain);
  EXPECT_TRUE(replay_ledger(read_ledger(run.path()), record).problems.empty());
  for (size_t left : {whole.find('\n') + 1, size_t(0)}) {
    write_file_atomic(run / kLedgerFile, whole.substr(0, left));
    LedgerWriter(run.path(), record, false, chain)
        .write({.step = 3, .sample = 12, .samples_per_step = 4, .reached = 3});
    std::vector<LedgerLine> lines = read_ledger(run.path());
    EXPECT_EQ(lines.back().chain, ledger_chain(chain, lines.back()));
    EXPECT_FALSE(replay_ledger(lines, record).problems.empty());
  }
}

// A machine without a battery for its clock, or one whose clock is nonsense, writes what can be read again.
TEST(Ledger, TakesWhatAWrongClockSays) {
  TemporaryFolder run;
  DataRecord record = small_record();
  LedgerWriter writer(run.path(), record, true);
  for (double time : {-1.4e9, -1.0, 1e18, 1.5e9}) writer.write({.samples_per_step = 4, .time = time});
  std::vector<LedgerLine> lines = read_ledger(run.path());
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0].time, 0);
  EXPECT_EQ(lines[3].time, 1.5e9);
}

TEST(Ledger, TheChainIsOfEveryField) {
  LedgerLine line{.step = 3, .sample = 24, .samples_per_step = 8, .reached = 5, .order = "a", .time = 1, .chain = ""};
  std::string chain = ledger_chain("before", line);
  auto differs = [&](auto change) {
    LedgerLine other = line;
    change(other);
    return ledger_chain("before", other) != chain;
  };
  EXPECT_NE(ledger_chain("", line), chain);
  EXPECT_FALSE(differs([](LedgerLine& l) { l.chain = "its own value does not count"; }));
  EXPECT_TRUE(differs([](LedgerLine& l) { l.event = Event::kEnd; }));
  EXPECT_TRUE(differs([](LedgerLine& l) { l.step = 4; }));
  EXPECT_TRUE(differs([](LedgerLine& l) { l.sample = 25; }));
  EXPECT_TRUE(differs([](LedgerLine& l) { l.samples_per_step = 9; }));
  EXPECT_TRUE(differs([](LedgerLine& l) { l.reached = 6; }));
  EXPECT_TRUE(differs([](LedgerLine& l) { l.order = "b"; }));
  EXPECT_TRUE(differs([](LedgerLine& l) { l.time = 2; }));
}

TEST(Ledger, NamesTheFolderWithoutOne) {
  TemporaryFolder run;
  expect_user_error([&] { read_ledger(run.path()); }, {"ledger.jsonl", run.path().string(), "tokamak train"});
  expect_user_error([&] { read_data_record(run.path()); }, {"data.json", run.path().string()});
}

}  // namespace
}  // namespace tokamak
