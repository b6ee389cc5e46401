#include "data/conversation.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "data/marked_tokens.h"
#include "data/prepare.h"
#include "data/tokenizer_files.h"
#include "tests/support/expect_error.h"
#include "tests/support/talk_data.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

constexpr const char* kAdvice = "skip it";

ConversationReader reader(const std::string& source) {
  return {ChatTemplate(source, "chat", "", "<end>"), {"<end>", "<im>"}, "<end>"};
}

std::string learned(const LearnedText& text) {
  std::string all;
  for (const TextSpan& span : text.learned) all += "(" + text.text.substr(span.begin, span.end - span.begin) + ")";
  return all;
}

constexpr const char* kPlain =
    "{% for m in messages %}[{{ m.role }}] {{ m.content }};{% endfor %}{% if add_generation_prompt %}[assistant] {% "
    "endif %}";
constexpr const char* kTalk =
    R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}, {"role": "user", "content": "e"}]})";

TEST(Conversation, AnswersAreLearnedUpToTheLast) {
  LearnedText text = reader(kPlain).read(kTalk, "x", kAdvice);
  EXPECT_EQ(text.text, "[user] a;[assistant] b;[user] c;[assistant] d;");
  EXPECT_EQ(learned(text), "(b;)(d;)");
}

TEST(Conversation, PairsNeedNoTemplate) {
  ConversationReader pairs({}, {"<end>"}, "<end>");
  LearnedText text = pairs.read(R"({"prompt": "2+2=", "completion": "4", "id": 3})", "x", kAdvice);
  EXPECT_EQ(text.text, "2+2=4");
  EXPECT_EQ(learned(text), "(4)");
  expect_user_error([&] { pairs.read(kTalk, "f line 3", kAdvice); }, {"f line 3: expected \"prompt\"", kAdvice});
}

TEST(Conversation, WhatSeparatesDocumentsStandsAroundThem) {
  LearnedText text =
      reader(
          "<end>{% for m in messages %}{{ m.content }}{% endfor %}{% if not add_generation_prompt %}{{ eos_token }}{% "
          "endif %}")
          .read(R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]})", "x",
                kAdvice);
  EXPECT_EQ(text.text, "qa") << "at both ends";
}

TEST(Conversation, GenerationTagsSayWhatIsLearned) {
  LearnedText text =
      reader(
          "{% for m in messages %}{{ m.role }}:{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% "
          "endgeneration %}{% endif %}.{% endfor %}")
          .read(kTalk, "x", kAdvice);
  EXPECT_EQ(text.text, "user:.assistant:b.user:.assistant:d.");
  EXPECT_EQ(learned(text), "(b)(d)");
}

TEST(Conversation, Mistakes) {
  const std::pair<const char*, const char*> kCases[] = {
      {"[1]", "expected a JSON object"},
      {"{\"messages\": 3}", "a list of messages"},
      {"{\"messages\": []}", "a list of messages"},
      {"{}", "\"messages\", or \"prompt\" and \"completion\", got none"},
      {R"({"prompt": "x"})", "a text as \"completion\", got nothing"},
      {R"({"prompt": "x", "completion": ""})", "a completion to learn, got an empty one"},
      {R"({"messages": [{"role": "assistant", "content": [1]}]})", "a text as \"content\", got array"},
      {R"({"messages": [{"role": "user", "content": "x"}]})", "an answer, a message of the role assistant, got none"},
      {
          R"({"messages": [{"role": "assistant", "content": "a<im>b"}]})",
          "messages without markers",
      },
      {R"({"prompt": "<end>", "completion": "y"})", "<end> in one"},
      {R"({"prompt": "x", "completion": "y<im>"})", "<im> in one"},
  };
  for (const auto& [object, piece] : kCases)
    expect_user_error([&, o = object] { reader(kPlain).read(o, "f line 2", kAdvice); },
                      {"[data] f line 2", piece, kAdvice});
  const char* between = "{% for m in messages %}{{ m.content + eos_token }}{% endfor %}";
  expect_user_error([&] { reader(between).read(kTalk, "x", kAdvice); }, {"<end> at the end alone", "--chat=chatml"});
  const char* changing = "{% for m in messages %}{{ m.content if loop.last else '-' }}{% endfor %}";
  expect_user_error([&] { reader(changing).read(kTalk, "x", kAdvice); }, {"stands the same whatever follows it"});
  expect_user_error([&] { reader("nothing").read(kTalk, "x", kAdvice); }, {"an answer to learn"});
}

class PrepareChat : public testing::Test {
 protected:
  void SetUp() override { test::make_talk(folder_.path()); }
  TokenShardIndex prepared(const std::string& chat, const std::string& file = "talk.jsonl") {
    PrepareOptions options;
    options.inputs = {(folder_ / file).string()};
    options.out = folder_ / "data";
    options.vocab = folder_ / "tokenizer";
    options.chat = chat;
    options.val_fraction = 0.1;
    options.shard_tokens = 300;
    return prepare(options);
  }
  TemporaryFolder folder_;
};

// Shards hold the mark, splits are cut anew with it, and what is learned are answers and the ends of documents alone.
TEST_F(PrepareChat, MarksGoThroughShardsAndSplits) {
  TokenShardIndex index = prepared("chatml");
  EXPECT_GT(index.train.shards.size(), 2u);
  Tokenizer tokenizer = load_tokenizer(folder_ / "data");
  std::string all, learned;
  int64_t ends = 0;
  for (const SplitIndex* split : {&index.train, &index.val}) {
    TokenStream stream(folder_ / "data", *split);
    stream.verify();
    std::vector<int32_t> tokens(size_t(stream.size()));
    stream.read(0, tokens);
    for (int32_t token : tokens) {
      std::string text = tokenizer.decode(std::vector{id_of(token)});
      all += text;
      ends += text == kEndOfText;
      if (is_learned(token)) learned += text;
    }
  }
  std::string expected_all, expected_learned;
  for (int i = 0; i < test::kTalks; ++i) {
    std::string answer = test::answer_of(i) + "<|im_end|>\n";
    if (i > 0) expected_all += kEndOfText, expected_learned += kEndOfText;
    expected_all += "<|im_start|>user\n" + test::question_of(i) + "<|im_end|>\n<|im_start|>assistant\n" + answer;
    expected_learned += answer;
  }
  EXPECT_EQ(all, expected_all);
  EXPECT_EQ(learned, expected_learned);
  EXPECT_EQ(ends, test::kTalks - 1);
}

TEST_F(PrepareChat, MistakesAreRefused) {
  expect_user_error([&] { prepared("llama3"); }, {"a tokenizer with the marker <|begin_of_text|>"});
  expect_user_error([&] { prepared("own"); }, {"chat_template.jinja, or a chat_template", "--chat=chatml"});
  expect_user_error([&] { prepared("pairs"); }, {"talk.jsonl line 1", "--chat=pairs", "--skip-bad"});
  write_file_atomic(folder_ / "x.txt", "text");
  expect_user_error([&] { prepared("chatml", "x.txt"); }, {"x.txt: expected JSON lines of conversations", "got text"});
  write_file_atomic(folder_ / "tokenizer/tokenizer_config.json", R"({"chat_template": "{{ x | tojson }}"})");
  expect_user_error([&] { prepared("own"); }, {"tokenizer_config.json line 1", "'tojson'"});
  write_file_atomic(
      folder_ / "tokenizer/tokenizer_config.json",
      R"({"chat_template": [{"name": "default", "template": "{% for m in messages %}{{ m.content }}{% endfor %}"}]})");
  EXPECT_GT(prepared("own").train.tokens(), 0);
}

}  // namespace
}  // namespace tokamak
