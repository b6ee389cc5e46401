#include "config/option_words.h"

#include <gtest/gtest.h>

#include "config/config.h"
#include "config/visit.h"

namespace tokamak {
namespace {

struct Toy {
  std::string input, mode = "fast";
  bool train_all = false;
  int64_t num_steps = 7;
  std::vector<std::string> passes;
};

void visit(FieldList& v, Toy& c) {
  v.positional("input", c.input, "what is read");
  v("mode", c.mode, "how", one_of({"", "fast", "far", "slow"}));
  v("train_all", c.train_all, "all of it");
  v("num_steps", c.num_steps, "how many");
  v("passes", c.passes, "which", one_of({"fuse", "fold"}));
}

std::vector<OptionWords> toy_words() {
  static Toy toy;
  return option_words(fields_of(toy));
}

std::vector<std::string> words_of(const std::vector<Candidate>& candidates) {
  std::vector<std::string> words;
  for (const Candidate& candidate : candidates) words.push_back(candidate.word);
  return words;
}

using Words = std::vector<std::string>;

TEST(OptionWords, AreNamedAsTheyAreTyped) {
  std::vector<OptionWords> words = toy_words();
  ASSERT_EQ(words.size(), 5u);
  EXPECT_EQ(words[0].name, "INPUT");
  EXPECT_TRUE(words[0].is_positional());
  EXPECT_EQ(words[1].name + words[1].placeholder, "--mode=TEXT");
  EXPECT_EQ(words[1].choices, (Words{"fast", "far", "slow"}));
  EXPECT_EQ(words[2].name + words[2].placeholder, "--train-all");
  EXPECT_EQ(words[2].present, "off");
  EXPECT_EQ(words[3].name + words[3].placeholder, "--num-steps=N");
  EXPECT_EQ(words[3].present, "7");
  EXPECT_TRUE(words[4].is_list);
}

TEST(OptionWords, OptionsAreCompleted) {
  EXPECT_EQ(words_of(complete_option(toy_words(), "--")),
            (Words{"--mode=", "--train-all", "--num-steps=", "--passes="}));
  EXPECT_EQ(complete_option(toy_words(), "--num_s"), (std::vector<Candidate>{{"--num-steps=", "how many"}}));
  EXPECT_EQ(words_of(complete_option(toy_words(), "--no-t")), (Words{"--no-train-all"}));
  EXPECT_EQ(words_of(complete_option(toy_words(), "--x")), Words());
  EXPECT_EQ(words_of(complete_option(toy_words(), "--INPUT")), Words());
}

TEST(OptionWords, ValuesAreCompleted) {
  EXPECT_EQ(words_of(complete_option(toy_words(), "--mode=fa")), (Words{"--mode=fast", "--mode=far"}));
  EXPECT_EQ(words_of(complete_option(toy_words(), "--train_all=o")), (Words{"--train_all=on", "--train_all=off"}));
  EXPECT_EQ(words_of(complete_option(toy_words(), "--passes=x,fuse,fo")), (Words{"--passes=x,fuse,fold"}));
  EXPECT_EQ(words_of(complete_option(toy_words(), "--num-steps=")), Words());
  EXPECT_EQ(words_of(complete_value(toy_words(), "--mode", "s")), (Words{"slow"}));
  EXPECT_EQ(words_of(complete_value(toy_words(), "--train-all", "")), Words());  // takes no word behind it
}

TEST(OptionWords, EveryKeyOfARunIsThere) {
  RunConfig defaults;
  std::vector<OptionWords> words = option_words(fields_of(defaults));
  EXPECT_EQ(words_of(complete_option(words, "--mesh.zer")), (Words{"--mesh.zero="}));
  EXPECT_EQ(words_of(complete_option(words, "--data.token_type=uint3")), (Words{"--data.token_type=uint32"}));
}

}  // namespace
}  // namespace tokamak
