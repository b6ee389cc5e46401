#include "data/tiktoken_vocabulary.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/random.h"
#include "data/tokenizer_files.h"
#include "tests/support/expect_error.h"
#include "tests/support/shared_data.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

using Ids = std::vector<int32_t>;

std::string base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    std::string_view three = bytes.substr(at, 3);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i) bits = bits << 8 | (i < three.size() ? uint8_t(three[i]) : 0u);
    for (size_t i = 0; i < 4; ++i) text += i <= three.size() ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

/// The file of tokens in the order of their ranks.
std::string format(const std::vector<std::string>& tokens) {
  std::string text;
  for (size_t rank = 0; rank < tokens.size(); ++rank) text += fmt::format("{} {}\n", base64(tokens[rank]), rank);
  return text;
}

std::vector<std::string> all_bytes() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, char(byte));
  return tokens;
}

Tokenizer parse(const std::string& text, std::string_view encoding = "gpt2") {
  return Tokenizer(parse_tiktoken_vocabulary(text, "x.tiktoken", tiktoken_encoding(encoding, "x.tiktoken")));
}

// Small vocabularies of all patterns, with ids made by tiktoken (tools/make_tokenizer_vectors.py).
TEST(Tiktoken, GivesTheIdsOfTiktoken) {
  int patterns = 0;
  for (const auto& golden : nlohmann::json::parse(read_file("tests/goldens/tokenizer_vectors.json"))) {
    std::string name = golden["name"];
    Tokenizer tokenizer = parse(golden["tiktoken"], name);
    TemporaryFolder folder;
    save_tokenizer(tokenizer.vocabulary(), folder.path());
    Tokenizer saved = load_tokenizer(folder.path());
    for (const auto& vector : golden["vectors"]) {
      std::string text = vector["text"];
      EXPECT_EQ(tokenizer.encode(text), vector["ids"].get<Ids>()) << name << ": " << text;
      EXPECT_EQ(saved.encode(text), vector["ids"].get<Ids>()) << name << ", saved: " << text;
      EXPECT_EQ(tokenizer.decode(vector["ids"].get<Ids>()), text);
    }
    EXPECT_EQ(saved.end_of_text(), 376);
    ++patterns;
  }
  EXPECT_EQ(patterns, 4);
}

// GPT-2's vocabulary as tiktoken has it under another name.
TEST(Tiktoken, R50kGivesTheIdsOfGpt2) {
  TOKAMAK_NEED_SHARED_DATA("gpt2");
  Vocabulary gpt2 = load_tokenizer(shared_data("gpt2")).vocabulary();
  TemporaryFolder folder;
  std::filesystem::path file = folder / "r50k_base.tiktoken";
  gpt2.tokens.pop_back();
  write_file_atomic(file, format(gpt2.tokens));
  Tokenizer r50k = load_tokenizer(file);
  EXPECT_EQ(r50k.end_of_text(), 50256);
  std::string text = read_file(shared_data("gpt2/vectors.jsonl"));
  for (size_t at = 0, end; at < text.size(); at = end + 1) {
    end = text.find('\n', at);
    auto vector = nlohmann::json::parse(text.substr(at, end - at));
    EXPECT_EQ(r50k.encode(vector["text"].get<std::string>()), vector["ids"].get<Ids>());
  }
}

/// tiktoken's algorithm as it is: join the leftmost neighbours whose bytes have the lowest rank until none have one.
Ids join_by_rank(const std::map<std::string, int32_t>& ranks, const std::string& word) {
  if (auto whole = ranks.find(word); whole != ranks.end()) return {whole->second};
  std::vector<std::string> parts;
  for (char c : word) parts.emplace_back(1, c);
  for (;;) {
    size_t best = 0;
    int32_t rank = INT32_MAX;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      auto found = ranks.find(parts[i] + parts[i + 1]);
      if (found != ranks.end() && found->second < rank) rank = found->second, best = i;
    }
    if (rank == INT32_MAX) break;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + ptrdiff_t(best) + 1);
  }
  Ids ids;
  for (const std::string& part : parts) ids.push_back(ranks.at(part));
  return ids;
}

// Any set of tokens in any order, not only what training makes.
TEST(Tiktoken, MergesByTheRankOfTheResult) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    std::vector<std::string> tokens = all_bytes();
    std::map<std::string, int32_t> ranks;
    for (uint64_t i = 0; i < 12; ++i) {
      std::string token;
      for (uint64_t at = 0; at < 2 + philox4x32(seed, i)[0] % 4; ++at)
        token += char('a' + philox4x32(seed, i, at + 1)[0] % 2);
      if (std::ranges::count(tokens, token) == 0) tokens.push_back(token);
    }
    for (size_t id = 0; id < tokens.size(); ++id) ranks[tokens[id]] = int32_t(id);
    Tokenizer tokenizer = parse(format(tokens));
    TemporaryFolder folder;
    save_tokenizer(tokenizer.vocabulary(), folder.path());
    Tokenizer saved = load_tokenizer(folder.path());
    for (uint64_t word_seed = 0; word_seed < 40; ++word_seed) {
      std::string word;
      for (uint64_t at = 0; at < 1 + word_seed * 2; ++at)
        word += char('a' + philox4x32(seed, word_seed, at + 100)[0] % 2);
      ASSERT_EQ(tokenizer.encode(word), join_by_rank(ranks, word)) << seed << " " << word;
      ASSERT_EQ(saved.encode(word), tokenizer.encode(word)) << seed << " " << word;
    }
  }
}

TEST(Tiktoken, FillsIdsBetweenMarkers) {
  TiktokenEncoding encoding = {"x", Pretokenizer::kCl100k, 256, {{"<|a|>", 257}, {kEndOfText, 260}}};
  Tokenizer tokenizer(parse_tiktoken_vocabulary(format(all_bytes()), "x", encoding));
  EXPECT_EQ(tokenizer.vocab_size(), 261);
  EXPECT_EQ(tokenizer.end_of_text(), 260);
  EXPECT_EQ(tokenizer.decode(Ids{256, 257, 258}), "<|reserved_256|><|a|><|reserved_258|>");
  EXPECT_EQ(tokenizer.encode("<|a|>b", true), (Ids{257, 'b'}));
}

TEST(Tiktoken, TheEncodingIsTheNameOrStandsBehind) {
  TemporaryFolder folder;
  std::string content = format(all_bytes());
  write_file_atomic(folder / "mine.tiktoken", content);
  std::string file = (folder / "mine.tiktoken").string();
  EXPECT_EQ(load_tokenizer(file + "@o200k").vocabulary().pretokenizer, Pretokenizer::kO200k);
  expect_user_error([&] { load_tokenizer(file); },
                    {file, "name of an encoding", "'mine'", "@NAME", "cl100k_base", "llama3"});
  expect_user_error([&] { load_tokenizer(file + "@x"); }, {file, "got 'x'"});
  write_file_atomic(folder / "tokenizer.model", content);  // as Llama 3's is named
  EXPECT_EQ(load_tokenizer((folder / "tokenizer.model").string() + "@llama3").vocab_size(), 257);
  EXPECT_TRUE(has_tokenizer(folder.path()));
  expect_user_error([&] { load_tokenizer(folder.path()); }, {"mine.tiktoken", "name of an encoding"});
  write_file_atomic(folder / "other.tiktoken", content);
  expect_user_error([&] { load_tokenizer(folder.path()); }, {"one .tiktoken file", "mine.tiktoken", "other.tiktoken"});
}

TEST(Tiktoken, RefusesDamagedFiles) {
  std::string good = format(all_bytes());
  expect_user_error([&] { parse(good + "YWI\n"); }, {"x.tiktoken:257", "base64", "got 'YWI'"});
  expect_user_error([&] { parse(good + "YWI 256\n"); }, {"x.tiktoken:257", "base64"});
  expect_user_error([&] { parse(good + "YW-= 256\n"); }, {"x.tiktoken:257", "base64"});
  expect_user_error([&] { parse(good + "YWI= 2x6\n"); }, {"x.tiktoken:257", "its rank"});
  expect_user_error([&] { parse(good + "YWI= -1\n"); }, {"got -1"});
  expect_user_error([&] { parse(good + "YWI= 300\n"); }, {"none for id 256"});
  expect_user_error([&] { parse(good + "YWI= 255\n"); }, {"one token for each id", "for id 255"});
  expect_user_error([&] { parse(good + "YWI= 256\nYWI= 257\n"); }, {"each token once", "'ab'", "256 and 257"});
  expect_user_error([&] { parse(good + base64(std::string(5000, 'x')) + " 256\n"); }, {"at most 4096 bytes", "5000"});
  expect_user_error([&] { parse(good.substr(good.find('\n') + 1)); }, {"id 0"});
  expect_user_error([&] { parse(""); }, {"some tokens", "got 0"});
  expect_user_error([&] { parse(good, "cl100k_base"); }, {"100256 tokens, as cl100k_base has", "got 256"});
  EXPECT_EQ(parse(good + "\r\n\nYWI= 256\r\n").vocab_size(), 258);
}

}  // namespace
}  // namespace tokamak
