#include "compile/fill_budget.h"

#include "compile/step_compiler.h"
#include "config/config.h"
#include "tests/support/resolve_first.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace tokamak {
namespace {

constexpr double kGiB = double(int64_t(1) << 30);

// A compiler whose steps take `takes(told)` GiB; with `most` or more they compute nothing again.
struct Compiler {
  std::function<double(double told)> takes;
  double most = 1e9;
  int calls = 0;
  double most_told = most;  // with which it computes something again
  std::function<double(double told)> seconds = [](double) { return 1.0; };

  CompiledStep operator()(double told) {
    ++calls;
    CompiledStep step;
    step.programs.resize(1);
    step.runs.resize(1);
    step.programs[0].plan.seconds = seconds(told);
    step.programs[0].plan.arena_bytes = int64_t(kGiB * std::min(takes(told), most));
    step.programs[0].reports.push_back({.name = "choose_recompute", .changed = told < most_told});
    return step;
  }
};

double filled(Compiler& compiler, double asked) {
  auto compile = [&](double told) { return compiler(told); };
  return double(fill_budget(BudgetSearch(asked), compile).intermediate_bytes()) / kGiB;
}

TEST(FillBudget, TellsMoreWhereLessIsTaken) {
  Compiler compiler{[](double told) { return told - 4; }};
  double gib = filled(compiler, 10);
  EXPECT_LE(gib, 10);
  EXPECT_GE(gib, 9.5);
}

TEST(FillBudget, TellsLessWhereMoreIsTaken) {
  Compiler compiler{[](double told) { return told + 3; }};
  double gib = filled(compiler, 10);
  EXPECT_LE(gib, 10);
  EXPECT_GE(gib, 9);
}

// A value that is kept or not makes a jump: with 12.5 to 15.5 less is taken than with 12, and computed again.
TEST(FillBudget, PrefersWhatTakesLessTimeToWhatFillsItByChance) {
  auto takes = [](double told) { return told < 12.5 ? std::max(told, 11.0) + 6.1 : told < 15.5 ? told - 8 : told + 6; };
  auto seconds = [](double told) { return told < 12.5 ? 20.0 : 17 - 0.01 * told; };
  Compiler compiler{.takes = takes, .seconds = seconds};
  auto compile = [&](double told) { return compiler(told); };
  BudgetSearch search(18);
  EXPECT_LT(fill_budget(search, compile).programs[0].plan.seconds, 17);
  // With less nothing leads down to any of these; a search that has seen them knows them.
  Compiler again{.takes = takes, .seconds = seconds};
  auto compile_again = [&](double told) { return again(told); };
  EXPECT_LT(fill_budget(BudgetSearch(9), compile_again).programs[0].plan.seconds, 17);
}

// Buffers of what is told beside an arena of 2 GiB; then an update takes 6.
TEST(FillBudget, CountsAnArenaThatIsNeededInAnyCase) {
  constexpr auto kArena = int64_t(2 * kGiB), kUpdate = int64_t(6 * kGiB);
  auto compile = [](double told) {
    CompiledStep step = Compiler{[](double) { return 2.0; }}(told);
    step.buffers["kept"] = 1;
    Graph& graph = step.programs[0].plan.graph;
    graph.add_argument(Argument::Kind::kState, "kept", {DType::kU8, {int64_t(told * kGiB)}},
                       {Role::kActivation, "", {}});
    return step;
  };
  BudgetSearch search(10);
  CompiledStep first = fill_budget(search, compile);
  EXPECT_NEAR(double(first.buffer_bytes() + kArena) / kGiB, 9.9, 0.4);
  BudgetSearch beside = search.beside(kUpdate);
  CompiledStep second = fill_budget(beside, compile);
  EXPECT_NEAR(double(second.buffer_bytes() + kUpdate) / kGiB, 9.8, 0.3);
  EXPECT_LE(second.buffer_bytes() + kUpdate, int64_t(10 * kGiB));
}

TEST(FillBudget, CompilesOnceWhatNeedNotComputeAgainOrHasNoBudget) {
  Compiler compiler{[](double told) { return told; }, 5};
  EXPECT_EQ(filled(compiler, 10), 5);
  filled(compiler, 0);
  EXPECT_EQ(compiler.calls, 2);
}

TEST(FillBudget, TakesTheLeastWhereNothingFits) {
  Compiler compiler{[](double told) { return std::max(told, 7.0); }};
  EXPECT_EQ(filled(compiler, 2), 7);
  EXPECT_EQ(compiler.calls, 5) << "with what it has, less, and three times more";
}

// Between computing all again and nothing there may be little, far below what is asked for.
TEST(FillBudget, FindsANarrowStep) {
  for (double at : {0.05, 0.3, 0.9}) {
    Compiler compiler{[&](double told) { return told < at ? 4.0 : std::min(4 + 40 * (told - at), 20.0); }, 20};
    compiler.most_told = at + 0.4;
    double gib = filled(compiler, 10);
    EXPECT_LE(gib, 10) << at;
    EXPECT_GE(gib, 7) << at;
  }
}

// As a stage of 175B had it: a line from much that is left to a little too much leads to a little too much again and
// again.
TEST(FillBudget, GoesToTheMiddleWhereALineMisses) {
  auto takes = [](double whole) {
    double told = whole / 2.6;
    if (told >= 13) return 46.4;
    return told < 12.1 ? 6.2 : told < 12.36 ? 6.2 + (told - 12.1) / 0.26 * 27.9 : 34.1 + 15 * (told - 12.36);
  };
  Compiler compiler{takes, 46.4};
  compiler.most_told = 2.6 * 13;
  double gib = filled(compiler, 34.13);
  EXPECT_LE(gib, 34.13);
  EXPECT_GE(gib, 0.95 * 34.13);
}

// Where a value that is computed again is large, a little less makes no difference.
TEST(FillBudget, GoesOnWhereALittleLessIsNotNoticed) {
  Compiler compiler{[](double told) { return told < 6 ? 8.0 : 10.4; }};
  EXPECT_EQ(filled(compiler, 10), 8);
}

TEST(FillBudget, WhatIsTooMuchIsNoBetter) {
  Compiler compiler{[](double told) { return told < 12 ? 6.0 : 30.0; }};
  EXPECT_EQ(filled(compiler, 10), 6);
}

RunConfig tiny() {
  RunConfig config;
  config.model = {.layers = 6, .heads = 2, .width = 32, .context = 32, .vocab = 61};
  config.compile.precision = Precision::kBf16;
  config.mesh.data = 2, config.mesh.slots = 1;
  config.train.batch = 16, config.train.total_batch = 4 * 16 * 32;
  return config;
}

void expect_filled(RunConfig config) {
  auto bytes = [&](double budget) {
    config.compile.memory_budget_gib = budget / kGiB;
    return double(compile_step(config, Target()).intermediate_bytes());
  };
  double most = bytes(0);
  for (double share : {0.9, 0.75, 0.6}) {
    EXPECT_LE(bytes(share * most), share * most) << share;
    EXPECT_GE(bytes(share * most), 0.9 * share * most) << share;
  }
}

// What is gathered once a step is no value of a micro-batch, but choose_recompute counts it: it is told more.
TEST(FillBudget, OfAStepIsFilled) {
  RunConfig config = tiny();
  config.mesh.zero = 2;
  expect_filled(config);
}

TEST(FillBudget, OfAStepInSlotsIsFilled) {
  RunConfig config = tiny();
  config.mesh.slots = 4;
  expect_filled(config);
}

// Of each message, in order: how many parameters it gathers.
std::vector<size_t> gathered(const CompiledStep& step) {
  std::vector<size_t> counts;
  for (const CompiledGraph& program : step.programs)
    for (const Node& node : program.plan.graph.nodes())
      if (node.op->name == "all_gather") counts.push_back(node.outputs.size());
  return counts;
}

// What choose_recompute is told is more than the budget here, by which alone parameters are gathered.
TEST(FillBudget, ChangesOnlyWhatIsComputedAgain) {
  RunConfig config = tiny();
  config.mesh.zero = 2;
  config.compile.memory_budget_gib = 0.7 * double(compile_step(config, Target()).intermediate_bytes()) / kGiB;
  ResolvedRun run = resolve(config, Target());
  int tries = 0;
  auto count = [&](const Pass& pass, const Graph&) { tries += pass.name == "choose_recompute"; };
  CompiledStep filled = compile_step(run, Platform(Target()), count);
  EXPECT_GE(tries, 2) << "the first try fills the budget";
  EXPECT_EQ(gathered(filled),
            gathered(StepOfKinds(run, Platform(Target())).compile(-1, run.compile.memory_budget_gib)));
}

}  // namespace
}  // namespace tokamak
