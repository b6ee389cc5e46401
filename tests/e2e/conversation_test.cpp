// Training on conversations, of which only the answers are learned, from their text to the loss, by the program itself.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/e2e/finished_run.h"
#include "tests/support/run_program.h"
#include "tests/support/talk_data.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

using test::expect_same;
using test::FinishedRun;
using test::read_run;

class Conversations : public testing::Test {
 protected:
  void SetUp() override {
    test::make_talk(folder_.path());
    EXPECT_EQ(call({"prepare", "talk.jsonl", "--vocab=tokenizer", "--chat=chatml", "--out=data"}).status, 0);
  }

  ProgramResult call(const std::vector<std::string>& arguments) { return run_program(folder_.path(), arguments); }
  std::vector<std::string> train_line(const std::string& out, std::vector<std::string> more) const {
    more.insert(more.begin(), {"--data.path=data", "--data.mask_documents=true", "--train.out=" + out, "--threads=1",
                               "--train.total_batch=128", "--train.steps=6"});
    return test::tiny_arguments("train", more);
  }
  FinishedRun train(const std::string& out, const std::vector<std::string>& more) {
    ProgramResult result = call(train_line(out, more));
    EXPECT_EQ(result.status, 0) << result.err;
    return read_run(folder_ / out, 6);
  }

  TemporaryFolder folder_;
};

// Micro-batches and ranks have very different numbers of answers; the mean is over all of a step.
TEST_F(Conversations, TheMeanIsOverTheAnswersOfAStepHoweverItIsDivided) {
  FinishedRun whole = train("whole", {"--train.batch=8", "--mesh.slots=1"});
  for (const auto& [out, options] :
       {std::pair<std::string, std::vector<std::string>>("small", {"--train.batch=1", "--mesh.slots=1"}),
        {"two", {"--train.batch=4", "--mesh.data=2", "--mesh.slots=1"}},
        {"last", {"--train.batch=2", "--mesh.data=2", "--mesh.slots=1", "--mesh.reduce_gradients=last"}},
        {"tensor", {"--train.batch=4", "--mesh.tensor=2"}},
        {"pipe", {"--train.batch=2", "--mesh.pipe=2", "--mesh.slots=1"}}}) {
    FinishedRun other = train(out, options);
    for (size_t i = 0; i < whole.steps.size(); ++i) {
      EXPECT_NEAR(other.steps[i].loss, whole.steps[i].loss, 1e-4) << out << " step " << i + 1;
      EXPECT_NEAR(other.steps[i].grad_norm, whole.steps[i].grad_norm, 1e-3) << out << " step " << i + 1;
    }
  }
}

TEST_F(Conversations, HaveTheSameBitsOnAnyNumberOfRanks) {
  FinishedRun one = train("one", {"--mesh.slots=4"});
  expect_same(one, train("two", {"--mesh.slots=4", "--mesh.data=2"}));
  expect_same(one, train("zero", {"--mesh.slots=4", "--mesh.data=2", "--mesh.zero=3"}));
  expect_same(one, train("pipe", {"--mesh.slots=4", "--mesh.pipe=2"}));
}

// Answers are of one letter; questions have another one, which the model reads as often and is never told to say.
TEST_F(Conversations, OnlyAnswersAreLearned) {
  ASSERT_EQ(call(train_line("run", {"--train.steps=60", "--optimizer.lr=1e-2"})).status, 0);
  EXPECT_LT(read_run(folder_ / "run", 60).steps.back().loss, 1.5);
  auto loss_of = [&](const std::string& name, char letter) {
    write_file_atomic(folder_ / (name + ".txt"), std::string(3000, letter));
    EXPECT_EQ(call({"prepare", name + ".txt", "--vocab=tokenizer", "--out=" + name}).status, 0);
    ProgramResult result = call({"eval", "run", "--data=" + name, "--threads=1"});
    EXPECT_EQ(result.status, 0) << result.err;
    return std::stod(result.out.substr(result.out.find("loss ") + 5));
  };
  EXPECT_LT(loss_of("answers", 'a') + 2, loss_of("questions", 'q'));
}

TEST_F(Conversations, ARunThatGoesOnIsOneRunWithAProvenLedger) {
  FinishedRun straight = train("straight", {"--optimizer.schedule_steps=6"});
  ASSERT_EQ(call(train_line("broken", {"--optimizer.schedule_steps=6", "--train.steps=3"})).status, 0);
  expect_same(straight, train("broken", {"--optimizer.schedule_steps=6"}));
  ProgramResult told = call({"data", "ledger", "broken"});
  EXPECT_EQ(told.status, 0) << told.err;
  EXPECT_NE(told.out.find("PROVEN: samples"), std::string::npos) << told.out;
}

TEST_F(Conversations, MarksAreNeitherForgottenNorHidden) {
  ProgramResult unmasked = call(train_line("run", {"--data.mask_documents=false"}));
  EXPECT_NE(unmasked.status, 0);
  EXPECT_NE(unmasked.err.find("some tokens are not learned (prepare --chat)"), std::string::npos) << unmasked.err;
  ProgramResult told = call({"data", "inspect", "data"});
  EXPECT_NE(told.out.find("tokens as marked uint32"), std::string::npos) << told.out;
  EXPECT_NE(told.out.find("of them learned"), std::string::npos) << told.out;
}

}  // namespace
}  // namespace tokamak
