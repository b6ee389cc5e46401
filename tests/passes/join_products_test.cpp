// What rounding is left of the gradients of weights side by side, as a GPU's kernels compute them.
#include "passes/join_products.h"

#include "config/mesh_config.h"
#include "ops/group.h"
#include "ops/matmul.h"
#include "ops/matmul_form.h"
#include "ops/pointwise.h"
#include "passes/pass.h"
#include "passes/step_mesh.h"
#include "tests/passes/sharded_run.h"
#include "tests/passes/training_step.h"
#include "tests/support/graph_text.h"

#include <array>
#include <cmath>

namespace tokamak {
namespace {

using test::count_ops;

ModelConfig tiny() {
  ModelConfig model{.family = "llama", .layers = 2, .heads = 2, .width = 8, .context = 8, .vocab = 24};
  model.hidden = 12;
  return model;
}

Graph micro_batch() {
  constexpr int64_t kBatch = 8;  // so that a rank has more tokens than columns
  Graph graph = forward_graph("micro_batch", tiny(), kBatch, tiny().context, false);
  GraphBuilder g(graph);
  Gradients gradients = test::append_gradients(g, graph.find_result("loss"));
  append_accumulation(g, gradients);
  return graph;
}

PassContext context_of(const MeshConfig& mesh, bool joins) {
  PassContext context;
  context.mesh = step_mesh(mesh);
  context.sequence = mesh.sequence && mesh.tensor > 1;
  context.target.matmul_accumulate = true;
  context.options.precision = Precision::kBf16;
  context.options.disable_passes = {"pad_vocab"};
  if (!joins)
    context.options.disable_passes.insert(context.options.disable_passes.end(), {"join_projections", "join_gates"});
  return context;
}

// A product that is stored in f32, or added to a matrix in f32, is not rounded before (ops/matmul_form.h); its body,
// run op by op, would round it.
Graph as_kernels_compute(const Graph& graph) {
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    std::optional<MatmulForm> form;
    if (node.op == &op::fused_matmul) form = read_matmul(graph, node);
    if (!form || form->function || form->output != DType::kF32) {
      rewriter.copy(node);
      continue;
    }
    GraphBuilder& g = rewriter.in_place_of(node);
    ValueIds inputs = rewriter.map(node.inputs);
    ValueId y = g.add1(op::matmul, {inputs[size_t(form->a)], inputs[size_t(form->b)]},
                       {{"result", std::string("f32")}, {"trans_a", form->trans_a}, {"trans_b", form->trans_b}});
    if (form->addend >= 0) y = add(g, inputs[size_t(form->addend)], y);
    rewriter.replace(node.outputs[0], y);
  }
  return rewriter.finish();
}

Graph compiled(Graph step, const PassContext& context) {
  run_passes(step, PassStage::kForward, context);
  run_passes(step, PassStage::kStep, context);
  return as_kernels_compute(step);
}

bool is_joined(const std::string& parameter) {
  return std::ranges::any_of(std::array{"q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"},
                             [&](const char* part) { return parameter.find(part) != parameter.npos; });
}

std::vector<HostTensor> arguments_of(const Graph& graph, uint64_t seed) {
  std::vector<HostTensor> arguments = test::random_arguments(graph, seed, 24);
  for (size_t i = 0; i < arguments.size(); ++i)
    if (graph.arguments()[i].kind == Argument::Kind::kState) std::ranges::fill(arguments[i].data, 0);
  return arguments;
}

// What the first rank has of the gradients' sums, of weights that are put side by side, one after another; in double
// precision, of the step as it was.
struct Sums {
  std::vector<double> got, truth;
};
Sums sums_of(const Graph& step, const Graph& graph, const Mesh& mesh, uint64_t seed) {
  std::vector<HostTensor> arguments = arguments_of(step, seed);
  std::vector<Interpretation> ranks = interpret_ranks(graph, mesh, test::arguments_of_ranks(graph, mesh, arguments));
  Interpretation whole = interpret(step, arguments);
  Sums sums;
  for (size_t i = 0; i < graph.updates().size(); ++i) {
    const Argument& target = *graph.argument_of(graph.updates()[i].target);
    if (!is_joined(target.name)) continue;
    std::vector<Cut> cuts = target.spec.cuts;
    std::ranges::copy(test::updated(ranks, i, cuts, mesh, 0).data, std::back_inserter(sums.got));
    std::erase_if(cuts, [](const Cut& cut) { return cut.term; });
    std::ranges::copy(test::share_of(whole.updates[i], cuts, mesh, 0).data, std::back_inserter(sums.truth));
  }
  return sums;
}

double error_of(const Sums& sums) {
  double squares = 0;
  EXPECT_GT(sums.got.size(), 0u);
  for (size_t i = 0; i < sums.got.size(); ++i) squares += std::pow(sums.got[i] - sums.truth[i], 2);
  return std::sqrt(squares);
}

struct NamedMesh {
  const char* name;
  MeshConfig mesh = {};
};
const NamedMesh kMeshes[] = {{"one"}, {"data2", {.data = 2}}, {"tensor2", {.tensor = 2}}};

class JoinedGradientsOnMesh : public testing::TestWithParam<NamedMesh> {};

// Of all that rounds: the activations in bf16 do so more than anything else, joined or not.
TEST_P(JoinedGradientsOnMesh, AreNoFurtherFromTheTruthThanApart) {
  Graph step = micro_batch();
  PassContext context = context_of(GetParam().mesh, true);
  Graph joined = compiled(step, context), apart = compiled(step, context_of(GetParam().mesh, false));
  ASSERT_EQ(count_ops(joined, "packed_gate_grad"), 2);
  ASSERT_EQ(count_ops(joined, "packed_rotary_grad"), 2);
  ASSERT_EQ(count_ops(apart, "packed_gate_grad") + count_ops(apart, "packed_rotary_grad"), 0);
  constexpr int kBatches = 100;  // in each of which one or the other is closer, by chance
  double logs = 0;
  for (uint64_t seed = 1; seed <= kBatches; ++seed)
    logs += std::log(error_of(sums_of(step, joined, context.mesh, seed))) -
            std::log(error_of(sums_of(step, apart, context.mesh, seed)));
  EXPECT_LE(std::exp(logs / kBatches), 1.03);
}

TEST_P(JoinedGradientsOnMesh, AreInF32) {
  Graph joined = compiled(micro_batch(), context_of(GetParam().mesh, true));
  int slices = 0;
  for (const Node& node : joined.nodes())
    if (node.op->name.starts_with("slice") && node.phase == Phase::kBackward) {
      EXPECT_EQ(joined.dtype(node.outputs[0]), DType::kF32) << print(joined, node);
      ++slices;
    }
  EXPECT_GE(slices, 2 * 5);
}

INSTANTIATE_TEST_SUITE_P(All, JoinedGradientsOnMesh, testing::ValuesIn(kMeshes),
                         [](const auto& info) { return std::string(info.param.name); });

// The gradients of queries, keys and values in bf16, which are the same joined or not; `sums` says what becomes of
// those of the weights, %20, %17 and %14.
std::string backward_of_rotary(const std::string& arguments, const std::string& sums) {
  return R"(graph g {
  input x = %0 : bf16[18,6]
  input dqkv = %1 : bf16[2,9,24]
  input positions = %2 : i32[1,9]
  param q = %3 : f32[8,6]
  param k = %4 : f32[4,6]
  param v = %5 : f32[4,6]
)" + arguments +
         R"(  %6 = cast(%3) {to="bf16"} : bf16[8,6]
  %7 = cast(%4) {to="bf16"} : bf16[4,6]
  %8 = cast(%5) {to="bf16"} : bf16[4,6]
  %9, %10, %11 = rotary_qkv_grad(%1, %2) {factor=1.0, group=2, head_width=4, high_freq=4.0, low_freq=1.0, original_context=0, theta=100.0} #backward : bf16[2,9,8], bf16[2,9,4], bf16[2,9,4]
  %12 = matmul(%11, %8) {trans_a=false, trans_b=false} #backward : bf16[2,9,6]
  %13 = reshape(%11) {shape=[18,4]} #backward : bf16[18,4]
  %14 = matmul(%13, %0) {trans_a=true, trans_b=false} #backward : bf16[4,6]
  %15 = matmul(%10, %7) {trans_a=false, trans_b=false} #backward : bf16[2,9,6]
  %16 = reshape(%10) {shape=[18,4]} #backward : bf16[18,4]
  %17 = matmul(%16, %0) {trans_a=true, trans_b=false} #backward : bf16[4,6]
  %18 = matmul(%9, %6) {trans_a=false, trans_b=false} #backward : bf16[2,9,6]
  %19 = reshape(%9) {shape=[18,8]} #backward : bf16[18,8]
  %20 = matmul(%19, %0) {trans_a=true, trans_b=false} #backward : bf16[8,6]
  %21 = add(%12, %15) #backward : bf16[2,9,6]
  %22 = add(%21, %18) #backward : bf16[2,9,6]
  result dx = %22
)" + sums +
         "}";
}

// Onto those of the micro-batches before.
std::string with_sums() {
  return backward_of_rotary(R"(  state dq = %30 : f32[8,6]
  state dk = %31 : f32[4,6]
  state dv = %32 : f32[4,6]
)",
                            R"(  %33 = add(%30, %20) #update : f32[8,6]
  %34 = add(%17, %31) #update : f32[4,6]
  %35 = add(%32, %14) #update : f32[4,6]
  update %30 = %33
  update %31 = %34
  update %32 = %35
)");
}

// Over two ranks.
std::string with_ranks() {
  return backward_of_rotary("", R"(  %30 = cast(%20) {to="f32"} #backward : f32[8,6]
  %31 = cast(%17) {to="f32"} #backward : f32[4,6]
  %32 = cast(%14) {to="f32"} #backward : f32[4,6]
  %33, %34, %35 = all_reduce(%30, %31, %32) {axis="data", ordered=true, reduction="sum", size=2} #backward : f32[8,6], f32[4,6], f32[4,6]
  result dq = %33
  result dk = %34
  result dv = %35
)");
}

Graph compiled_text(const std::string& text, bool joins) {
  Graph graph = test::parse(text);
  run_passes(graph, PassStage::kStep, context_of({}, joins));
  EXPECT_EQ(count_ops(graph, "packed_rotary_grad"), joins ? 1 : 0) << print(graph);
  return as_kernels_compute(graph);
}

// Apart, products of bf16 are not rounded before they are added up, and so it is side by side: to f64's last digits.
TEST(JoinedGradients, AreThoseOfProductsApart) {
  Mesh mesh{{{"data", 2}}};
  for (const std::string& text : {with_sums(), with_ranks()}) {
    Graph joined = compiled_text(text, true), apart = compiled_text(text, false);
    std::vector<std::vector<HostTensor>> arguments{test::random_arguments(apart, 1), test::random_arguments(apart, 2)};
    std::vector<Interpretation> expected = interpret_ranks(apart, mesh, arguments),
                                got = interpret_ranks(joined, mesh, arguments);
    for (size_t rank = 0; rank < 2; ++rank) {
      for (size_t i = 1; i < expected[rank].results.size(); ++i)
        EXPECT_LE(test::difference(got[rank].results[i], expected[rank].results[i]), 1e-12);
      for (size_t i = 0; i < expected[rank].updates.size(); ++i)
        EXPECT_LE(test::difference(got[rank].updates[i], expected[rank].updates[i]), 1e-12);
    }
  }
}

// Where optimizers read gradients as they are, and where no kernel stores such a product in f32, they stay in 16 bits.
TEST(JoinedGradients, AreInTheTypeThatTheyAreReadIn) {
  Graph step = test::step_of(tiny());
  PassContext context = context_of({}, true);
  auto in_f32 = [](const Graph& graph) {
    return std::ranges::any_of(graph.nodes(), [&](const Node& node) {
      return node.op->name.starts_with("slice") && graph.dtype(node.outputs[0]) == DType::kF32;
    });
  };
  EXPECT_FALSE(in_f32(compiled(step, context)));
  EXPECT_TRUE(in_f32(compiled(micro_batch(), context)));
  context.target.matmul_accumulate = false;
  EXPECT_FALSE(in_f32(compiled(micro_batch(), context)));
}

}  // namespace
}  // namespace tokamak
