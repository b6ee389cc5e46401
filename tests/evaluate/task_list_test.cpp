#include "evaluate/task_list.h"

#include <gtest/gtest.h>

#include "evaluate/examples.h"
#include "tests/data/small_vocabulary.h"
#include "tests/support/expect_error.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

namespace tokamak::test {
namespace {

class TaskListTest : public testing::Test {
 protected:
  void SetUp() override {
    write_file_quickly(folder_ / "q.jsonl", R"({"context": "q0", "choices": ["a", "b"], "label": 1}
{"context": "q1", "choices": ["c", "d"], "label": 0}
{"context": "q2", "choices": ["e", "f"], "label": 1}
)");
  }

  std::vector<TaskSpec> read(const std::string& lines) {
    write_file_quickly(folder_ / "core.jsonl", lines);
    return parse_tasks({"list:" + (folder_ / "core.jsonl").string()});
  }

  TemporaryFolder folder_;
  Tokenizer tokenizer_{small_vocabulary({})};
};

TEST_F(TaskListTest, LinesSayAllOfATask) {
  std::vector<TaskSpec> specs = read(R"({"kind": "choices", "file": "q.jsonl"}

{"kind": "choices", "file": "q.jsonl", "name": "again", "shots": 2, "chance": 0.25, "delimiter": "\n"})");
  ASSERT_EQ(specs.size(), 2u);
  EXPECT_EQ(specs[0].name, "q");
  EXPECT_EQ(specs[0].shots, 0);
  EXPECT_EQ(specs[0].chance, -1);
  EXPECT_EQ(specs[1].name, "again");
  EXPECT_EQ(specs[1].file, folder_ / "q.jsonl") << "relative to the list";
  EXPECT_EQ(specs[1].shots, 2);
  EXPECT_EQ(specs[1].chance, 0.25);
  EXPECT_EQ(specs[1].delimiter, "\n");
}

TEST_F(TaskListTest, MistakesAreToldWithTheirLine) {
  auto refused = [&](const std::string& lines, std::initializer_list<std::string> pieces) {
    expect_user_error([&] { read(lines); }, pieces);
  };
  std::string place = (folder_ / "core.jsonl").string();
  refused("", {place, "expected tasks, got none"});
  refused("\n[1]", {place + " line 2: expected a JSON object"});
  refused(R"({"kind": "choices"})", {"got no \"file\""});
  refused(R"({"kind": "choices", "file": "q.jsonl", "shot": 1})", {"line 1", "got \"shot\""});
  refused(R"({"kind": "choices", "file": "q.jsonl", "shots": "1"})", {"expected a number in \"shots\""});
  refused(R"({"kind": "choices", "file": "q.jsonl", "shots": -1})", {"expected 0 to 1000 in \"shots\""});
  refused(R"({"kind": "choices", "file": "q.jsonl", "chance": 1})", {"expected a share from 0 to below 1"});
  refused(R"({"kind": "choices", "file": "none.jsonl"})", {"got none at", "none.jsonl"});
  refused(R"({"kind": "text", "file": "q.jsonl", "shots": 1})", {"expected no shots before texts"});
}

TEST_F(TaskListTest, OtherQuestionsWithTheirAnswersStandBefore) {
  TaskSpec spec = parse_tasks({"choices@2:" + (folder_ / "q.jsonl").string()})[0];
  Task task = load_task(spec, tokenizer_, 64, {.limit = 2});
  ASSERT_EQ(task.questions.size(), 2u);
  const std::string first = task.questions[0].texts[0].context;
  EXPECT_TRUE(first == "q1 c\n\nq2 f\n\nq0" || first == "q2 f\n\nq1 c\n\nq0") << first;
  EXPECT_EQ(task.questions[0].texts[1].context, first) << "the same before each choice";
  EXPECT_EQ(task.questions[1].texts[0].context.find("q1 c"), std::string::npos) << "never itself";
  EXPECT_EQ(tokenizer_.decode(task.requests[0].context), first);
  Task all = load_task(spec, tokenizer_, 64);
  EXPECT_EQ(all.questions[0].texts[0].context, first) << "whatever the limit";
  spec.shots = 3;
  expect_user_error([&] { load_task(spec, tokenizer_, 64); }, {"expected more than 3 questions", "got 3"});
}

TEST_F(TaskListTest, ShotsAreANumber) {
  for (const char* kind : {"choices@", "choices@x", "choices@-1", "choices@1x", "choices@9999", "text@1"})
    expect_user_error([&] { parse_tasks({std::string(kind) + ":" + (folder_ / "q.jsonl").string()}); },
                      {"KIND@SHOTS with 0 to 1000"});
}

// CORE's numbers: by tokens, centred by the chance that the list says.
TEST_F(TaskListTest, ChanceIsWhatTheListSays) {
  TaskSpec spec = read(R"({"kind": "choices", "file": "q.jsonl", "chance": 0.25})")[0];
  Task task = load_task(spec, tokenizer_, 64);
  for (Continuation& request : task.requests) request.tokens = {1, 2};
  task.requests[1].tokens = {1, 2, 3, 4};
  // The first question: -4 / 4 against -3 / 2; the second one right, the third one wrong.
  TaskResult result = judge(task, std::vector<Score>{{-3}, {-4}, {-1}, {-2}, {-1}, {-2}});
  auto value = [&](std::string_view name) {
    for (const Metric& metric : result.metrics)
      if (metric.name == name) return metric.value;
    return -9.0;
  };
  EXPECT_DOUBLE_EQ(value("accuracy"), 1.0 / 3);
  EXPECT_DOUBLE_EQ(value("accuracy_tokens"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(value("centred"), (1.0 / 3 - 0.25) / 0.75);
  EXPECT_DOUBLE_EQ(value("centred_tokens"), (2.0 / 3 - 0.25) / 0.75);
  EXPECT_DOUBLE_EQ(centred_averages(std::vector{result}).at(2).value, value("centred_tokens"));
}

}  // namespace
}  // namespace tokamak::test
