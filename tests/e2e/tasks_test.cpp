// Tasks through the program: of several models beside each other, and while a run trains.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "tests/support/run_program.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

class Tasks : public testing::Test {
 protected:
  void SetUp() override {
    test::make_tiny_data(folder_.path());
    std::string choices, completions;
    for (int i = 0; i < 12; ++i) {
      choices += fmt::format(
          "{{\"context\": \"the king\", \"choices\": [\"said unto\", \"see {}\", \"of\"], "
          "\"label\": {}}}\n",
          i, i % 3);
      completions += "{\"context\": \"the\", \"completion\": \"king\"}\n";
    }
    write_file_quickly(folder_ / "pick.jsonl", choices);
    write_file_quickly(folder_ / "say.jsonl", completions);
    write_file_quickly(folder_ / "more.txt", test::tiny_text(500, 7));
  }

  ProgramResult run(const std::vector<std::string>& arguments) { return run_program(folder_.path(), arguments); }

  void train(const std::string& out, const std::vector<std::string>& more = {}) {
    std::vector<std::string> options = {"--train.out=" + out};
    options.insert(options.end(), more.begin(), more.end());
    ProgramResult result = run(test::tiny_arguments("train", options));
    ASSERT_EQ(result.status, 0) << result.err;
    printed_ = result.out;
  }

  nlohmann::json eval(const std::string& run, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"eval", run, "--json", "--threads=2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ProgramResult result = this->run(arguments);
    EXPECT_EQ(result.status, 0) << result.err;
    return parse_json(result.out);
  }

  // Batches of another size may round differently.
  static void expect_near(const nlohmann::json& expected, const nlohmann::json& told) {
    for (const char* task : {"pick", "say", "more"})
      for (auto& [name, value] : expected[task].items()) {
        if (value.is_string())
          EXPECT_EQ(value, told[task][name]);
        else
          EXPECT_NEAR(value.get<double>(), told[task][name].get<double>(), 1e-4 * std::abs(value.get<double>()))
              << task << " " << name;
      }
  }

  /// The line of a step in metrics.jsonl.
  nlohmann::json metrics(const std::string& run, int64_t step) {
    std::string text = read_file(folder_ / run / "metrics.jsonl");
    for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      nlohmann::json line = parse_json(std::string_view(text).substr(begin, end - begin));
      if (line["step"] == step) return line;
    }
    return {};
  }

  TemporaryFolder folder_;
  std::string printed_;
  const std::string all_ = "choices:pick.jsonl,completions:say.jsonl,text:more.txt";
};

TEST_F(Tasks, TrainingAndEvalGiveTheSameNumbers) {
  train("a", {"--train.tasks=" + all_, "--train.tasks_every=10"});
  for (const char* piece :
       {"pick after step 10: accuracy ", "say after step 20: accuracy ", "more after step 20: bits_per_byte "})
    EXPECT_NE(printed_.find(piece), std::string::npos) << piece << printed_;
  nlohmann::json of_run = metrics("a", 20)["tasks"], told = eval("a", {"--task=" + all_});
  EXPECT_TRUE(metrics("a", 10).contains("tasks"));
  EXPECT_FALSE(metrics("a", 11).contains("tasks"));
  expect_near(of_run, told["tasks"]);
  EXPECT_NEAR(of_run["mean"]["centred"].get<double>(), told["centred"].get<double>(), 1e-9);
  EXPECT_EQ(told["tasks"]["pick"]["questions"], 12);
  EXPECT_EQ(told["step"], 20);
}

TEST_F(Tasks, ExportedModelsAnswerTheSame) {
  train("a");
  ASSERT_EQ(run({"export", "a", "model"}).status, 0);
  expect_near(eval("a", {"--task=" + all_})["tasks"], eval("model", {"--task=" + all_})["tasks"]);
}

TEST_F(Tasks, ModelsStandBesideEachOther) {
  train("a");
  train("b", {"--train.seed=2"});
  ProgramResult result = run({"eval", "a", "b", "--task=" + all_, "--threads=2", "--details=details.jsonl"});
  ASSERT_EQ(result.status, 0) << result.err;
  std::string head = result.out.substr(0, result.out.find('\n'));
  EXPECT_TRUE(head.starts_with("task  questions  number")) << head;
  EXPECT_NE(head.find("a (step 20)"), std::string::npos) << head;
  EXPECT_NE(head.find("b (step 20)"), std::string::npos) << head;
  EXPECT_NE(result.out.find("pick  12         accuracy"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("mean             centred"), std::string::npos) << result.out;
  std::string details = read_file(folder_ / "details.jsonl");
  EXPECT_EQ(std::count(details.begin(), details.end(), '\n'), 2 * (12 + 12));
  EXPECT_NE(details.find("\"place\":\"pick.jsonl line 12\""), std::string::npos) << details;
}

// One definition of validation loss: with as many batches, eval gives what train has measured.
TEST_F(Tasks, ValidationLossIsOneNumber) {
  train("a", {"--train.eval_every=20", "--train.eval_batches=3"});
  EXPECT_NEAR(metrics("a", 20)["val_loss"].get<double>(), eval("a", {"--batches=3"})["val"]["loss"].get<double>(),
              1e-6);
  ProgramResult both = run({"eval", "a", "a", "--batches=3", "--threads=2"});
  EXPECT_NE(both.out.find("val              loss"), std::string::npos) << both.out << both.err;
}

TEST_F(Tasks, MistakesAreToldBeforeTheWork) {
  train("a");
  auto refused = [&](const std::vector<std::string>& arguments, const std::string& piece) {
    ProgramResult result = run(arguments);
    EXPECT_NE(result.status, 0);
    EXPECT_NE(result.err.find(piece), std::string::npos) << result.err;
  };
  refused({"eval", "a", "--task=helaswag:pick.jsonl"}, "KIND:FILE with one of hellaswag");
  refused({"eval", "a", "--task=choices:say.jsonl"},
          "say.jsonl line 1: expected a field \"choices\", got completion, context");
  refused({"eval", "a", "--limit=3"}, "[--limit] expected --task beside it");
  refused({"eval", "a", "--task=" + all_, "--batches=2"}, "got --batches as well");
  std::string words;
  for (int i = 0; i < 40; ++i) words += "king and ";
  write_file_quickly(folder_ / "long.jsonl", "{\"context\": \"" + words + "\", \"completion\": \"king\"}\n");
  refused({"eval", "a", "--task=completions:long.jsonl"}, "long.jsonl line 1: expected at most model.context = 16");
  ProgramResult cut = run({"eval", "a", "--task=completions:long.jsonl", "--cut-contexts", "--threads=2"});
  EXPECT_NE(cut.err.find("1 contexts are longer than model.context = 16"), std::string::npos) << cut.err;
  refused(test::tiny_arguments("train", {"--train.out=b", "--train.tasks=choices:nowhere.jsonl"}),
          "got none at nowhere");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "b"));
}

}  // namespace
}  // namespace tokamak
