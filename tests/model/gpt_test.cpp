#include "model/gpt.h"

#include "config/model_config.h"
#include "tests/support/expect_error.h"

#include <gtest/gtest.h>

#include <set>

namespace tokamak {
namespace {

ModelConfig tiny() { return {.layers = 2, .heads = 2, .width = 8, .context = 6, .vocab = 11}; }

TEST(Gpt, RefusesSequencesLongerThanItsContext) {
  expect_user_error([] { eval_graph(tiny(), 1, 7); },
                    {"[gpt] expected sequences of at most model.context = 6 tokens, got 7"});
}

// Two tensors of one stream would drop the same elements.
TEST(Gpt, DropsEachTensorByAStreamOfItsOwn) {
  ModelConfig model = tiny();
  model.dropout = 0.1;
  Graph graph = forward_graph("step", model, 2, 6, false);
  std::set<int64_t> streams;
  int64_t random_nodes = 0;
  for (const Node& node : graph.nodes()) {
    if (!node.attrs.find("stream")) continue;
    ++random_nodes;
    streams.insert(node.attrs.get_int("stream"));
  }
  EXPECT_EQ(random_nodes, 1 + 3 * model.layers);  // the embeddings; attention and both ends of a block
  EXPECT_EQ(int64_t(streams.size()), random_nodes);
}

}  // namespace
}  // namespace tokamak
