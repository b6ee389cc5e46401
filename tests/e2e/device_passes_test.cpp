// Random graphs through all passes of a target that has every kernel some backend has, with the interpreter before and
// after: what those passes make of a graph means the same, wherever it runs.
#include "ops/group.h"
#include "passes/pass.h"
#include "tests/e2e/random_model.h"
#include "tests/support/fake_kernels.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

constexpr uint32_t kBaseSeed = 20260701;
constexpr int kGraphs = 1500;
constexpr double kTolerance = 1e-9;

PassContext random_context(uint32_t seed) {
  std::mt19937 random(seed);
  auto coin = [&] { return std::uniform_int_distribution<int>(0, 3)(random) > 0; };
  PassContext context;
  CompileConfig& options = context.options;
  options.precision = Precision::kFp32;
  options.disable_passes = {"pad_vocab"};  // keeps every argument's shape
  if (!coin()) options.disable_passes.emplace_back("fused_optimizer");
  if (!coin()) options.memory_budget_gib = 1e-6;
  Target& target = context.target;
  target.chunked_classifier = coin();
  target.matmul_argument = coin();
  target.matmul_operand = coin();
  target.matmul_accumulate = coin();
  target.row_column_groups = coin();
  target.matmul_operand_sums = coin();
  target.matmul_prologue = coin();
  if (coin()) context.kernels = fake_kernels({.attention_extras = [](const Graph&, const Node&) { return true; }});
  return context;
}

// The interpreter's numbers for second moments and steps as they can occur.
std::vector<HostTensor> arguments_of(const Graph& graph, uint32_t seed) {
  std::vector<HostTensor> arguments = random_arguments(graph, seed);
  for (size_t i = 0; i < arguments.size(); ++i)
    if (const std::string& name = graph.arguments()[i].name; name == "step" || name.starts_with("adam.v."))
      for (double& v : arguments[i].data) v = std::fabs(v);
  return arguments;
}

bool same(const std::vector<HostTensor>& a, const std::vector<HostTensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (difference(a[i], b[i]) > kTolerance) return false;
  return true;
}

TEST(DevicePasses, KeepTheMeaningOfRandomGraphs) {
  int classifiers = 0, row_columns = 0, attention_sums = 0;
  for (uint32_t i = 0; i < kGraphs; ++i) {
    Graph before = RandomModel(kBaseSeed + i).make(), after = before;
    PassContext context = random_context(i);
    run_passes(after, PassStage::kForward, context);
    run_passes(after, PassStage::kStep, context);
    std::vector<HostTensor> arguments = arguments_of(before, i);
    Interpretation x = interpret(before, arguments), y = interpret(after, arguments);
    ASSERT_TRUE(same(x.results, y.results) && same(x.updates, y.updates)) << "seed " << kBaseSeed + i << "\n"
                                                                          << print(before) << "became\n"
                                                                          << print(after);
    classifiers += count_ops(after, "classifier");
    for (const Node& node : after.nodes()) {
      attention_sums += node.attrs.get_bool("sums", false);
      if (node.op == &op::row)
        for (const Node& inner : node.body->nodes())
          row_columns += inner.op->name == "reduce_sum" && inner.attrs.get_ints("dims")[0] == 0;
    }
  }
  EXPECT_GT(row_columns, 20);
  EXPECT_GT(attention_sums, 20);
  RecordProperty("classifiers", classifiers);
}

}  // namespace
}  // namespace tokamak::test
