#include "data/tokenizer_files.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "data/pretokenizer.h"
#include "tests/data/small_vocabulary.h"
#include "tests/support/expect_error.h"
#include "tests/support/nested_lists.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

Vocabulary sample() { return small_vocabulary({{"a", "b"}, {" ", "ab"}, {"\xC3", "\xA9"}}); }

void expect_same(const Vocabulary& got, const Vocabulary& expected) {
  EXPECT_EQ(got.tokens, expected.tokens);
  EXPECT_EQ(got.special, expected.special);
  ASSERT_EQ(got.merges.size(), expected.merges.size());
  for (size_t i = 0; i < got.merges.size(); ++i) EXPECT_EQ(got.merges[i].result, expected.merges[i].result);
}

TEST(TokenizerFiles, BothFormsComeBackAsTheyWere) {
  TemporaryFolder folder;
  EXPECT_FALSE(has_tokenizer(folder.path()));
  save_tokenizer(sample(), folder.path());
  EXPECT_TRUE(has_tokenizer(folder.path()));
  expect_same(load_tokenizer(folder.path()).vocabulary(), sample());
  fs::remove(folder / "tokenizer.json");
  expect_same(load_tokenizer(folder.path()).vocabulary(), sample());  // now from GPT-2's pair
}

TEST(TokenizerFiles, KnowsHuggingFacesNamesOfGpt2sFiles) {
  TemporaryFolder folder;
  save_tokenizer(sample(), folder.path());
  fs::rename(folder / "vocab.bpe", folder / "merges.txt");
  fs::rename(folder / "encoder.json", folder / "vocab.json");
  fs::remove(folder / "tokenizer.json");
  expect_same(load_tokenizer(folder.path()).vocabulary(), sample());
}

TEST(TokenizerFiles, SaysWhatAFolderLacks) {
  TemporaryFolder folder;
  expect_user_error([&] { load_tokenizer(folder.path()); }, {"vocab.bpe", "tokenizer.json", folder.path().string()});
  expect_user_error([&] { load_tokenizer(folder / "nothing"); }, {"nothing", "does not exist"});
}

/// A tokenizer.json after a change, loaded.
class HuggingFace : public testing::Test {
 protected:
  HuggingFace() {
    save_tokenizer(sample(), folder_.path());
    root_ = json::parse(read_file(file()));
  }
  fs::path file() const { return folder_ / "tokenizer.json"; }
  Vocabulary load() {
    write_file_atomic(file(), root_.dump());
    return load_tokenizer(file()).vocabulary();
  }
  void expect_refused(std::initializer_list<std::string> pieces) {
    expect_user_error([&] { load(); }, pieces);
  }

  TemporaryFolder folder_;
  json root_;
};

TEST_F(HuggingFace, TakesMergesAsPairsAndMarkersOutsideTheVocabulary) {
  for (json& merge : root_["model"]["merges"]) {
    std::string text = merge;
    size_t space = text.find(' ');
    merge = {text.substr(0, space), text.substr(space + 1)};
  }
  root_["model"]["vocab"].erase(kEndOfText);
  root_["model"].erase("type");  // as in GPT-2's own file
  expect_same(load(), sample());
}

TEST_F(HuggingFace, RefusesOtherKinds) {
  root_["model"]["type"] = "WordPiece";
  expect_refused({"tokenizer.json", "model.type", "\"BPE\"", "WordPiece"});
}

TEST_F(HuggingFace, RefusesOtherPreTokenizers) {
  root_["pre_tokenizer"] = {{"type", "Whitespace"}};
  expect_refused({"pre_tokenizer", "ByteLevel", "Whitespace", "gpt2, cl100k, llama3, o200k, qwen2, tekken, digits"});
  root_["pre_tokenizer"] = {{"type", "Sequence"}};
  expect_refused({"pre_tokenizer", "a Split and a ByteLevel", "null"});
  root_["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", true}};
  expect_refused({"add_prefix_space", "null", "true"});
  root_["pre_tokenizer"] = {{"type", "ByteLevel"}, {"use_regex", false}};
  expect_refused({"use_regex", "true", "false"});
}

TEST_F(HuggingFace, RefusesDigitsInGroupsAndOtherNormalizers) {
  json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
  json digits = {{"type", "Digits"}, {"individual_digits", false}};
  root_["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {digits, byte_level}}};
  expect_refused({"pre_tokenizer.individual_digits", "true"});
  root_["pre_tokenizer"] = byte_level;
  root_["normalizer"] = {{"type", "NFKC"}};
  expect_refused({"normalizer", "null or NFC", "NFKC"});
  root_["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}, {{"type", "Lowercase"}}}}};
  expect_refused({"normalizer", "Lowercase"});
  root_["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}}}};
  EXPECT_TRUE(load().nfc);
}

/// The pre_tokenizer of Llama 3's and its kind.
json split_sequence(std::string_view expression) {
  json split = {{"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Isolated"}, {"invert", false}};
  json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  return {{"type", "Sequence"}, {"pretokenizers", {split, byte_level}}};
}

TEST_F(HuggingFace, TakesSplitsByKnownExpressions) {
  for (const PretokenizerInfo& info : pretokenizers()) {
    if (info.expression.empty()) continue;
    root_["pre_tokenizer"] = split_sequence(info.expression);
    EXPECT_EQ(load().pretokenizer, info.id);
    root_["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed";  // as GPT-4's conversions have it
    root_["pre_tokenizer"]["pretokenizers"][0]["invert"] = true;
    EXPECT_EQ(load().pretokenizer, info.id);
    for (std::string_view spelling : info.spellings) {
      root_["pre_tokenizer"] = split_sequence(spelling);
      EXPECT_EQ(load().pretokenizer, info.id);
    }
  }
}

TEST_F(HuggingFace, RefusesOtherSplits) {
  root_["pre_tokenizer"] = split_sequence("\\w+");
  expect_refused({"pre_tokenizer.pattern.Regex", "a known expression", "w+"});
  root_["pre_tokenizer"] = split_sequence(pretokenizer_info(Pretokenizer::kLlama3).expression);
  json good = root_["pre_tokenizer"];
  root_["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "MergedWithNext";
  expect_refused({"pre_tokenizer.behavior", "Isolated", "MergedWithNext"});
  root_["pre_tokenizer"] = good;
  root_["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {{"String", " "}};
  expect_refused({"pre_tokenizer.pattern.Regex", "null"});
  root_["pre_tokenizer"] = good;
  root_["pre_tokenizer"]["pretokenizers"][1].erase("use_regex");
  expect_refused({"use_regex", "false", "null"});
  root_["pre_tokenizer"] = good;
  root_["pre_tokenizer"]["pretokenizers"].push_back({{"type", "Digits"}});
  expect_refused({"a Split and a ByteLevel", "Isolated"});
}

TEST_F(HuggingFace, IgnoreMergesTakesWholeWords) {
  root_["model"]["vocab"]["cde"] = 260;  // no merge makes it
  EXPECT_EQ(load().special.back(), 260);
  root_["model"]["ignore_merges"] = true;
  Vocabulary vocabulary = load();
  EXPECT_TRUE(vocabulary.whole_words);
  EXPECT_EQ(vocabulary.special.back(), 259);
  Tokenizer tokenizer(vocabulary);
  EXPECT_EQ(tokenizer.encode("cde"), std::vector<int32_t>{260});
  EXPECT_EQ(tokenizer.encode("cdex"), (std::vector<int32_t>{'c', 'd', 'e', 'x'}));
}

// Its library takes no notice of the ids there: it would give 260.
TEST_F(HuggingFace, RefusesIdsThatItsLibraryWouldNotGive) {
  root_["added_tokens"].push_back({{"id", 262}, {"content", "<x>"}});
  expect_refused({"expected the id 260 in added_tokens for '<x>'", "got 262"});
  root_["added_tokens"][1]["id"] = 260;
  root_["added_tokens"].push_back({{"id", 261}, {"content", "ab"}});
  expect_refused({"expected the id 256 in added_tokens for 'ab'", "got 261"});
  root_["added_tokens"][2]["id"] = 256;
  EXPECT_EQ(load().special, (std::vector<int32_t>{259, 260}));
  root_["added_tokens"].push_back({{"id", 261}, {"content", "<y>"}});
  EXPECT_EQ(load().special, (std::vector<int32_t>{259, 260, 261}));
}

TEST_F(HuggingFace, RefusesAddedTokensThatCannotBeKept) {
  auto refused = [&](json token, std::initializer_list<std::string> pieces) {
    root_["added_tokens"][1] = token;
    expect_refused(pieces);
  };
  refused({{"id", 259}, {"content", kEndOfText}}, {"each added token once", "259"});
  refused({{"id", 260}, {"content", ""}}, {"added tokens of 1 to 4096 bytes"});
  refused({{"id", 260}, {"content", std::string(5000, 'x')}}, {"got 5000"});
  refused({{"id", 260}, {"content", "<x>"}, {"lstrip", 1}}, {"added_tokens.lstrip", "true or false", "got 1"});
  refused({{"id", 0xE9}, {"content", "\u00e9"}}, {"text as it is", "id 233"});  // how the byte E9 is spelled
}

TEST_F(HuggingFace, ComesBackWithAllThatDecidesIds) {
  for (const PretokenizerInfo& info : pretokenizers()) {
    TemporaryFolder folder;
    Vocabulary vocabulary = sample();
    vocabulary.pretokenizer = info.id;
    vocabulary.whole_words = vocabulary.tied_merges = true;
    save_tokenizer(sample(), folder.path());    // an earlier one, whose files
    save_tokenizer(vocabulary, folder.path());  // must not be what is loaded
    Vocabulary loaded = load_tokenizer(folder.path()).vocabulary();
    expect_same(loaded, vocabulary);
    EXPECT_EQ(loaded.pretokenizer, info.id);
    EXPECT_TRUE(loaded.whole_words);
    EXPECT_TRUE(loaded.tied_merges);
  }
}

TEST_F(HuggingFace, RefusesSettingsThatWouldChangeTheIds) {
  root_["normalizer"] = {{"type", "NFKC"}};
  expect_refused({"normalizer", "NFKC"});
  root_["normalizer"] = nullptr;
  root_["model"]["byte_fallback"] = true;
  expect_refused({"model.byte_fallback"});
  root_["model"]["byte_fallback"] = false;
  for (const char* key : {"truncation", "padding"}) {
    root_[key] = {{"max_length", 4}};
    expect_refused({key, "max_length"});
    root_[key] = nullptr;
  }
  load();
}

TEST_F(HuggingFace, RefusesDamagedParts) {
  root_["model"]["merges"].push_back("a zz");
  expect_refused({"expected a token 'zz' for the merge 'a zz'", "do not belong together"});
  root_["model"]["merges"].back() = "a b c";
  expect_refused({"two tokens with a space between", "a b c"});
  root_["model"]["merges"].erase(root_["model"]["merges"].size() - 1);
  root_["model"]["vocab"]["x9"] = 5000;
  expect_refused({"none for id"});
  write_file_atomic(file(), "{\"model\": ");
  expect_user_error([&] { load_tokenizer(file()); }, {"tokenizer.json", "JSON object", "column 11"});
}

TEST_F(HuggingFace, KeepsTheFieldsThatItsLibraryNeeds) {
  EXPECT_EQ(root_["model"]["type"], "BPE");
  EXPECT_EQ(root_["model"]["vocab"]["\u0120ab"], 257);
  EXPECT_EQ(root_["model"]["merges"][1], "\u0120 ab");
  EXPECT_EQ(root_["added_tokens"][0]["content"], kEndOfText);
  EXPECT_EQ(root_["pre_tokenizer"]["add_prefix_space"], false);
}

TEST_F(HuggingFace, RefusesIdsFarAboveTheTokens) {
  for (int64_t id : {int64_t(16'777'215), int64_t(1'000'000)}) {
    root_["added_tokens"].push_back({{"id", id}, {"content", "<far>"}});
    expect_refused({"tokenizer.json", "expected the id 260 in added_tokens", fmt::format("got {}", id)});
    root_["added_tokens"].erase(root_["added_tokens"].size() - 1);
  }
}

TEST_F(HuggingFace, RefusesDeepFiles) {
  write_file_atomic(file(), fmt::format(R"({{"model":{}}})", nested_lists(100'000)));
  expect_user_error([&] { load_tokenizer(file()); }, {"tokenizer.json", "JSON object"});
}

}  // namespace
}  // namespace tokamak
