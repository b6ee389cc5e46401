// Thousands of random graphs through the whole pipeline (passes with random options, plan, CPU program) against the
// interpreter on the graph as it was.
#include "base/parallel.h"
#include "graph/rewriter.h"
#include "passes/pass.h"
#include "tests/e2e/random_model.h"
#include "tests/support/graph_text.h"
#include "tests/support/note_op.h"
#include "tests/support/random_tensors.h"
#include "tests/support/run_on_cpu.h"
#include "tests/support/shuffled_device.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace tokamak::test {
namespace {

constexpr uint32_t kBaseSeed = 20240101;
constexpr int kGraphs = 4000, kLowPrecisionGraphs = 400;
constexpr uint32_t kGraphsWithEffects = 400;
constexpr double kTolerance =
    1e-5;  // fp32 against double, over chains of a dozen ops and their gradients: 60000 graphs have passed
constexpr double kLowTolerance = 0.15;  // bf16 against bf16 rounded in other places

struct Options {
  PassContext context;
  std::string text;
};

Options random_options(std::mt19937& random) {
  auto coin = [&] { return std::uniform_int_distribution<int>(0, 3)(random) > 0; };
  Options o;
  CompileConfig& c = o.context.options;
  c.precision = Precision::kFp32;
  for (const char* pass : {"fuse", "flash_attention", "pad_vocab", "fused_optimizer"})
    if (!coin()) c.disable_passes.emplace_back(pass);
  if (!coin()) c.memory_budget_gib = 1e-6;
  o.context.target.vocab_multiple = 8;
  o.context.target.matmul_bias = o.context.target.matmul_function = false;  // no CPU kernel either
  for (const char* pass : {"eliminate_dead_code", "eliminate_common_subexpressions", "form_groups"})
    if (std::uniform_int_distribution<int>(0, 9)(random) == 0) c.disable_passes.push_back(pass);
  o.context.target.chunked_classifier = coin();  // no CPU kernel: runs by its reference
  o.text = fmt::format("budget {} without", c.memory_budget_gib);
  for (const std::string& pass : c.disable_passes) o.text += " " + pass;
  return o;
}

// pad_vocab makes parameters (and what belongs to them) longer: with zeros.
std::vector<HostTensor> padded(const Graph& graph, const std::vector<HostTensor>& arguments) {
  std::vector<HostTensor> longer;
  for (size_t i = 0; i < arguments.size(); ++i) {
    longer.emplace_back(graph.type(graph.arguments()[i].value));
    std::copy(arguments[i].data.begin(), arguments[i].data.end(), longer.back().data.begin());
  }
  return longer;
}

std::string compare(const std::string& name, HostTensor got, const HostTensor& expected, double tolerance) {
  if (got.size() < expected.size()) return name + " is shorter";
  got.type = expected.type;
  got.data.resize(expected.data.size());
  double d = test::difference(got, expected);
  return d <= tolerance ? "" : fmt::format("{} differs by {}", name, d);
}

// The first difference between two runs of the same graph, or nothing.
std::string find_difference(const Graph& graph, const Interpretation& got, const Interpretation& expected,
                            double tolerance) {
  for (size_t i = 0; i < expected.results.size(); ++i)
    if (auto text = compare(graph.results()[i].name, got.results[i], expected.results[i], tolerance); !text.empty())
      return text;
  for (size_t i = 0; i < expected.updates.size(); ++i)
    if (auto text = compare("update of " + graph.argument_of(graph.updates()[i].target)->name, got.updates[i],
                            expected.updates[i], tolerance);
        !text.empty())
      return text;
  return {};
}

// Where the fault lies: in the passes if the interpreter sees the difference too, else in plan, backend or program.
std::string run_one(uint32_t seed) {
  Graph original = RandomModel(seed).make(), graph = original;
  std::mt19937 random(seed);
  Options options = random_options(random);
  std::string where = "in the passes", found;
  try {
    verify(original);
    std::vector<HostTensor> arguments = arguments_of(original, seed);
    Interpretation expected = interpret(original, arguments);
    run_passes(graph, PassStage::kForward, options.context);
    run_passes(graph, PassStage::kStep, options.context);
    std::vector<HostTensor> longer = padded(graph, arguments);
    where = "on the CPU";
    found = find_difference(original, run_on_cpu(graph, longer), expected, kTolerance);
    if (!found.empty() && !find_difference(original, interpret(graph, longer), expected, 1e-9).empty())
      where = "in the passes";
  } catch (const std::exception& error) {
    found = error.what();
  }
  if (found.empty()) return {};
  return fmt::format("seed {} ({}): {} {}\n{}\nbecame\n{}", seed, options.text, where, found, print(original),
                     print(graph));
}

TEST(RandomGraphs, CpuEqualsInterpreter) {
  int failures = 0;
  for (uint32_t i = 0; i < kGraphs && failures < 3; ++i) {
    set_num_threads(i % 8 ? 1 : 2);  // on a busy machine, waiting for a second thread takes longer than a small graph
    std::string failure = run_one(kBaseSeed + i);
    if (failure.empty()) continue;
    ADD_FAILURE() << failure;
    ++failures;
  }
  set_num_threads(0);
}

// bf16 rounds in other places once ops are fused, so the transformed graph is what the interpreter runs here.
TEST(RandomGraphs, CpuComesNearTheInterpreterInBf16) {
  for (uint32_t i = 0; i < kLowPrecisionGraphs; ++i) {
    uint32_t seed = kBaseSeed + 100000 + i;
    Graph graph = RandomModel(seed).make();
    std::mt19937 random(seed);
    Options options = random_options(random);
    options.context.options.precision = Precision::kBf16;
    std::vector<HostTensor> arguments = arguments_of(graph, seed);
    run_passes(graph, PassStage::kForward, options.context);
    run_passes(graph, PassStage::kStep, options.context);
    arguments = padded(graph, arguments);
    std::string found =
        find_difference(graph, run_on_cpu(graph, arguments), interpret(graph, arguments), kLowTolerance);
    ASSERT_TRUE(found.empty()) << "seed " << seed << " (" << options.text << "): " << found << "\n" << print(graph);
  }
}

// The graph with notes on some of its values, which are read on or by nobody; some are noted twice.
Graph with_notes(const Graph& graph, uint32_t seed) {
  std::mt19937 random(seed);
  Rewriter rewriter(graph);
  int64_t id = 0;
  for (const Node& node : graph.nodes()) {
    rewriter.copy(node);
    if (random() % 4) continue;
    std::string on = random() % 2 ? "a" : "b";
    ValueId value = rewriter.map(node.outputs[0]), noted = kNoValue;
    for (int times = 1 + int(random() % 2); times > 0; --times)
      noted = add_note(rewriter.in_place_of(node), value, id, on);
    if (random() % 2) rewriter.replace(node.outputs[0], noted);
    ++id;
  }
  return rewriter.finish();
}

// Through all passes, on two streams, in whatever order events allow.
TEST(RandomGraphs, EffectsHappenAsOftenAndInTheOrderThatTheGraphSays) {
  size_t count = 0;
  for (uint32_t i = 0; i < kGraphsWithEffects; ++i) {
    uint32_t seed = kBaseSeed + 200000 + i;
    Graph graph = with_notes(RandomModel(seed).make(), seed);
    std::mt19937 random(seed);
    Options options = random_options(random);
    if (i % 4 == 0) options.context.options.precision = Precision::kBf16;
    std::vector<HostTensor> arguments = arguments_of(graph, seed);
    take_notes();
    interpret(graph, arguments);
    Notes expected = take_notes();
    for (const auto& [on, ids] : expected) count += ids.size();
    run_passes(graph, PassStage::kForward, options.context);
    run_passes(graph, PassStage::kStep, options.context);
    ShuffledDevice device(seed);
    run_on(device, graph, padded(graph, arguments), 2);
    ASSERT_EQ(take_notes(), expected) << "seed " << seed << " (" << options.text << ")\n" << print(graph);
  }
  EXPECT_GT(count, 10 * kGraphsWithEffects);
}

TEST(RandomGraphs, CoverTheOpsThatModelsUse) {
  std::map<std::string, int> count;
  for (uint32_t i = 0; i < 300; ++i) {
    Graph graph = RandomModel(kBaseSeed + i).make();
    for (const Node& node : graph.nodes()) ++count[std::string(node.op->name)];
  }
  for (const char* op :
       {"add", "attention", "attention_grad", "adamw", "concat", "cross_entropy_grad", "dropout", "embedding_grad",
        "layer_norm_grad_params", "matmul", "reduce_max", "softmax_grad", "slice", "pad", "transpose"})
    EXPECT_GT(count[op], 10) << op;
}

}  // namespace
}  // namespace tokamak::test
