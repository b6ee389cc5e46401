#include "data/hugging_face_settings.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "data/tokenizer_files.h"
#include "tests/data/small_vocabulary.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<int32_t>;

/// A folder with vocab.json and merges.txt, whose last token is <|endoftext|> (256), or a tokenizer.json.
class HuggingFaceSettingsTest : public testing::Test {
 protected:
  HuggingFaceSettingsTest() { save_tokenizer(small_vocabulary({}), folder_.path()); }
  void as_pair() { fs::remove(folder_ / "tokenizer.json"); }
  void write(const char* name, const std::string& text) { write_file_atomic(folder_ / name, text); }
  Tokenizer load() const { return load_tokenizer(folder_.path()); }
  void expect_refused(std::initializer_list<std::string> pieces) {
    expect_user_error([&] { load(); }, pieces);
  }

  TemporaryFolder folder_;
};

TEST_F(HuggingFaceSettingsTest, AddedTokensBesideAPairAreFound) {
  as_pair();
  write("added_tokens.json", R"({"  ": 257, "<|im|>": 258})");
  EXPECT_EQ(load().encode("a  b<|im|>"), (Ids{'a', 257, 'b', 258}));
  write("special_tokens_map.json", R"({"eos_token": {"content": "<|im|>"}, "bos_token": "<|endoftext|>"})");
  EXPECT_EQ(load().encode("a  <|im|>").size(), 8u);
  EXPECT_EQ(load().encode("a  <|im|>", true), (Ids{'a', 257, 258}));
  write("special_tokens_map.json", R"({"additional_special_tokens": ["<|im|>"]})");
  EXPECT_EQ(load().encode("<|im|>").size(), 6u);
}

TEST_F(HuggingFaceSettingsTest, TheConfigurationTellsMore) {
  as_pair();
  write("added_tokens.json", R"({"not this": 257})");
  write("tokenizer_config.json", R"({"add_prefix_space": false, "added_tokens_decoder": {
    "256": {"content": "<|endoftext|>", "special": true}, "258": {"content": "<r>", "rstrip": true}}})");
  EXPECT_EQ(load().encode("a<r>  b"), (Ids{'a', 258, 'b'}));
  EXPECT_EQ(load().vocabulary().tokens[257], "<|reserved_257|>");
  TemporaryFolder other;
  save_tokenizer(load().vocabulary(), other.path());
  EXPECT_FALSE(fs::exists(other / "vocab.bpe"));  // which has no place for it
  EXPECT_EQ(load_tokenizer(other.path()).encode("a<r>  b"), (Ids{'a', 258, 'b'}));
}

TEST_F(HuggingFaceSettingsTest, RefusesPrefixSpaces) {
  write("tokenizer_config.json", R"({"add_prefix_space": true})");
  expect_refused({"tokenizer_config.json", "add_prefix_space", "got true"});
  as_pair();
  expect_refused({"tokenizer_config.json", "add_prefix_space", "got true"});
  write("tokenizer_config.json", R"({"add_prefix_space": null, "model_max_length": 1024})");
  load();
}

TEST_F(HuggingFaceSettingsTest, RefusesTokensThatTheVocabularyContradicts) {
  write("added_tokens.json", R"({"<|endoftext|>": 256})");
  load();
  write("added_tokens.json", R"({"  ": 257})");
  expect_refused({"added_tokens.json", "'  ' with the id 257", "tokenizer.json"});
  as_pair();
  write("added_tokens.json", R"({"<|endoftext|>": 257})");
  expect_refused({"added_tokens.json", "expected the id 256 for '<|endoftext|>'", "got 257"});
  write("added_tokens.json", R"({"x y": -1})");
  expect_refused({"added_tokens.json", "an id as x y", "got -1"});
  write("added_tokens.json", R"({"x y": 1000000})");
  expect_refused({"ids up to 1000000", "damaged"});
  write("added_tokens.json", R"({"x y": 16777215})");
  expect_refused({"got 16777215", "damaged"});
  write("added_tokens.json", R"({"x y": 257)");
  expect_refused({"added_tokens.json", "JSON object", "column 12"});
}

TEST_F(HuggingFaceSettingsTest, RefusesSettingsThatDiffer) {
  auto config = [](const char* strip) {
    return fmt::format(
        R"({{"added_tokens_decoder": {{"256": {{"content": "<|endoftext|>", "special": true, "lstrip": {}}}}}}})",
        strip);
  };
  write("tokenizer_config.json", config("false"));
  load();
  write("tokenizer_config.json", config("true"));
  expect_refused({"tokenizer_config.json", "'<|endoftext|>' with the id 256", "these settings"});
  write("tokenizer_config.json", config("2"));
  expect_refused({"added_tokens_decoder.lstrip", "true or false", "got 2"});
  write("tokenizer_config.json", R"({"added_tokens_decoder": {"x": {"content": "y"}}})");
  expect_refused({"added_tokens_decoder", "ids as keys"});
}

}  // namespace
}  // namespace tokamak
