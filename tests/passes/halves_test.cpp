#include "passes/halves.h"

#include "graph/op_def.h"
#include "tests/passes/training_step.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

const ModelConfig kModel{.layers = 2, .heads = 2, .width = 8, .context = 8, .vocab = 24};

Graph forward(int64_t sequences, bool documents) {
  return forward_graph("forward", kModel, sequences, kModel.context, documents);
}

TEST(Halves, TogetherHaveTheLossOfTheBatch) {
  for (bool documents : {false, true})
    for (int64_t ranks : {1, 2, 4}) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, documents " << documents);
      Graph whole = forward(8, documents), halves = in_halves(forward(4, documents), ranks);
      verify(halves);
      std::vector<HostTensor> arguments = test::random_arguments(whole, 3, 24);
      ASSERT_EQ(halves.arguments().size(), whole.arguments().size());
      HostTensor got = interpret(halves, arguments).results[0], expected = interpret(whole, arguments).results[0];
      EXPECT_NEAR(got[0], expected[0], 1e-12);
    }
}

// Each rank's share of the inputs, and of either half, is what the rank has of the whole.
TEST(Halves, HaveHalfOfEachRanksSequences) {
  Graph halves = in_halves(forward(4, false), 2);
  std::vector<int> of_nodes = find_halves(halves);
  std::vector<HostTensor> arguments = test::random_arguments(halves, 3, 24);
  Graph shown = halves;
  shown.remove_results();
  std::vector<std::vector<double>> rows;
  for (int half : {1, 2})
    for (size_t n = 0; n < of_nodes.size(); ++n)
      if (of_nodes[n] == half && halves.nodes()[n].op->name == "reshape") {
        shown.add_result("half" + std::to_string(half), halves.nodes()[n].outputs[0]);
        break;
      }
  const std::vector<double>& tokens = arguments[0].data;
  std::vector<HostTensor> results = interpret(shown, arguments).results;
  ASSERT_EQ(results.size(), 2u);
  auto row = [&](int64_t sequence) {
    return std::vector<double>(tokens.begin() + sequence * kModel.context,
                               tokens.begin() + (sequence + 1) * kModel.context);
  };
  auto rows_of = [&](std::initializer_list<int64_t> sequences) {
    std::vector<double> all;
    for (int64_t sequence : sequences)
      for (double token : row(sequence)) all.push_back(token);
    return all;
  };
  EXPECT_EQ(results[0].data, rows_of({0, 1, 4, 5}));
  EXPECT_EQ(results[1].data, rows_of({2, 3, 6, 7}));
}

TEST(Halves, AreFoundAgain) {
  Graph halves = in_halves(forward(4, false), 1);
  std::vector<int> of_nodes = find_halves(halves);
  ASSERT_EQ(of_nodes.size(), halves.nodes().size());
  int count[4] = {0, 0, 0, 0};
  for (int half : of_nodes) ++count[half];
  EXPECT_EQ(count[1], count[2]);
  EXPECT_GT(count[1], 20);
  EXPECT_EQ(of_nodes.back(), 3) << "the loss of both";
  std::vector<int> of_whole = find_halves(forward(8, true));
  EXPECT_EQ(std::count(of_whole.begin(), of_whole.end(), 0), std::ptrdiff_t(of_whole.size()));
}

TEST(Halves, LieOverTensorRanksAsTheWholeDoes) {
  EXPECT_TRUE(can_be_halved(8, 4));
  EXPECT_FALSE(can_be_halved(4, 4)) << "a half would be cut along T";
  EXPECT_TRUE(can_be_halved(2, 4)) << "which the whole is, too";
  EXPECT_FALSE(can_be_halved(7, 1));
}

}  // namespace
}  // namespace tokamak
