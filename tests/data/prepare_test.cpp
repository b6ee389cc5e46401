#include "data/prepare.h"

#include <gtest/gtest.h>

#include <set>

#include "base/file.h"
#include "data/tokenizer_files.h"
#include "tests/data/small_vocabulary.h"
#include "tests/support/expect_error.h"
#include "tests/support/shared_data.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;

class PrepareTest : public testing::Test {
 protected:
  PrepareOptions options(std::string_view text, const char* name = "text.txt") {
    write_file_atomic(folder_ / name, text);
    return {.inputs = {(folder_ / name).string()}, .out = folder_ / "data", .vocab_size = 257};
  }

  std::string decode(const PrepareOptions& options, const SplitIndex& split) {
    TokenStream stream(options.out, split);
    stream.verify();
    std::vector<int32_t> ids(static_cast<size_t>(stream.size()));
    stream.read(0, ids);
    return load_tokenizer(options.out).decode(ids);
  }

  TemporaryFolder folder_;
};

// The second time the folder also holds the shards of the first, and work that was left unfinished.
TEST_F(PrepareTest, TheOutputIsNoInput) {
  PrepareOptions options = this->options("some text of some length, and more of it");
  options.inputs = {folder_.path().string()};
  for (const fs::path& out : {folder_ / "data", folder_.path()}) {
    options.out = out;
    std::string once = format_token_shard_index(prepare(options));
    fs::create_directories(out / kUnfinishedFolder);
    fs::copy_file(out / "train_000000.bin", out / kUnfinishedFolder / "tokens_000000.bin");
    EXPECT_EQ(format_token_shard_index(prepare(options)), once);
    if (out != folder_.path()) fs::remove_all(out);
  }
  options.inputs = {(folder_ / "*.bin").string()};
  expect_user_error([&] { prepare(options); }, {"*.bin", "itself wrote into", "another --out"});
}

TEST_F(PrepareTest, CutsTheTailOfASingleDocument) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += char('a' + i % 26);
  PrepareOptions options = this->options(text);
  TokenShardIndex index = prepare(options);
  EXPECT_EQ(index.vocab_size, 257);
  EXPECT_EQ(index.train.tokens(), 950);
  EXPECT_EQ(index.val.tokens(), 50);
  EXPECT_EQ(index.train.documents, 1);
  EXPECT_EQ(index.val.documents, 0);
  EXPECT_EQ(index.val.text_bytes, 50);
  EXPECT_EQ(decode(options, index.train) + decode(options, index.val), text);
  EXPECT_EQ(format_token_shard_index(read_token_shard_index(options.out, IndexSources::kRead)),
            format_token_shard_index(index));
}

TEST_F(PrepareTest, SeparatesDocumentsAndCutsBetweenThem) {
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += "{\"text\": \"abcdefghi\"}\n";
  PrepareOptions options = this->options(lines, "lines.jsonl");
  TokenShardIndex index = prepare(options);
  EXPECT_EQ(index.train.documents, 38);
  EXPECT_EQ(index.val.documents, 2);
  EXPECT_EQ(decode(options, index.val), "<|endoftext|>abcdefghi<|endoftext|>abcdefghi");
  EXPECT_EQ(index.val.text_bytes, 18);
  EXPECT_TRUE(decode(options, index.train).starts_with("abcdefghi<|endoftext|>abcdefghi"));
  EXPECT_EQ(index.train.max_token(), index.end_of_text);
}

TEST_F(PrepareTest, TheMarkerInTextStaysText) {
  PrepareOptions options = this->options("one<|endoftext|>two");
  options.val_fraction = 0;
  TokenShardIndex index = prepare(options);
  EXPECT_LT(index.train.max_token(), index.end_of_text);
  EXPECT_EQ(index.val.tokens(), 0);
  EXPECT_TRUE(index.val.shards.empty());
}

TEST_F(PrepareTest, WritesSeveralShards) {
  std::string text(1000, 'x');
  PrepareOptions options = this->options(text);
  options.shard_tokens = 300;
  TokenShardIndex index = prepare(options);
  ASSERT_EQ(index.train.shards.size(), 4u);
  EXPECT_EQ(index.train.shards[3].file, "train_000003.bin");
  EXPECT_EQ(index.train.shards[3].tokens, 50);
  EXPECT_EQ(decode(options, index.train), std::string(950, 'x'));
}

TEST_F(PrepareTest, UsesAGivenVocabulary) {
  make_folder(folder_ / "vocab");
  save_tokenizer(small_vocabulary({{"a", "b"}}), folder_ / "vocab");
  PrepareOptions options = this->options("ababab");
  options.vocab = folder_ / "vocab";
  options.val_fraction = 0;
  TokenShardIndex index = prepare(options);
  EXPECT_EQ(index.vocab_size, 258);
  EXPECT_EQ(index.train.tokens(), 3);
  EXPECT_EQ(read_file(options.out / "encoder.json"), read_file(folder_ / "vocab/encoder.json"));
}

TEST_F(PrepareTest, TrainsAVocabulary) {
  PrepareOptions options = this->options("the cat and the dog and the cat and the dog");
  options.vocab_size = 262;
  EXPECT_EQ(prepare(options).vocab_size, 262);
  EXPECT_LT(load_tokenizer(options.out).encode(" the cat").size(), 8u);
}

TEST_F(PrepareTest, ReplacesNoFilesOfOthers) {
  PrepareOptions options = this->options("some text of some length, and more of it");
  for (const char* name : {"tokenizer.json", "vocab.bpe", "encoder.json", "train_000000.bin", "index.json"}) {
    fs::create_directory(options.out);
    write_file_atomic(options.out / name, "{\"format\": \"mine\"}");
    expect_user_error([&] { prepare(options); },
                      {"no files but those of an earlier `prepare`", (options.out / name).string(), "another folder"});
    EXPECT_EQ(read_file(options.out / name), "{\"format\": \"mine\"}");
    EXPECT_EQ(std::distance(fs::directory_iterator(options.out), {}), 1) << name;
    fs::remove_all(options.out);
  }
  fs::create_directory(options.out);
  write_file_atomic(options.out / "notes.txt", "mine");
  prepare(options);
  EXPECT_EQ(read_file(options.out / "notes.txt"), "mine");
}

TEST_F(PrepareTest, ReplacesADataSetWithADamagedIndex) {
  PrepareOptions options = this->options("some text of some length, and more of it");
  prepare(options);
  std::string index = read_file(options.out / kIndexFile);
  write_file_atomic(options.out / kIndexFile, index.substr(0, index.size() / 2));
  prepare(options);
  EXPECT_EQ(read_file(options.out / kIndexFile), index);
}

// A file that somebody has put beside a data set is none of it.
TEST_F(PrepareTest, RemovesOnlyWhatTheIndexNames) {
  PrepareOptions options = this->options("some text of some length, and more of it");
  options.vocab = folder_ / "vocab";
  fs::create_directory(options.vocab);
  Vocabulary vocabulary = small_vocabulary({});
  vocabulary.pretokenizer = Pretokenizer::kCl100k;  // which GPT-2's files cannot tell
  save_tokenizer(vocabulary, options.vocab);
  prepare(options);
  write_file_atomic(options.out / "vocab.bpe", "mine");
  prepare(options);
  EXPECT_EQ(read_file(options.out / "vocab.bpe"), "mine");
}

TEST_F(PrepareTest, ReplacesAnEarlierRunWhole) {
  PrepareOptions options = this->options(std::string(1000, 'x'));
  options.shard_tokens = 100;
  prepare(options);
  EXPECT_TRUE(fs::exists(options.out / "train_000005.bin"));
  options.shard_tokens = 1000;
  prepare(options);
  EXPECT_FALSE(fs::exists(options.out / "train_000005.bin"));
  EXPECT_EQ(decode(options, read_token_shard_index(options.out).train), std::string(950, 'x'));
}

// A reader, or a kill, may come between any two of its moves.
TEST_F(PrepareTest, AFolderWithAnIndexIsCompleteAtEveryMoment) {
  PrepareOptions options = this->options(std::string(1000, 'x'));
  prepare(options);
  write_file_atomic(options.inputs[0], std::string(1000, 'y'));
  std::set<std::string> seen;
  auto look = [&](const PrepareProgress& progress) {
    if (progress.phase != "moving the files to their places" || !is_prepared(options.out)) return;
    seen.insert(decode(options, read_token_shard_index(options.out).train));
  };
  prepare(options, {.progress = look, .note = {}, .stop = {}});
  EXPECT_EQ(seen, (std::set<std::string>{std::string(950, 'x'), std::string(950, 'y')}));
}

TEST_F(PrepareTest, AFailureLeavesTheEarlierRunAndNoTemporaryFiles) {
  PrepareOptions options = this->options(std::string(1000, 'x'));
  prepare(options);
  PrepareOptions broken = this->options("{\"text\": \"a\"}\n{\"body\": \"b\"}\n", "broken.jsonl");
  EXPECT_THROW(prepare(broken), UserError);
  EXPECT_EQ(decode(options, read_token_shard_index(options.out).train), std::string(950, 'x'));
  for (const auto& entry : fs::directory_iterator(options.out))
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
}

TEST_F(PrepareTest, RefusesBadOptions) {
  PrepareOptions options = this->options("text");
  options.vocab_size = 256;
  expect_user_error([&] { prepare(options); }, {"at least 257", "got 256"});
  options.vocab_size = 300;
  options.val_fraction = 1;
  expect_user_error([&] { prepare(options); }, {"below 1", "got 1"});
  options.val_fraction = 0.1;
  options.shard_tokens = 0;
  expect_user_error([&] { prepare(options); }, {"tokens in a shard", "got 0"});
}

TEST_F(PrepareTest, RefusesDocumentsThatAreAllEmpty) {
  expect_user_error([&] { prepare(this->options("{\"text\": \"\"}\n", "a.jsonl")); }, {"only empty ones"});
}

TEST_F(PrepareTest, ReportsItsProgress) {
  std::set<std::string> phases;
  PrepareOptions options = this->options(std::string(1000, 'x'));
  prepare(options, {.progress = [&](const PrepareProgress& progress) { phases.emplace(progress.phase); }});
  EXPECT_TRUE(phases.contains("training the tokenizer"));
  EXPECT_TRUE(phases.contains("encoding"));
}

TEST_F(PrepareTest, RealTextHasTheTokensOfTiktoken) {
  TOKAMAK_NEED_SHARED_DATA("gpt2");
  PrepareOptions options = {
      .inputs = {shared_data("tinyshakespeare.txt").string()}, .out = folder_ / "data", .vocab = shared_data("gpt2")};
  TokenShardIndex index = prepare(options);
  EXPECT_EQ(index.train.tokens() + index.val.tokens(), 338025);
  EXPECT_EQ(decode(options, index.train) + decode(options, index.val), read_file(shared_data("tinyshakespeare.txt")));
}

TEST(SplitPoint, PrefersDocumentBorders) {
  auto split = [](int64_t total, std::vector<int64_t> starts, double fraction) {
    return split_point(total, starts, fraction);
  };
  std::vector<int64_t> tens;
  for (int64_t start = 0; start < 1000; start += 10) tens.push_back(start);
  EXPECT_EQ(split(1000, tens, 0.05), 950);
  EXPECT_EQ(split(1000, tens, 0.054), 950);
  EXPECT_EQ(split(1000, tens, 0), 1000);
  EXPECT_EQ(split(1000, {0}, 0.05), 950);
  EXPECT_EQ(split(1000, {0, 100, 940}, 0.05), 940);
  EXPECT_EQ(split(1000, {0, 100, 800}, 0.05), 950);  // no border near: inside a document
  EXPECT_EQ(split(10, {0, 5}, 0.05), 9);
}

}  // namespace
}  // namespace tokamak
