// tokenizer.json in the forms of known models: ids that Hugging Face's `tokenizers` gives (tools/check_tokenizers.py,
// which compares a million strings, and writes these). Of two forms text is normalized, so a build needs the library.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "data/hugging_face_vocabulary.h"
#include "data/tokenizer.h"
#include "data/word_border.h"

namespace tokamak {
namespace {

using Ids = std::vector<int32_t>;
using nlohmann::json;

const json& forms() {
  static const json forms = json::parse(read_file("tests/goldens/tokenizer_pieces.json"));
  return forms;
}

TEST(TokenizerPieces, GiveTheIdsOfHuggingFacesLibrary) {
  ASSERT_EQ(forms().size(), 8u);
  for (const json& form : forms()) {
    Tokenizer tokenizer(parse_hugging_face_vocabulary(form["tokenizer"].dump(), "tokenizer.json"));
    for (const json& vector : form["vectors"]) {
      std::string text = vector["text"];
      EXPECT_EQ(tokenizer.encode(text), vector["ids"].get<Ids>()) << form["name"] << ": " << text;
    }
  }
}

// What `prepare` writes means the same.
TEST(TokenizerPieces, ComeBackAsTheyWere) {
  for (const json& form : forms()) {
    Vocabulary vocabulary = parse_hugging_face_vocabulary(form["tokenizer"].dump(), "tokenizer.json");
    Vocabulary again = parse_hugging_face_vocabulary(format_hugging_face_vocabulary(vocabulary), "ours");
    EXPECT_EQ(again.pretokenizer, vocabulary.pretokenizer) << form["name"];
    EXPECT_EQ(again.nfc, vocabulary.nfc) << form["name"];
    EXPECT_EQ(again.added, vocabulary.added) << form["name"];
  }
}

// A long text is encoded in parts.
TEST(TokenizerPieces, GiveTheSameIdsInParts) {
  for (const json& form : forms()) {
    Tokenizer tokenizer(parse_hugging_face_vocabulary(form["tokenizer"].dump(), "tokenizer.json"));
    std::string text;
    for (const json& vector : form["vectors"]) text += vector["text"].get<std::string>() + ". ";
    Encoder encoder(tokenizer);
    Ids ids;
    for (size_t at = 0; at < text.size();) at = encoder.append_part(text, at, at + 50, ids);
    EXPECT_EQ(ids, tokenizer.encode(text)) << form["name"];
  }
}

}  // namespace
}  // namespace tokamak
