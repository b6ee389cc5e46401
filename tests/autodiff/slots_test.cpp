// The programs of a step over slots on one rank: what they add, in which order, and what the update makes of it.
#include "autodiff/slots.h"

#include "config/optimizer_config.h"
#include "graph/builder.h"
#include "tests/autodiff/run_graph.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace tokamak::test {
namespace {

OptimizerConfig plain_sgd() { return {.name = "sgd", .momentum = 0, .weight_decay = 0, .clip = 0}; }

// A run with an odd number leaves what it gives in states of its own.
void run_slot(const Graph& slot, const SlotTerms& terms, size_t run, Values& values) {
  Values before = values;
  run_graph(slot, values);
  if (run % 2 == 0) return;
  for (const auto& [even, odd] : states_of_odd_runs(terms)) {
    values[odd] = values.at(even);
    values[even] = before.at(even);
  }
}

// Runs the programs as a step's schedule does, on gradients and losses that are given, with learning rate 1.
struct Step {
  Slots slots;
  Values values;

  // The loss and the norm.
  std::vector<double> run(const std::vector<std::vector<double>>& grads) {
    Graph slot("slot");
    GraphBuilder g(slot);
    ValueId p = g.parameter("p", {DType::kF32, {4}});
    Gradients gradients{{p}, {g.input("in", {DType::kF32, {4}})}};
    append_slot(g, gradients, g.input("in_loss", {DType::kF32, {}}), slots);
    SlotTerms terms = terms_of(slot, gradients);
    for (size_t run = 0; run < grads.size(); ++run) {
      values["in"] = HostTensor({DType::kF32, {4}}, grads[run]);
      values["in_loss"] = HostTensor({DType::kF32, {}}, {grads[run][0]});
      run_slot(slot, terms, run, values);
      if (run % 2 == 0 || run + 1 == grads.size()) continue;
      Graph sum = partial_sum_graph(terms, std::countr_one(run));
      verify(sum);
      run_graph(sum, values);
    }
    values["lr"] = HostTensor({DType::kF32, {}}, {1});
    Graph update = slot_update_graph(terms, plain_sgd(), slots, {});
    verify(update);
    std::vector<HostTensor> results = run_graph(update, values);
    return {results[size_t(index_of(update, "loss"))][0], results[size_t(index_of(update, "grad_norm"))][0]};
  }

  static int index_of(const Graph& graph, std::string_view name) {
    for (size_t i = 0; i < graph.results().size(); ++i)
      if (graph.results()[i].name == name) return int(i);
    return -1;
  }
};

TEST(SlotUpdate, TakesTheMeanOfAllSlots) {
  for (int64_t slots : {2, 4, 8}) {
    Step step{.slots = {.count = slots}, .values = {}};
    std::vector<std::vector<double>> grads;
    for (int64_t s = 0; s < slots; ++s) grads.push_back({double(1 << s), 0, 2, -1});
    double mean = double((1 << slots) - 1) / double(slots);
    for (int again = 0; again < 2; ++again) {  // nothing is left of the step before
      std::vector<double> told = step.run(grads);
      EXPECT_EQ(told[0], mean) << slots;
      EXPECT_NEAR(told[1], std::sqrt(mean * mean + 5), 1e-12);
      EXPECT_EQ(step.values["p"].data, (std::vector<double>{-mean * (again + 1), 0, -2.0 * (again + 1), again + 1.0}));
    }
  }
}

// Two uses of a parameter: each is added up over slots, and then both.
// With several ranks, or stages whose totals come from a program before, an update sees less than all runs.
TEST(SlotUpdate, TakesTheMeanOfAllSlotsWhereverTheyAre) {
  Graph slot("slot");
  GraphBuilder g(slot);
  Gradients gradients{{g.parameter("p", {DType::kF32, {4}})}, {g.input("in", {DType::kF32, {4}})}};
  SlotTerms terms = terms_of(slot, gradients);
  auto update = [&](const Slots& slots, const OtherStages& others) {
    return slot_update_graph(terms, plain_sgd(), slots, {}, others);
  };
  auto factor_of_loss = [](const Graph& graph) {
    const Node& mean = graph.nodes()[size_t(graph.producer(graph.find_result("loss")))];
    return graph.nodes()[size_t(graph.producer(mean.inputs[1]))].attrs.get_double("value");
  };
  EXPECT_EQ(factor_of_loss(update({.count = 4}, {})), 0.25);
  EXPECT_EQ(factor_of_loss(update({.count = 4, .ranks = {"data", 2}}, {})), 0.25);
  EXPECT_NE(update({.count = 4}, {}).find_argument("grad1.p"), kNoValue) << "the sum of the first two runs";
  Graph of_stage = update({.count = 4}, {.axis = {"pipe", 2}, .model = &slot});
  EXPECT_EQ(factor_of_loss(of_stage), 0.25);
  EXPECT_EQ(of_stage.find_argument("grad1.p"), kNoValue) << "the total has it";
}

TEST(SlotUpdate, AddsTheUsesOfAParameterLast) {
  double big = 0x1p53;
  std::vector<std::vector<double>> first = {{big}, {1}}, second = {{-big}, {1}};  // (2^53 + 1) + (1 - 2^53) is 0
  Slots slots{.count = 2};
  Values values;
  Graph slot("slot");
  GraphBuilder g(slot);
  ValueType type{DType::kF32, {1}};
  ValueId p = g.parameter("p", type);
  Gradients gradients{{p, p}, {g.input("first", type), g.input("second", type)}};
  append_slot(g, gradients, kNoValue, slots);
  SlotTerms terms = terms_of(slot, gradients);
  EXPECT_EQ(terms.twice, std::set<std::string>{"p"});
  terms.has_loss = false;
  for (size_t run : {0, 1}) {
    values["first"] = HostTensor(type, first[run]);
    values["second"] = HostTensor(type, second[run]);
    run_slot(slot, terms, run, values);
  }
  Values of_stage = values;
  run_graph(total_graph(terms, slots), of_stage);
  EXPECT_EQ(of_stage["grad.p"].data, std::vector<double>{big}) << "rounded";
  EXPECT_EQ(of_stage["peer_grad.p"].data, std::vector<double>{1 - big});
  values["lr"] = HostTensor({DType::kF32, {}}, {2});
  run_graph(slot_update_graph(terms, plain_sgd(), slots, {}), values);
  EXPECT_EQ(values["p"].data, std::vector<double>{-1});
}

// In f64 (2^53 + 1) + 1 is 2^53, and 2^53 + (1 + 1) is 2^53 + 2.
TEST(SlotUpdate, AddsInATree) {
  Step step{.slots = {.count = 4}, .values = {}};
  double big = 0x1p53;
  step.run({{big, 1, 1, 0}, {0, 1, 1, 0}, {1, big, 1, 0}, {1, 0, big, 0}});
  EXPECT_EQ(step.values["p"].data, (std::vector<double>{-(big + 2) / 4, -(big + 2) / 4, -(big + 2) / 4, 0}));
}

}  // namespace
}  // namespace tokamak::test
