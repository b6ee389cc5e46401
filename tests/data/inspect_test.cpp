#include "data/inspect.h"

#include <gtest/gtest.h>

#include "data/prepare.h"
#include "data/tokenizer_files.h"
#include "tests/data/small_shards.h"
#include "tests/support/expect_error.h"
#include "tests/support/quick_file.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;

TEST(InspectFolder, CountsWhatIsThere) {
  SmallShards data({{99, 1, 2}, {3, 99, 7, 8, 9}}, {{99, 50}});
  int64_t done = 0, total = 0;
  DataReport report = inspect_folder(data.path(), [&](int64_t d, int64_t t) { done = d, total = t; });
  EXPECT_EQ(done, 20);
  EXPECT_EQ(total, 20);
  EXPECT_EQ(report.damaged(), 0);
  ASSERT_EQ(report.files.size(), 3u);
  EXPECT_EQ(report.files[0].bytes, 1024 + 3 * 2);
  EXPECT_EQ(report.files[2].split, "val");
  EXPECT_EQ(report.files[2].tokens.least(), 50);
  TokenStats train = report.tokens("train");
  EXPECT_EQ(train.tokens(), 8);
  EXPECT_EQ(train.lengths().documents, 2);  // one of them goes over both shards
  EXPECT_EQ(train.lengths().longest, 3);
  EXPECT_EQ(train.lengths().counts[1], 2);
}

TEST(InspectFolder, FindsEveryDamagedShard) {
  SmallShards data({{0, 1, 2}, {3, 4}, {5, 6}, {7}, {8}, {9}}, {{10}});
  auto shard = [&](int i) { return data.path() / data.index().train.shards[size_t(i)].file; };
  auto change = [&](int i, auto edit) {
    std::string bytes = read_file(shard(i));
    edit(bytes);
    write_file_quickly(shard(i), bytes);
  };
  change(0, [](std::string& bytes) { bytes[1026] ^= 4; });     // a bit of a token
  change(1, [](std::string& bytes) { bytes.pop_back(); });     // cut short
  change(2, [](std::string& bytes) { bytes[0] ^= 1; });        // the magic number
  change(3, [](std::string& bytes) { bytes[1000] ^= 0x10; });  // a bit that only the checksum sees
  fs::remove(shard(4));
  DataReport report = inspect_folder(data.path());
  EXPECT_EQ(report.damaged(), 5);
  const char* expected[] = {"checksum", "cut short", "magic", "checksum", "No such file", "", ""};
  for (size_t i = 0; i < report.files.size(); ++i) {
    const FileReport& file = report.files[i];
    EXPECT_EQ(file.problem.empty(), *expected[i] == '\0') << file.problem;
    EXPECT_NE(file.problem.find(expected[i]), std::string::npos) << file.problem;
    EXPECT_TRUE(file.problem.empty() || file.problem.find(file.path.string()) != std::string::npos) << file.problem;
  }
  EXPECT_EQ(report.tokens("train").tokens(), 1);
}

TEST(InspectFolder, ComparesTokensWithIndexAndVocabulary) {
  SmallShards data({{0, 1, 98}}, {{10}});
  auto problem_with = [&](auto change) {
    TokenShardIndex index = data.index();
    change(index);
    write_token_shard_index(index, data.path());
    return inspect_folder(data.path()).files[0].problem;
  };
  EXPECT_EQ(problem_with([](TokenShardIndex&) {}), "");
  EXPECT_NE(problem_with([](TokenShardIndex& index) { index.vocab_size = 98; }).find("token ids below 98, got 98"),
            std::string::npos);
  EXPECT_NE(
      problem_with([](TokenShardIndex& index) { index.train.shards[0].max_token = 99; }).find("expected 99 as the"),
      std::string::npos);
  EXPECT_NE(problem_with([](TokenShardIndex& index) { index.train.shards[0].tokens = 4; }).find("the 4 tokens of"),
            std::string::npos);
}

TEST(InspectFolder, FindsADamagedTokenizer) {
  MemoryFolder folder;
  write_file_quickly(folder / "a.txt", std::string(3000, 'a'));
  PrepareOptions options = {.inputs = {(folder / "a.txt").string()}, .out = folder / "data", .vocab_size = 260};
  TokenShardIndex index = prepare(options);
  EXPECT_EQ(inspect_folder(options.out).damaged(), 0);
  ASSERT_EQ(index.tokenizer.size(), 3u);
  for (const FileChecksum& file : index.tokenizer) {
    fs::path path = options.out / file.file;
    std::string good = read_file(path), bad = good;
    bad[bad.size() / 2] ^= 1;
    write_file_quickly(path, bad);
    DataReport report = inspect_folder(options.out);
    EXPECT_EQ(report.damaged(), 1) << path;
    expect_user_error([&] { load_tokenizer(options.out); }, {"[tokenizer]", file.file, "checksum", "damaged"});
    write_file_quickly(path, good);
  }
  load_tokenizer(options.out);
}

TEST(InspectSamples, AreSpreadOverTheData) {
  SmallShards data({{0, 1, 2}, {3, 4, 5, 6}}, {{7}});
  DataReport report = inspect_folder(data.path());
  std::vector<DataSample> samples = sample_tokens(report, 4, 2);
  ASSERT_EQ(samples.size(), 4u);
  EXPECT_EQ(samples[0].ids, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(samples[1].ids, (std::vector<int32_t>{2}));  // the shard ends
  EXPECT_EQ(samples[2].ids, (std::vector<int32_t>{4, 5}));
  EXPECT_EQ(samples[2].token, 1);
  EXPECT_EQ(samples[2].path, report.files[1].path);
  EXPECT_TRUE(sample_tokens(report, 0, 2).empty());
}

TEST(InspectFiles, CountsDocumentsOfText) {
  TemporaryFolder folder;
  write_file_quickly(folder / "a.jsonl", "{\"text\": \"one\"}\n{\"text\": \"\"}\n{\"text\": \"three\"}\n");
  write_file_quickly(folder / "b.txt", std::string(1000, 'b'));
  DataReport report = inspect_files(folder.path().string(), {}, std::nullopt);
  EXPECT_EQ(report.damaged(), 0);
  ASSERT_EQ(report.files.size(), 2u);
  EXPECT_EQ(report.files[0].format, "jsonl");
  EXPECT_EQ(report.files[0].documents.documents, 2);
  EXPECT_EQ(report.files[0].documents.longest, 5);
  EXPECT_EQ(report.files[0].text_bytes, 8);
  EXPECT_EQ(report.files[0].beginning, "one");
  EXPECT_EQ(report.files[1].documents.documents, 1);
  EXPECT_EQ(report.files[1].beginning, std::string(400, 'b'));
  EXPECT_TRUE(sample_tokens(report, 3, 4).empty());
}

TEST(InspectFiles, CountsTokens) {
  SmallShards data({{99, 1, 2, 3}, {4, 99, 5}}, {});
  DataReport report = inspect_files((data.path() / "train_*.bin").string(), {}, 99);
  EXPECT_EQ(report.damaged(), 0) << report.files[0].problem;
  ASSERT_EQ(report.files.size(), 2u);
  EXPECT_EQ(report.files[0].format, "bin");
  EXPECT_EQ(report.files[0].stored_as, "uint16");
  EXPECT_TRUE(report.files[0].checksum.starts_with("xxh64:"));
  TokenStats tokens = report.tokens("");
  EXPECT_EQ(tokens.tokens(), 7);
  EXPECT_EQ(tokens.most(), 99);
  EXPECT_EQ(tokens.lengths().documents, 2);  // 1 2 3 4 and 5
  EXPECT_EQ(tokens.lengths().longest, 4);
  std::vector<DataSample> samples = sample_tokens(report, 2, 3);
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[1].ids, (std::vector<int32_t>{3}));
}

// Large enough to be cut among threads.
TEST(InspectFiles, CountsTokensOnAllCores) {
  std::vector<int32_t> ids(1'500'000);
  TokenStats expected(7);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = int32_t(i * i % 65521);
  expected.add(ids);
  SmallShards data({ids}, {}, 65521);
  int64_t done = 0, total = 0;
  DataReport report = inspect_files((data.path() / "train_000000.bin").string(), {}, 7,
                                    [&](int64_t d, int64_t t) { done = d, total = t; });
  TokenStats tokens = report.tokens("");
  EXPECT_EQ(tokens.tokens(), 1'500'000);
  EXPECT_EQ(tokens.separators(), expected.separators());
  EXPECT_EQ(tokens.lengths().counts, expected.lengths().counts);
  EXPECT_EQ(total, 3'000'000 + 1024);
  EXPECT_NEAR(double(done), double(total), 10);
}

TEST(InspectFiles, PartsOfADocumentAreOneDocument) {
  TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 300; ++i) text += "word" + std::to_string(i) + " ";
  write_file_quickly(folder / "a.txt", text);
  DataReport report = inspect_files((folder / "a.txt").string(), {.part_bytes = 100}, std::nullopt);
  EXPECT_EQ(report.files.at(0).documents.documents, 1);
  EXPECT_EQ(report.files.at(0).documents.longest, int64_t(text.size()));
  EXPECT_EQ(report.files.at(0).text_bytes, int64_t(text.size()));
  EXPECT_EQ(report.files.at(0).beginning, text.substr(0, 400));
}

TEST(InspectFiles, GoesOnBehindADamagedOne) {
  TemporaryFolder folder;
  write_file_quickly(folder / "a.jsonl", "{\"text\": \"one\"}\n{\"text\": 5}\n");
  write_file_quickly(folder / "b.jsonl", "{\"text\": \"good\"}\n");
  DataReport report = inspect_files((folder / "*.jsonl").string(), {}, std::nullopt);
  ASSERT_EQ(report.files.size(), 2u);
  EXPECT_EQ(report.damaged(), 1);
  EXPECT_NE(report.files[0].problem.find("a.jsonl"), std::string::npos) << report.files[0].problem;
  EXPECT_EQ(report.files[0].documents.documents, 1);
  EXPECT_EQ(report.files[1].documents.documents, 1);
}

}  // namespace
}  // namespace tokamak
