// What tasks' files ask for, and what scores make of it.
#include "evaluate/task.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/data/small_vocabulary.h"
#include "tests/support/expect_error.h"
#include "tests/support/quick_file.h"
#include "tests/support/shared_data.h"
#include "tests/support/temporary_folder.h"

namespace tokamak::test {
namespace {

constexpr int32_t kMark = 258;

class TaskTest : public testing::Test {
 protected:
  /// A task of a file with this text. Tokens are bytes, " a" (256) and "he" (257).
  Task load(const std::string& kind, const std::string& text, int64_t context = 64, const TaskOptions& options = {}) {
    write_file_quickly(folder_ / "my.jsonl", text);
    return load_task(parse_tasks({kind + ":" + (folder_ / "my.jsonl").string()}).at(0), tokenizer_, context, options);
  }

  std::string text_of(const std::vector<int32_t>& ids) const { return tokenizer_.decode(ids); }

  void expect_refused(const std::string& kind, const std::string& text, std::initializer_list<std::string> pieces) {
    expect_user_error([&] { load(kind, text); }, pieces);
  }

  TemporaryFolder folder_;
  Tokenizer tokenizer_{small_vocabulary({{" ", "a"}, {"h", "e"}})};
};

TEST_F(TaskTest, NamesOfTasksAreChecked) {
  write_file_quickly(folder_ / "arc.easy.jsonl", "{}");
  std::string file = (folder_ / "arc.easy.jsonl").string();
  std::vector<TaskSpec> specs = parse_tasks({"choices:" + file, "hellaswag:" + file});
  EXPECT_EQ(specs[0].name, "arc");
  EXPECT_EQ(specs[1].name, "hellaswag");
  expect_user_error([&] { parse_tasks({"helaswag:" + file}); },
                    {"KIND:FILE with one of hellaswag, lambada, choices, completions, text", "\"helaswag:"});
  expect_user_error([&] { parse_tasks({"hellaswag"}); }, {"KIND:FILE", "got \"hellaswag\""});
  expect_user_error([&] { parse_tasks({"hellaswag:"}); }, {"KIND:FILE"});
  expect_user_error([&] { parse_tasks({"text:/nowhere"}); },
                    {"expected a file of text questions, got none at /nowhere"});
  expect_user_error([&] { parse_tasks({"choices:" + file, "text:" + file}); }, {"two that are called arc"});
}

TEST_F(TaskTest, ChoicesStandBehindTheirContext) {
  Task task = load("choices", R"({"question": "Is it", "choices": ["a", "he", " a"], "answer": 2}
{"context": "x ", "choices": ["a", "b"], "label": "1"}

{"contexts": ["p", "q"], "completion": "he", "label": 0})");
  ASSERT_EQ(task.questions.size(), 3u);
  EXPECT_EQ(task.questions[0].right, 2);
  EXPECT_EQ(task.questions[1].right, 1);
  EXPECT_EQ(task.questions[2].place, (folder_ / "my.jsonl").string() + " line 4");
  ASSERT_EQ(task.requests.size(), 7u);
  EXPECT_EQ(text_of(task.requests[0].context), "Is it");
  EXPECT_EQ(task.requests[0].tokens, (std::vector<int32_t>{256}));
  EXPECT_EQ(task.requests[1].tokens, (std::vector<int32_t>{' ', 257}));
  EXPECT_EQ(task.requests[2].tokens, (std::vector<int32_t>{256})) << "it has a blank already";
  EXPECT_EQ(text_of(task.requests[3].context), "x") << "the blank belongs to the word behind it";
  EXPECT_EQ(task.requests[3].tokens, (std::vector<int32_t>{256}));
  EXPECT_EQ(text_of(task.requests[5].context), "p");
  EXPECT_EQ(text_of(task.requests[6].context), "q");
  EXPECT_EQ(task.requests[6].tokens, task.requests[5].tokens);
}

TEST_F(TaskTest, AnEmptyContextIsTheMarkBetweenDocuments) {
  Task task = load("completions", R"({"context": "", "completion": "he"})");
  EXPECT_EQ(task.requests[0].context, (std::vector<int32_t>{kMark}));
  EXPECT_EQ(task.requests[0].tokens, (std::vector<int32_t>{257}));
}

// A merge across the border: the continuation is what the whole text has beyond the context's tokens.
TEST_F(TaskTest, AContinuationIsWhatItsTokensAdd) {
  Task task = load("completions", R"({"context": "h\n", "completion": "e"})");
  EXPECT_EQ(text_of(task.requests[0].context), "h");
  EXPECT_EQ(text_of(task.requests[0].tokens), "\ne");
}

TEST_F(TaskTest, LambadaAsksForTheLastWord) {
  Task task = load("lambada", R"({"text": "so said  he"})");
  EXPECT_EQ(text_of(task.requests[0].context), "so said");
  EXPECT_EQ(task.requests[0].tokens, (std::vector<int32_t>{' ', ' ', 257}));
}

// By the rules of lm-evaluation-harness (tasks/hellaswag/utils.py).
TEST_F(TaskTest, HellaswagIsCleaned) {
  Task task = load("hellaswag", R"({"activity_label": "A", "ctx_a": "x [header] y [title] z", "ctx_b": "the MAN", )"
                                R"("endings": ["[step] b", "c  d"], "label": "1"})");
  EXPECT_EQ(task.questions[0].texts[0].context, "A: x y. z The man");
  EXPECT_EQ(task.questions[0].texts[0].continuation, " b");
  EXPECT_EQ(task.questions[0].texts[1].continuation, "c d");
  EXPECT_EQ(task.questions[0].right, 1);
}

TEST_F(TaskTest, HellaswagOfTheSharedDataIsRead) {
  TOKAMAK_NEED_SHARED_DATA("hellaswag_val_text.jsonl.gz");
  TaskSpec spec = parse_tasks({"hellaswag:" + shared_data("hellaswag_val_text.jsonl.gz").string()})[0];
  Task task = load_task(spec, tokenizer_, 4096);
  EXPECT_EQ(task.questions.size(), 10042u);
  EXPECT_EQ(task.requests.size(), 4 * 10042u);
  EXPECT_EQ(load_task(spec, tokenizer_, 4096, {.limit = 7}).questions.size(), 7u);
}

TEST_F(TaskTest, UsersMistakesAreToldWithTheirLine) {
  std::string place = (folder_ / "my.jsonl").string() + " line 1: ";
  expect_refused("choices", "no json", {place + "expected a JSON object on each line, got no JSON"});
  expect_refused("choices", "[1]", {"expected a JSON object on each line, got other JSON"});
  expect_refused("choices", R"({"prompt": "a", "choices": ["b", "c"], "label": 0})",
                 {place + R"(expected a field "context" or "question" or "query", got choices, label, prompt)"});
  expect_refused("choices", R"({"context": 3, "choices": ["b", "c"], "label": 0})",
                 {R"(expected text in "context", got number)"});
  expect_refused("choices", R"({"context": "a", "choices": [], "label": 0})", {"expected 2 or more texts", "got 0"});
  expect_refused("choices", R"({"context": "a", "choices": ["b", 4], "label": 0})", {"a list of texts in \"choices\""});
  expect_refused("choices", R"({"context": "a", "choices": ["b", ""], "label": 0})", {"got a choice that is empty"});
  for (const char* label : {"2", "-1", "\"B\"", "0.5", "null"})
    expect_refused("choices", fmt::format(R"({{"context": "a", "choices": ["b", "c"], "label": {}}})", label),
                   {place + "expected a number from 0 to 1 in \"label\", which choice is right"});
  expect_refused("completions", R"({"context": "a", "completion": " "})", {"got a completion that is empty"});
  expect_refused("lambada", R"({"text": "word"})", {"two words or more", "got \"word\""});
  expect_refused("choices", "\n\n", {"expected questions, got none"});
  expect_refused("text", "", {"expected text, got none"});
}

TEST_F(TaskTest, WhatIsTooLongIsRefusedOrCut) {
  std::string line = R"({"context": "0123456789", "completion": "xyz"})";  // 10 and 4 tokens, of which 13 go in
  EXPECT_EQ(load("completions", line, 13).requests[0].context.size(), 10u);
  expect_user_error(
      [&] { load("completions", line, 12); },
      {"line 1: expected at most model.context = 12 tokens before the last one, got 13", "--cut-contexts"});
  Task cut = load("completions", line, 6, {.cut_contexts = true});
  EXPECT_EQ(text_of(cut.requests[0].context), "789");
  EXPECT_EQ(cut.cut, 1);
  expect_user_error([&] { load("completions", line, 3, {.cut_contexts = true}); },
                    {"a continuation of at most model.context = 3 tokens, got 4"});
}

TEST_F(TaskTest, VocabulariesWithoutAMarkNeedContexts) {
  Vocabulary vocabulary = small_vocabulary({});
  vocabulary.tokens.pop_back();
  vocabulary.special.clear();
  vocabulary.added.clear();
  tokenizer_ = Tokenizer(vocabulary);
  expect_refused("completions", R"({"context": "", "completion": "he"})", {"a mark between documents", "got neither"});
}

// Every token once; the last window goes back as far as it can.
TEST_F(TaskTest, TextsComeInWindows) {
  TaskSpec spec =
      parse_tasks({"text:" + (write_file_quickly(folder_ / "t.txt", "0123456789"), (folder_ / "t.txt").string())})[0];
  Task task = load_task(spec, tokenizer_, 4);
  ASSERT_EQ(task.requests.size(), 3u);
  EXPECT_EQ(task.text_bytes, 10);
  EXPECT_EQ(task.requests[0].context, (std::vector<int32_t>{kMark}));
  EXPECT_EQ(text_of(task.requests[0].tokens), "0123");
  EXPECT_EQ(text_of(task.requests[1].context), "3");
  EXPECT_EQ(text_of(task.requests[1].tokens), "4567");
  EXPECT_EQ(text_of(task.requests[2].context), "567");
  EXPECT_EQ(text_of(task.requests[2].tokens), "89");
}

const Metric& find(const std::vector<Metric>& metrics, const std::string& name) {
  for (const Metric& metric : metrics)
    if (metric.name == name) return metric;
  throw std::runtime_error("no metric " + name);
}

TEST_F(TaskTest, ChoicesAreJudgedPlainlyAndByBytes) {
  Task task = load("choices", R"({"context": "x", "choices": ["abcd", "b"], "label": 0}
{"context": "x", "choices": ["a", "b", "c", "d"], "label": 3})");
  // By bytes the longer one wins: -2 / 4 against -1 / 1.
  std::vector<Score> scores = {{-2}, {-1}, {-4}, {-3}, {-2}, {-1}};
  TaskResult result = judge(task, scores);
  EXPECT_EQ(result.questions, 2);
  EXPECT_EQ(find(result.metrics, "accuracy").value, 0.5);
  EXPECT_DOUBLE_EQ(find(result.metrics, "accuracy").error, 0.5);
  EXPECT_EQ(find(result.metrics, "accuracy_bytes").value, 1);
  double chance = (0.5 + 0.25) / 2;
  EXPECT_DOUBLE_EQ(find(result.metrics, "centred").value, (0.5 - chance) / (1 - chance));
  EXPECT_DOUBLE_EQ(find(result.metrics, "centred_bytes").value, 1);
  TaskResult other{.metrics = {{"accuracy", 0.25}}};
  std::vector<Metric> mean = centred_averages(std::vector{result, other});
  EXPECT_DOUBLE_EQ(find(mean, "centred").value, (find(result.metrics, "centred").value + 0.25) / 2);
  EXPECT_DOUBLE_EQ(find(mean, "centred_bytes").value, 1.25 / 2);
  EXPECT_TRUE(centred_averages(std::vector<TaskResult>{{.metrics = {{"bits_per_byte", 1}}}}).empty());
}

TEST_F(TaskTest, OfEqualChoicesTheFirstIsTaken) {
  Task task = load("choices", R"({"context": "x", "choices": ["a", "b"], "label": 0})");
  std::vector<Score> scores = {{-1}, {-1}};
  Chosen chosen = choose(task.questions[0], scores, task.requests);
  EXPECT_EQ(chosen.plain, 0u);
  EXPECT_EQ(chosen.by_bytes, 0u);
  EXPECT_EQ(chosen.by_tokens, 1u) << "b is two tokens here, and a is one";
}

TEST_F(TaskTest, CompletionsAreJudgedByWhatTheModelWouldWrite) {
  Task task = load("completions", R"({"context": "x", "completion": "ab"}
{"context": "x", "completion": "c"})");
  TaskResult result = judge(task, std::vector<Score>{{-1, true}, {-3, false}});
  EXPECT_EQ(find(result.metrics, "accuracy").value, 0.5);
  EXPECT_DOUBLE_EQ(find(result.metrics, "perplexity").value, std::exp(2));
  EXPECT_DOUBLE_EQ(find(result.metrics, "loss").value, 4.0 / 4) << "' a', 'b', ' ', 'c'";
}

TEST_F(TaskTest, TextsAreJudgedByTheirBytes) {
  Task task = load("text", R"({"text": "he he"})");  // 257 ' ' 257
  TaskResult result = judge(task, std::vector<Score>{{-6}});
  EXPECT_DOUBLE_EQ(find(result.metrics, "bits_per_byte").value, 6 / std::log(2.0) / 5);
  EXPECT_DOUBLE_EQ(find(result.metrics, "perplexity").value, std::exp(2));
  EXPECT_EQ(find(result.metrics, "tokens").value, 3);
}

}  // namespace
}  // namespace tokamak::test
