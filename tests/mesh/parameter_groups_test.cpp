// A step whose matrices are updated by a rule that reads all of each, on ranks that are threads.
#include "autodiff/differentiate.h"
#include "autodiff/optimizer.h"
#include "backend/ranks/inprocess.h"
#include "base/parallel.h"
#include "compile/resolved_run.h"
#include "config/mesh_config.h"
#include "ops/collective.h"
#include "ops/matmul.h"
#include "passes/pass.h"
#include "passes/step_mesh.h"
#include "tests/passes/training_step.h"
#include "tests/support/run_on_cpu.h"
#include "tests/support/share_of.h"
#include "tests/support/toy_rule.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <set>

namespace tokamak::test {
namespace {

const OptimizerConfig kConfig{.eps = 0.05};

// adamw8bit is for matrices that are large enough; sums over them have more rounding in them.
bool is_for_large(const OptimizerRule& rule) { return &rule == &adamw8bit_rule; }

ModelConfig model_for(const OptimizerRule& rule) {
  if (is_for_large(rule)) return {.layers = 1, .heads = 2, .width = 256, .context = 8, .vocab = 24};
  return {.layers = 2, .heads = 2, .width = 16, .context = 8, .vocab = 24};
}

Graph step_by(const OptimizerRule& rule, const WorkShares& shares = {}) {
  ModelConfig model = model_for(rule);
  Graph graph = forward_graph("step", model, 4, model.context, false);
  GraphBuilder g(graph);
  Gradients gradients = append_gradients(g, graph.find_result("loss"));
  Optimizer optimizer(rule, kConfig);
  optimizer.set_shares(shares);
  append_update(g, gradients, optimizer);
  return graph;
}

PassContext context_of(const OptimizerRule& rule, const MeshConfig& mesh) {
  PassContext context;
  static_cast<Platform&>(context) = cpu::nominal_platform(1);
  context.options.precision = Precision::kFp32;
  context.mesh = step_mesh(mesh);
  context.zero = mesh.zero;
  context.bucket_mib = mesh.bucket_mib;
  context.updates_whole = Optimizer(rule, kConfig).updates_whole();
  return context;
}

Graph share_by(const OptimizerRule& rule, const MeshConfig& mesh, int64_t least_parts = 0) {
  Graph graph = step_by(rule, work_shares(step_mesh(mesh), mesh.zero, least_parts));
  run_passes(graph, PassStage::kStep, context_of(rule, mesh));
  return graph;
}

// All that a rank's share of a step is given; inputs are whole, and where the rank stands it knows itself.
std::vector<HostTensor> arguments_of(const Graph& share, const std::vector<HostTensor>& whole, const Mesh& mesh,
                                     int64_t rank) {
  std::vector<HostTensor> arguments;
  for (size_t i = 0; i < whole.size(); ++i) {
    const Argument& argument = share.arguments()[i];
    bool is_input = argument.kind == Argument::Kind::kInput;
    arguments.push_back(is_input ? whole[i] : share_of(whole[i], argument.spec.cuts, mesh, rank));
  }
  arguments.resize(share.arguments().size());
  return arguments;
}

double difference(const HostTensor& a, const HostTensor& b) {
  double worst = 0;
  for (int64_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::fabs(a[i] - b[i]));
  return a.type == b.type ? worst : INFINITY;
}

// What the ranks have after a step is their share of what one rank alone has.
void expect_same_on_ranks(const OptimizerRule& rule, const MeshConfig& config) {
  Mesh mesh = step_mesh(config);
  Graph whole = step_by(rule), share = share_by(rule, config);
  std::vector<HostTensor> arguments = step_arguments(whole);
  Interpretation expected = run_on_cpu(whole, arguments);
  run_ranks(int(mesh.num_ranks()), [&](Communicator& world) {
    set_num_threads(1);
    MeshRanks ranks(mesh, world);
    auto backend = cpu::make_backend();
    Interpretation got = run_on(*backend, share, arguments_of(share, arguments, mesh, ranks.rank()), 1, &ranks);
    for (size_t u = 0; u < expected.updates.size(); ++u) {
      const Argument& target = *share.argument_of(share.updates()[u].target);
      HostTensor part = share_of(expected.updates[u], target.spec.cuts, mesh, ranks.rank());
      bool is_code = part.type.dtype == DType::kU8;  // of numbers that may be beside each other
      double tolerance = is_code ? 1 + 1e-9 : part.type.dtype == DType::kBF16 ? 0.02 : is_for_large(rule) ? 3e-4 : 2e-5;
      EXPECT_LT(difference(got.updates[u], part), tolerance) << target.name << " on rank " << ranks.rank();
    }
  });
}

TEST(ParameterGroups, TrainOnRanksAsOnOne) {
  for (int64_t zero : {0, 1, 2, 3}) expect_same_on_ranks(kToyRule, {.data = 2, .zero = zero});
  expect_same_on_ranks(kToyRule, {.data = 2, .tensor = 2, .zero = 1});
}

TEST(ParameterGroups, SoDoThoseOfMuon) {
  for (const OptimizerRule* rule : {&muon_rule, &normuon_rule}) {
    for (int64_t zero : {0, 1, 2, 3}) expect_same_on_ranks(*rule, {.data = 2, .zero = zero});
    expect_same_on_ranks(*rule, {.data = 4, .zero = 3});
    expect_same_on_ranks(*rule, {.data = 2, .tensor = 2, .zero = 1});
    expect_same_on_ranks(*rule, {.data = 1, .tensor = 2});
    expect_same_on_ranks(*rule, {.data = 1, .context = 2, .tensor = 2, .zero = 2});
  }
}

TEST(ParameterGroups, SoDoThoseOf8BitsAndOfAdafactor) {
  for (const OptimizerRule* rule : {&adamw8bit_rule, &adafactor_rule}) {
    expect_same_on_ranks(*rule, {.data = 2, .zero = 2});
    expect_same_on_ranks(*rule, {.data = 2, .tensor = 2, .zero = 3});
    expect_same_on_ranks(*rule, {.data = 1, .tensor = 2});
  }
}

// Of rows of 4 blocks, 1024 numbers, each of 2 ranks has 2; those of q, k and v, 3 blocks of 256, are whole.
TEST(ParameterGroups, TensorCutsStatesOf8BitsBetweenBlocks) {
  Graph share = share_by(adamw8bit_rule, {.data = 1, .tensor = 2});
  auto cuts = [&](const std::string& name) {
    ValueId value = share.find_argument(name);
    return to_string(share.type(value)) + " " + print_cuts(share.argument_of(value)->spec.cuts);
  };
  EXPECT_EQ(cuts("adam8.m.h.0.mlp.c_fc.weight"), "u8[256,2,256] tensor:2@1");
  EXPECT_EQ(cuts("adam8.m_scale.h.0.mlp.c_fc.weight"), "f32[256,2] tensor:2@1");
  EXPECT_EQ(cuts("adam8.m.h.0.mlp.c_proj.weight"), "u8[512,1,256] tensor:2@0");
  EXPECT_EQ(cuts("adam8.m.h.0.attn.c_attn.weight"), "u8[256,3,256] ");
  for (const Node& node : share.nodes())
    for (ValueId output : node.outputs)
      if (node.op == &op::all_gather) EXPECT_NE(share.dtype(output), DType::kU8) << "codes stay where they are";
}

// What a rank multiplies in Muon's update, and sends for it: "matrices of all products, all_to_alls, other
// collectives".
std::string work_of_muon(const OptimizerRule& rule, const MeshConfig& mesh) {
  Graph share = share_by(rule, mesh);
  int64_t matrices = 0, exchanges = 0, others = 0;
  for (const Node& node : share.nodes()) {
    if (node.phase != Phase::kUpdate) continue;
    const Shape& shape = share.shape(node.outputs[0]);
    if (node.op == &op::matmul) matrices += shape[0];
    if (node.op == &op::all_to_all) ++exchanges;
    if (node.op->together && node.op != &op::all_to_all && num_elements(shape) > 1) ++others;
    EXPECT_FALSE(node.op == &op::matmul && shape[2] != 16 && shape[2] != 64) << "all of a matrix";
  }
  return fmt::format("{}, {}, {}", matrices, exchanges, others);
}

// Of two blocks with six matrices each, q, k and v among them, 15 products of each. Its momentum comes to the rank that
// makes it orthogonal, and what becomes of it goes back, those of a form together.
TEST(ParameterGroups, AMatrixIsMadeOrthogonalByOneRank) {
  EXPECT_EQ(work_of_muon(muon_rule, {.data = 1}), "180, 0, 0");
  EXPECT_EQ(work_of_muon(muon_rule, {.data = 2}), "180, 0, 0") << "without ZeRO each rank has all";
  EXPECT_EQ(work_of_muon(muon_rule, {.data = 1, .tensor = 2}), "90, 8, 0");
  EXPECT_EQ(work_of_muon(muon_rule, {.data = 2, .zero = 3}), "90, 8, 0");
  EXPECT_EQ(work_of_muon(normuon_rule, {.data = 2, .zero = 3}), "90, 8, 4") << "and squares of outputs";
  EXPECT_EQ(work_of_muon(muon_rule, {.data = 4, .zero = 3}), "90, 8, 0") << "two of each form for four ranks";
}

// A library may choose another kernel for more matrices at a time, which adds in another order.
TEST(ParameterGroups, InSlotsMuonsProductsHaveTheSameShapesOnAnyNumberOfRanks) {
  auto shapes = [](const MeshConfig& mesh) {
    Graph share = share_by(muon_rule, mesh, 2);
    std::set<Shape> shapes;
    for (const Node& node : share.nodes())
      if (node.phase == Phase::kUpdate && node.op == &op::matmul) shapes.insert(share.shape(node.outputs[0]));
    return shapes;
  };
  const std::set<Shape> expected = shapes({.data = 1});
  EXPECT_EQ(expected, (std::set<Shape>{{1, 16, 16}, {3, 16, 16}, {1, 16, 64}, {1, 64, 16}}));
  for (int64_t zero : {0, 1, 3}) EXPECT_EQ(shapes({.data = 2, .zero = zero}), expected) << zero;
}

TEST(ParameterGroups, ZeroCutsTheMomentaOfMuon) {
  Graph share = share_by(normuon_rule, {.data = 2, .zero = 1});
  for (const Argument& argument : share.arguments()) {
    if (argument.name.starts_with("muon.m.")) EXPECT_EQ(print_cuts(argument.spec.cuts), "data:2@0") << argument.name;
    if (argument.name.starts_with("muon.v.")) EXPECT_TRUE(argument.spec.cuts.empty()) << argument.name;
  }
}

// ZeRO cuts what AdamW has, and of a matrix of the other rule nothing.
TEST(ParameterGroups, ZeroLeavesWholeWhatARuleReadsWhole) {
  Graph share = share_by(kToyRule, {.data = 2, .zero = 3});
  int cut = 0, whole = 0;
  for (const Argument& argument : share.arguments()) {
    if (argument.kind == Argument::Kind::kInput || argument.name == "step") continue;
    const std::string& name = argument.spec.of.empty() ? argument.name : argument.spec.of;
    bool by_toy_rule = share.find_argument("toy.m." + name) != kNoValue;
    EXPECT_EQ(argument.spec.cuts.empty(), by_toy_rule) << argument.name;
    (by_toy_rule ? whole : cut) += 1;
  }
  EXPECT_GT(cut, 10);
  EXPECT_EQ(whole, 3 * 2 * 4) << "a matrix with two states, four of them a block";
}

// So each rank makes the update by products of whole matrices, and adds up no parts of them.
TEST(ParameterGroups, AWholeMatrixIsUpdatedOnEveryRank) {
  OptimizerRule cut_rule = kToyRule;
  cut_rule.whole = false;
  for (bool whole : {true, false}) {
    Graph share = share_by(whole ? kToyRule : cut_rule, {.data = 2, .zero = 1});
    int products = 0, of_parts = 0;
    for (const Node& node : share.nodes()) {
      if (node.op != &op::matmul || node.phase != Phase::kUpdate) continue;
      ++products;
      of_parts += share.shape(node.inputs[0])[0] % 16 != 0;
    }
    EXPECT_EQ(products, 16);
    EXPECT_EQ(of_parts > 0, !whole);
  }
}

}  // namespace
}  // namespace tokamak::test
