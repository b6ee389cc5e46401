#include "data/added_tokens.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "data/hugging_face_vocabulary.h"
#include "data/tokenizer.h"
#include "data/tokenizer_files.h"
#include "tests/data/small_vocabulary.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;

/// A vocabulary of bytes with an added token more.
Vocabulary with_token(const std::string& text, AddedToken token) {
  return with_added_token(small_vocabulary({}), text, token);
}

// tests/goldens/added_tokens.json has ids of Hugging Face's library (tools/make_added_tokens.py).
class AddedTokensGoldens : public testing::Test {
 protected:
  json root_ = json::parse(read_file("tests/goldens/added_tokens.json"));

  std::string tokenizer_json(const json& one) const {
    json file = root_["base"];
    file["added_tokens"] = one["added_tokens"];
    file["model"]["ignore_merges"] = one["ignore_merges"];
    return file.dump();
  }
  static void expect_ids(const Tokenizer& tokenizer, const json& one) {
    for (const json& vector : one["vectors"]) {
      EXPECT_EQ(tokenizer.encode(vector["text"].get<std::string>()), vector["ids"].get<Ids>()) << vector["text"];
      EXPECT_EQ(tokenizer.encode(vector["text"].get<std::string>(), true), vector["with_special"].get<Ids>())
          << vector["text"];
    }
  }
};

TEST_F(AddedTokensGoldens, IdsAreThoseOfHuggingFace) {
  size_t vectors = 0;
  for (const json& one : root_["cases"]) {
    expect_ids(Tokenizer(parse_hugging_face_vocabulary(tokenizer_json(one), "tokenizer.json")), one);
    vectors += one["vectors"].size();
  }
  EXPECT_GT(vectors, 200u);
}

// So the library gives the same ids with the file that is written: it goes by these parts.
TEST_F(AddedTokensGoldens, AreWrittenAsTheyCame) {
  for (const json& one : root_["cases"]) {
    TemporaryFolder folder;
    save_tokenizer(parse_hugging_face_vocabulary(tokenizer_json(one), "tokenizer.json"), folder.path());
    expect_ids(load_tokenizer(folder.path()), one);
    json written = json::parse(read_file(folder / "tokenizer.json")), tokens = one["added_tokens"];
    std::sort(tokens.begin(), tokens.end(), [](const json& a, const json& b) { return a["id"] < b["id"]; });
    EXPECT_EQ(written["added_tokens"], tokens);
    EXPECT_EQ(written["model"]["vocab"], root_["base"]["model"]["vocab"]);
  }
}

TEST(AddedTokens, BytesThatAreNoUtf8AreNoWords) {
  Tokenizer tokenizer(with_token("ab", {.special = false, .single_word = true}));
  EXPECT_EQ(tokenizer.encode("\xff"
                             "ab\xe4"),
            (Ids{0xff, 257, 0xe4}));
  EXPECT_EQ(tokenizer.encode("\xc3\xa9"
                             "ab"),
            (Ids{0xc3, 0xa9, 'a', 'b'}));
  EXPECT_EQ(tokenizer.encode("ab\xc3\xa9"), (Ids{'a', 'b', 0xc3, 0xa9}));
}

// Of an odd number of blanks Hugging Face's library ends with an error of its own.
TEST(AddedTokens, TwoMayWantTheSameWhiteSpace) {
  Vocabulary vocabulary = with_token("<r>", {.special = false, .rstrip = true});
  vocabulary = with_added_token(vocabulary, "  ", {.special = false, .lstrip = true});
  EXPECT_EQ(Tokenizer(vocabulary).encode("a<r>  b"), (Ids{'a', 257, 'b'}));
  EXPECT_EQ(Tokenizer(vocabulary).encode("a<r>   b").front(), 'a');
}

TEST(AddedTokens, TellWhichNeedTheWholeText) {
  auto needs = [](const std::string& text, AddedToken token) {
    return AddedTokens(with_token(text, token)).needs_whole_text();
  };
  EXPECT_EQ(needs("new york", {.special = false}), "new york");
  EXPECT_EQ(needs("x", {.special = false, .rstrip = true}), "x");
  EXPECT_EQ(needs("x", {.special = false, .single_word = true}), "x");
  EXPECT_EQ(needs("    ", {.special = false}), "");
  EXPECT_EQ(needs("new york", {.special = true}), "");
  EXPECT_FALSE(AddedTokens(with_token("x", {})).finds_any(false));
  EXPECT_TRUE(AddedTokens(with_token("x", {})).finds_any(true));
}

TEST(AddedTokens, LongestMatchIsTheLeftmost) {
  LongestMatch among;
  EXPECT_EQ(among.find("abc", 0).value, -1);
  among.add("abcd", 0);
  among.add("bc", 1);
  among.add("b", 2);
  EXPECT_EQ(among.find("abcbcb", 0).value, 1);
  EXPECT_EQ(among.find("abcbcb", 0).end, 3u);
  EXPECT_EQ(among.find("abcbcb", 4).value, 2);
  EXPECT_EQ(among.find("abcbcb", 6).value, -1);
}

}  // namespace
}  // namespace tokamak
