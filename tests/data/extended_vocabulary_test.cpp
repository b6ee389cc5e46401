#include "data/extended_vocabulary.h"

#include "tests/data/small_vocabulary.h"

#include <gtest/gtest.h>

#include <functional>

namespace tokamak {
namespace {

Vocabulary own_vocabulary() { return small_vocabulary({{"a", "b"}, {"ab", "c"}}); }

TEST(ExtendedVocabulary, MayAddTokensAtTheEnd) {
  Vocabulary own = own_vocabulary();
  EXPECT_EQ(not_extended(own, own), "");
  Vocabulary more = with_added_token(with_added_token(own, "<|user|>", {}), "<tool>", {.special = false});
  EXPECT_EQ(not_extended(more, own), "");
  EXPECT_NE(not_extended(own, more), "") << "the other way round tokens are missing";
}

// Whatever would give a text other ids, or a row another meaning.
TEST(ExtendedVocabulary, KeepsAllElse) {
  const Vocabulary own = with_added_token(own_vocabulary(), "<|user|>", {});
  const std::pair<const char*, std::function<void(Vocabulary&)>> kChanges[] = {
      {"its token 97 is 'b', and the model's is 'a'", [](Vocabulary& v) { std::swap(v.tokens[97], v.tokens[98]); }},
      {"its merges are not the model's", [](Vocabulary& v) { v.merges.pop_back(); }},
      {"its merges are not the model's", [](Vocabulary& v) { std::swap(v.merges[0], v.merges[1]); }},
      {"cuts texts into words in another way", [](Vocabulary& v) { v.whole_words = !v.whole_words; }},
      {"does not add token", [](Vocabulary& v) { v.added.back().lstrip = true; }},
      {"is not an added one", [](Vocabulary& v) { v.tokens.emplace_back("zzz"); }},
  };
  for (const auto& [reason, change] : kChanges) {
    Vocabulary other = own;
    change(other);
    EXPECT_NE(not_extended(other, own).find(reason), std::string::npos) << reason << ": " << not_extended(other, own);
  }
}

}  // namespace
}  // namespace tokamak
