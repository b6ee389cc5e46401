// Data that is not what people mean, through the program itself: each is told, with what to do, or taken as it was
// meant.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/token_shard_index.h"
#include "tests/data/sources/gzip_bytes.h"
#include "tests/data/sources/tar_bytes.h"
#include "tests/support/expect_refused.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using test::tiny_arguments;

std::string json_lines() {
  std::string lines;
  for (int i = 0; i < 10; ++i) lines += fmt::format("{{\"text\": \"the king said number {} unto them\"}}\n", i);
  return lines;
}

class DataContent : public testing::Test {
 protected:
  void SetUp() override { test::make_tiny_data(folder_.path()); }

  void write(const std::string& name, std::string_view content) {
    fs::create_directories((folder_ / name).parent_path());
    write_file_quickly(folder_ / name, content);
  }

  ProgramResult run(std::vector<std::string> arguments, const std::string& input = "") {
    return run_program(folder_.path(), std::move(arguments), input);
  }

  ProgramResult prepare(std::vector<std::string> arguments, const std::string& input = "") {
    arguments.insert(arguments.begin(), "prepare");
    arguments.insert(arguments.end(), {"--vocab=data", "--out=out"});
    return run(std::move(arguments), input);
  }

  ProgramResult train(std::vector<std::string> more) {
    more.insert(more.end(), {"--data.tokenizer=data", "--train.steps=1", "--train.resume=false"});
    return run(tiny_arguments("train", more));
  }

  int64_t documents() {
    TokenShardIndex index = read_token_shard_index(folder_ / "out");
    return index.train.documents + index.val.documents;
  }

  /// Standard error of a run that succeeds has each of the pieces.
  static void expect_told(const ProgramResult& result, std::initializer_list<std::string> pieces) {
    EXPECT_EQ(result.status, 0) << result.err;
    for (const std::string& piece : pieces)
      EXPECT_NE((result.out + result.err).find(piece), std::string::npos)
          << "said: " << result.out << result.err << "\nlacks: " << piece;
  }

  TemporaryFolder folder_;
};

TEST_F(DataContent, JsonLinesAreDocumentsUnderOtherNames) {
  write("part.json", json_lines());
  write("part.json.gz", gzip_bytes(json_lines()));
  write("c4/part.json.gz", gzip_bytes(json_lines()));
  for (const char* input : {"part.json", "part.json.gz", "c4"}) {
    expect_told(prepare({input}), {});
    EXPECT_EQ(documents(), 10) << input;
  }
  expect_told(prepare({"-"}, json_lines()), {"standard input is JSON lines", "--format=text"});
  EXPECT_EQ(documents(), 10);
  expect_told(prepare({"-"}, gzip_bytes(json_lines())), {"standard input is JSON lines"});
  EXPECT_EQ(documents(), 10);
  write("part.txt", json_lines());
  expect_told(prepare({"part.txt"}), {"part.txt is JSON lines, and is taken as text", "--format=jsonl"});
  expect_told(prepare({"part.txt", "--format=jsonl"}), {});
  EXPECT_EQ(documents(), 10);
}

TEST_F(DataContent, JsonLinesAreNotTrainedOnAsText) {
  write("part.json", json_lines());
  write("part", json_lines());
  for (const char* name : {"part.json", "part"})
    expect_refused(train({"--data.path=" + std::string(name)}), {name, "jsonl", "tokamak prepare"});
  write("part.txt", json_lines());
  expect_told(train({"--data.path=part.txt"}), {"part.txt is JSON lines", "tokamak prepare --format=jsonl"});
}

TEST_F(DataContent, OddTextIsToldWhereverItComesFrom) {
  std::string latin1 = test::tiny_text(3000) + "caf\xe9";
  std::string table = "id,text\n1,one\n2,two\n3,three\n4,four\n";
  write("a.txt.gz", gzip_bytes(latin1));
  write("a.gz", gzip_bytes(table));
  write("a.tar", tar_member("b.txt", latin1) + tar_end());
  expect_told(prepare({"a.txt.gz"}), {"a.txt.gz is not UTF-8", "iconv"});
  expect_told(prepare({"a.gz"}), {"a.gz is a table", "--format=csv --field=COLUMN"});
  expect_told(prepare({"a.tar"}), {"a.tar member b.txt is not UTF-8"});
  expect_told(prepare({"-"}, table), {"standard input is a table"});
  write("table", table + test::tiny_text());
  write("latin1.txt", latin1);
  expect_told(train({"--data.path=latin1.txt"}), {"latin1.txt is not UTF-8"});
  std::string rows = table;
  for (int i = 0; i < 500; ++i) rows += "5,five\n";
  write("other", rows);
  expect_told(train({"--data.path=latin1.txt", "--data.val_path=other", "--train.eval_every=1"}),
              {"latin1.txt is not UTF-8", "other is a table"});
}

TEST_F(DataContent, InspectDoesNotCallItGood) {
  write("part.json", "[{\"text\": \"one\"}]");
  write("a.txt", "caf\xe9 and more");
  write("good.txt", "text");
  ProgramResult result = run({"data", "inspect", "part.json", "a.txt"});
  expect_told(result, {"part.json is JSON", "a.txt is not UTF-8", "whole, but"});
  EXPECT_EQ(result.out.find(": good"), std::string::npos) << result.out;
  EXPECT_NE(run({"data", "inspect", "good.txt"}).out.find(": good"), std::string::npos);
  write("lines", json_lines());
  expect_told(run({"data", "inspect", "lines"}), {"jsonl", "10 documents", ": good", "lines is JSON lines"});
  auto report = nlohmann::json::parse(run({"data", "inspect", "a.txt", "--json"}).out);
  EXPECT_EQ(report["files"][0]["good"], false);
  EXPECT_EQ(report["files"][0]["notes"].size(), 1u);
}

TEST_F(DataContent, NoTextIsRefusedBeforeAnyWork) {
  write("b.txt", std::string("PAR1\x15\0\x15\0", 8));
  expect_refused(run({"prepare", "text.txt", "b.txt", "--out=out"}), {"b.txt", "Parquet"});
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

TEST_F(DataContent, SplitsArePooledWithAWord) {
  for (const char* name : {"d/train-0.txt", "d/validation-0.txt", "d/test-0.txt"}) write(name, test::tiny_text());
  expect_told(prepare({"d"}), {"different splits", "1 of train", "1 of validation", "1 of test", "data.val_path"});
  expect_told(train({"--data.path=d"}), {"different splits", "1 of test"});
  EXPECT_EQ(prepare({"d/train*"}).err.find("different splits"), std::string::npos);
}

TEST_F(DataContent, AFileInBothPathsIsTold) {
  write("copy.txt", test::tiny_text());
  write("other.txt", test::tiny_text(6000, 2));
  std::vector<std::string> both = {"--data.path=text.txt", "--data.val_path=text.txt", "--train.eval_every=1"};
  expect_told(train(both), {"text.txt is in data.path as well as in data.val_path"});
  both[1] = "--data.val_path=copy.txt";
  expect_told(train(both), {"copy.txt is in data.path as well"});
  both[1] = "--data.val_path=other.txt";
  EXPECT_EQ(train(both).out.find("as well as"), std::string::npos);
}

TEST_F(DataContent, WhatIsPassedOverIsCounted) {
  write("d/a.txt", test::tiny_text());
  write("d/b.pdf", "%PDF-1.7");
  write("e/c.txt", "text");
  fs::create_directory_symlink("../e", folder_ / "d/link");
  fs::create_symlink("gone.txt", folder_ / "d/dangling.txt");
  std::initializer_list<std::string> pieces = {"passed over 3 files", "1 .pdf", "1 linked to a folder",
                                               "1 linked to nothing", "is a PDF document"};
  expect_told(prepare({"d"}), pieces);
  expect_told(train({"--data.path=d"}), pieces);
  expect_told(run({"data", "inspect", "d"}), pieces);
}

TEST_F(DataContent, SamplesOfSeveralMembersAreTold) {
  write("s.tar", tar_member("1.txt", "one one") + tar_member("1.json", "{\"text\": \"one one\"}") +
                     tar_member("1.png", "image") + tar_end());
  expect_told(prepare({"s.tar"}), {"members 1.txt and 1.json of one sample", "--members='*.txt'", "1 .png"});
}

TEST_F(DataContent, TokensOfAnotherTypeAreTold) {
  std::string as32, as16;
  for (uint64_t i = 0; i < 2000; ++i) {
    auto id = uint16_t(philox4x32(1, i)[0] % 300);
    std::string two(reinterpret_cast<const char*>(&id), 2);
    as16 += two;
    as32 += two + std::string(2, '\0');
  }
  write("t.bin", as32);
  expect_told(run({"data", "inspect", "t.bin", "--format=raw"}), {"whole, but", "data.token_type=uint32"});
  expect_told(prepare({"t.bin", "--format=raw"}), {"t.bin: every second token is 0", "--token-type=uint32"});
  std::vector<std::string> raw = {"--data.path=t.bin", "--data.format=raw", "--model.vocab=301"};
  expect_told(train(raw), {"t.bin: every second token", "data.token_type=uint32"});
  raw.push_back("--data.token_type=uint32");
  EXPECT_EQ(train(raw).out.find("every second"), std::string::npos);
  write("t.bin", as16);
  expect_refused(train(raw), {"t.bin", "data.token_type"});
  expect_told(run({"data", "inspect", "t.bin", "--format=raw", "--token-type=uint32"}), {"data.token_type=uint16"});
}

}  // namespace
}  // namespace tokamak
