#include "data/tokenizer_files.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tests/data/small_vocabulary.h"
#include "tests/support/expect_error.h"
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
  fs::remove(folder / "vocab.bpe");
  expect_same(load_tokenizer(folder.path()).vocabulary(), sample());  // now from tokenizer.json
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
  root_["pre_tokenizer"] = {{"type", "Sequence"}};
  expect_refused({"pre_tokenizer", "ByteLevel", "Sequence"});
  root_["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", true}};
  expect_refused({"add_prefix_space", "null", "true"});
}

TEST_F(HuggingFace, RefusesSettingsThatWouldChangeTheIds) {
  root_["normalizer"] = {{"type", "NFC"}};
  expect_refused({"normalizer", "NFC"});
  root_["normalizer"] = nullptr;
  root_["model"]["ignore_merges"] = true;
  expect_refused({"model.ignore_merges"});
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
  expect_user_error([&] { load_tokenizer(file()); }, {"tokenizer.json", "JSON object"});
}

TEST_F(HuggingFace, KeepsTheFieldsThatItsLibraryNeeds) {
  EXPECT_EQ(root_["model"]["type"], "BPE");
  EXPECT_EQ(root_["model"]["vocab"]["\u0120ab"], 257);
  EXPECT_EQ(root_["model"]["merges"][1], "\u0120 ab");
  EXPECT_EQ(root_["added_tokens"][0]["content"], kEndOfText);
  EXPECT_EQ(root_["pre_tokenizer"]["add_prefix_space"], false);
}

}  // namespace
}  // namespace tokamak
