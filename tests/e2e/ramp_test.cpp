// train.ramp: phases of a run are runs that go on with other settings, and shorter sequences are what a model of that
// context takes.
#include <gtest/gtest.h>

#include "run/random_batch.h"
#include "run/session.h"
#include "tests/e2e/finished_run.h"
#include "tests/e2e/small_run.h"
#include "tests/support/resolve_first.h"
#include "tests/support/run_program.h"

namespace tokamak {
namespace {

using test::expect_same;
using test::read_run;

class RampTest : public test::SmallRun {
 protected:
  RampTest() : SmallRun(1) {}

  RunConfig config(const std::string& out) const {
    RunConfig config = SmallRun::config(out);
    config.train.total_batch = 4 * 32;
    return config;
  }
  RunConfig with_ramp(const std::string& out) const {
    RunConfig ramp = config(out);
    ramp.train.ramp = {"6: total_batch=32 sequence=8", "11: total_batch=64"};
    return ramp;
  }
};

TEST_F(RampTest, PhasesAreRunsThatGoOnWithOtherSteps) {
  RunConfig ramp = config("ramp"), by_hand = config("by_hand");
  ramp.train.ramp = {"6: total_batch=32", "11: total_batch=64"};
  TrainSummary summary = run(ramp);
  EXPECT_EQ(summary.steps, 20);
  EXPECT_NE(listener_.messages.find("from step 1 on 32 tokens a step"), std::string::npos) << listener_.messages;
  EXPECT_NE(listener_.messages.find("from step 12 on 128 tokens a step"), std::string::npos);
  EXPECT_EQ(listener_.messages.find("resuming"), std::string::npos);

  by_hand.optimizer.schedule_steps = 20;
  for (auto [until, tokens] : {std::pair(6, 32), {11, 64}, {20, 128}}) {
    by_hand.train.steps = until;
    by_hand.train.total_batch = tokens;
    run(by_hand);
  }
  expect_same(read_run(ramp.train.out, 20), read_run(by_hand.train.out, 20));
}

// In the middle of a phase, at its end, and after it.
TEST_F(RampTest, ARunThatStopsGoesOnInItsPhase) {
  run(with_ramp("straight"));
  for (int64_t stop_after : {3, 6, 8}) {
    std::string out = "stopped" + std::to_string(stop_after);
    TrainSummary first = run(with_ramp(out), stop_after);
    EXPECT_TRUE(first.stopped);
    EXPECT_EQ(run(with_ramp(out)).steps, 20);
    EXPECT_EQ(listener_.messages.find("changed since"), std::string::npos) << listener_.messages;
    expect_same(read_run(folder_ / "straight", 20), read_run(folder_ / out, 20));
  }
}

// Of a family without a table of positions, whose weights are of no context.
TEST_F(RampTest, ShortSequencesAreThoseOfASmallerContext) {
  RunConfig cut = config("cut");
  cut.model.family = "llama";
  cut.model.vocab = 61;
  cut.data.mask_documents = true;
  RunConfig small = cut;
  cut.train.ramp = {"10: sequence=8"};
  small.model.context = 8;
  small.train.batch = 4;
  std::vector<Batch> batches;
  for (uint64_t seed : {1, 2, 3, 4}) {
    batches.push_back(random_batch(cut, seed));
    for (size_t i = 0; i < 32; ++i) batches.back().documents[i] = int32_t(i % 8 < 5 ? 0 : 5);
  }
  ResolvedRun of_phase = resolve(cut, cpu::nominal_platform().target, 0);
  Session a(of_phase, cpu::nominal_platform(), *backend_, 0);
  Session b = make_session(small, cpu::nominal_platform(), *backend_);
  a.initialise();
  b.initialise();
  for (int64_t step = 0; step < 3; ++step) {
    StepResult x = a.run_step(batches, step, 1e-2), y = b.run_step(batches, step, 1e-2);
    EXPECT_EQ(x.loss, y.loss) << step;
    EXPECT_EQ(x.grad_norm, y.grad_norm) << step;
  }
  EXPECT_EQ(a.tokens_per_step(), 128);
}

// Validation is of whole windows in every phase, and of the same ones.
TEST_F(RampTest, ValidatesAlikeInEveryPhase) {
  RunConfig ramp = with_ramp("ramp");
  ramp.optimizer.lr = 0;
  ramp.train.eval_every = 5;
  ramp.train.eval_batches = 3;
  run(ramp);
  std::ifstream lines(folder_ / "ramp/metrics.jsonl");
  std::vector<double> losses;
  for (std::string line; std::getline(lines, line);)
    if (auto json = nlohmann::json::parse(line); json.contains("val_loss")) losses.push_back(json["val_loss"]);
  ASSERT_EQ(losses.size(), 4u);
  for (double loss : losses) EXPECT_EQ(loss, losses[0]);
}

TEST_F(RampTest, HasTheSameBitsOnAnyNumberOfRanks) {
  auto train = [&](const std::string& out, std::vector<std::string> more) {
    more.insert(more.end(), {"--data.path=data", "--train.out=" + out, "--threads=1", "--train.total_batch=128",
                             "--train.ramp=6: total_batch=64 sequence=8", "--train.batch=2", "--mesh.slots=4"});
    ProgramResult result = run_program(folder_.path(), test::tiny_arguments("train", more));
    EXPECT_EQ(result.status, 0) << result.err;
    return read_run(folder_ / out, 20);
  };
  test::FinishedRun one = train("one", {"--mesh.data=1"});
  expect_same(one, train("two", {"--mesh.data=2"}));
  expect_same(one, train("zero", {"--mesh.data=2", "--mesh.zero=3"}));
  expect_same(one, train("pipe", {"--mesh.pipe=2"}));
}

TEST_F(RampTest, TheLedgerProvesItsSamples) {
  run(with_ramp("ramp"));
  ProgramResult told = run_program(folder_.path(), {"data", "ledger", "ramp"});
  EXPECT_EQ(told.status, 0) << told.err;
  EXPECT_NE(told.out.find("PROVEN: samples 0 to 103 were used once each"), std::string::npos) << told.out;
}

}  // namespace
}  // namespace tokamak
