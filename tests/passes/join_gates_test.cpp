#include "passes/join_gates.h"

#include "config/mesh_config.h"
#include "passes/step_mesh.h"
#include "tests/passes/sharded_run.h"
#include "tests/passes/training_step.h"
#include "tests/support/fake_kernels.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

#include <cstring>

namespace tokamak {
namespace {

using test::count_ops;
using test::parse;

// Four hidden columns, and 9 tokens: more than the columns of gate and up.
const char* kGate = R"(graph g {
  input x = %0 : f32[3,3,6]
  input down = %1 : f32[6,4]
  input dz = %2 : f32[3,3,6]
  input g = %3 : bf16[4,6]
  input u = %4 : bf16[4,6]
  %5 = cast(%3) {to="f32"} : f32[4,6]
  %6 = cast(%4) {to="f32"} : f32[4,6]
  %7 = matmul(%0, %5) {trans_a=false, trans_b=true} : f32[3,3,4]
  %8 = silu(%7) : f32[3,3,4]
  %9 = matmul(%0, %6) {trans_a=false, trans_b=true} : f32[3,3,4]
  %10 = mul(%8, %9) : f32[3,3,4]
  %11 = matmul(%10, %1) {trans_a=false, trans_b=true} : f32[3,3,6]
  %12 = matmul(%2, %1) {trans_a=false, trans_b=false} #backward : f32[3,3,4]
  %13 = mul(%12, %9) #backward : f32[3,3,4]
  %14 = mul(%12, %8) #backward : f32[3,3,4]
  %15 = matmul(%14, %6) {trans_a=false, trans_b=false} #backward : f32[3,3,6]
  %16 = reshape(%0) {shape=[9,6]} #backward : f32[9,6]
  %17 = reshape(%14) {shape=[9,4]} #backward : f32[9,4]
  %18 = matmul(%17, %16) {trans_a=true, trans_b=false} #backward : f32[4,6]
  %19 = silu_grad(%7, %13) #backward : f32[3,3,4]
  %20 = matmul(%19, %5) {trans_a=false, trans_b=false} #backward : f32[3,3,6]
  %21 = add(%15, %20) #backward : f32[3,3,6]
  %22 = reshape(%19) {shape=[9,4]} #backward : f32[9,4]
  %23 = matmul(%22, %16) {trans_a=true, trans_b=false} #backward : f32[4,6]
  result z = %11
  result dx = %21
  result dg = %23
  result du = %18
})";

std::string changed(const std::string& from, const std::string& to, std::string text = kGate) {
  EXPECT_NE(text.find(from), text.npos) << from;
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// The forward pass alone.
std::string forward() {
  std::string text = kGate;
  size_t backward = text.find("  %12 =");
  return text.replace(backward, text.npos, "  result z = %11\n}");
}

void expect_joined(const std::string& text) {
  Graph before = parse(text), after = before;
  EXPECT_TRUE(join_gates(after, {}));
  EXPECT_EQ(count_ops(after, "silu") + count_ops(after, "silu_grad") + count_ops(after, "mul"), 0) << print(after);
  test::expect_same_meaning(before, after, 1e-12);
}

void expect_left_alone(const std::string& text, const PassContext& context = {}) {
  Graph graph = parse(text);
  std::string before = print(graph);
  EXPECT_FALSE(join_gates(graph, context));
  EXPECT_EQ(print(graph), before);
}

TEST(JoinGates, AreOneProductForwardAndInBothGradients) {
  Graph before = parse(kGate), after = before;
  EXPECT_TRUE(join_gates(after, {}));
  EXPECT_EQ(print(after), test::canonical(R"(graph g {
    input x = %0 : f32[3,3,6]
    input down = %1 : f32[6,4]
    input dz = %2 : f32[3,3,6]
    input g = %3 : bf16[4,6]
    input u = %4 : bf16[4,6]
    %5 = cast(%3) {to="f32"} : f32[4,6]
    %6 = cast(%4) {to="f32"} : f32[4,6]
    %7 = concat(%5, %6) {dim=0} : f32[8,6]
    %8 = matmul(%0, %7) {trans_a=false, trans_b=true} : f32[3,3,8]
    %9 = packed_gate(%8) : f32[3,3,4]
    %10 = matmul(%9, %1) {trans_a=false, trans_b=true} : f32[3,3,6]
    %11 = matmul(%2, %1) {trans_a=false, trans_b=false} #backward : f32[3,3,4]
    %12 = packed_gate_grad(%11, %8) #backward : f32[3,3,8]
    %13 = reshape(%0) {shape=[9,6]} #backward : f32[9,6]
    %14 = reshape(%12) {shape=[9,8]} #backward : f32[9,8]
    %15 = matmul(%14, %13) {trans_a=true, trans_b=false} #backward : f32[8,6]
    %16 = slice(%15) {begin=0, dim=0, size=4} #backward : f32[4,6]
    %17 = slice(%15) {begin=4, dim=0, size=4} #backward : f32[4,6]
    %18 = matmul(%12, %7) {trans_a=false, trans_b=false} #backward : f32[3,3,6]
    result z = %10
    result dx = %18
    result dg = %16
    result du = %17
  })"));
  test::expect_same_meaning(before, after, 1e-12);
}

TEST(JoinGates, WithoutABackwardPassToo) { expect_joined(forward()); }

TEST(JoinGates, WhicheverOperandIsTheGate) {
  expect_joined(changed("mul(%8, %9)", "mul(%9, %8)"));
  expect_joined(changed("mul(%12, %9)", "mul(%9, %12)"));
  expect_joined(changed("mul(%12, %8)", "mul(%8, %12)"));
  expect_joined(changed("add(%15, %20)", "add(%20, %15)"));
}

TEST(JoinGates, WeightsThatTheBackwardPassGathersAgainAreItsOwn) {
  std::string again = R"(  %24 = cast(%3) {to="f32"} #backward : f32[4,6]
  %25 = cast(%4) {to="f32"} #backward : f32[4,6]
  %12 =)";
  std::string text = changed("  %12 =", again);
  text = changed("matmul(%14, %6)", "matmul(%14, %25)", changed("matmul(%19, %5)", "matmul(%19, %24)", text));
  Graph graph = parse(text);
  EXPECT_TRUE(join_gates(graph, {}));
  EXPECT_EQ(count_ops(graph, "concat"), 2);
  expect_joined(text);
}

// Nobody but the unit may read what is then a part of a matrix.
TEST(JoinGates, LeavesWhatIsReadElsewhere) {
  for (const char* value : {"%7", "%8", "%9", "%13", "%14", "%15", "%19"}) {
    SCOPED_TRACE(value);
    std::string text = kGate;
    expect_left_alone(text.insert(text.rfind('}'), std::string("  result kept = ") + value + "\n"));
  }
}

TEST(JoinGates, LeavesOtherGradients) {
  expect_left_alone(changed("silu_grad(%7, %13)", "silu_grad(%7, %12)"));
  expect_left_alone(changed("add(%15, %20)", "add(%15, %15)"));
  expect_left_alone(changed("mul(%12, %8)", "add(%12, %8)"));
}

TEST(JoinGates, LeavesProductsOfDifferentInputs) {
  std::string text = changed("matmul(%0, %6)", "matmul(%2, %6)", forward());
  expect_left_alone(text);
}

TEST(JoinGates, LeavesWeightsThatAreNoCopies) {
  std::string text = changed("bf16[4,6]", "f32[4,6]", forward());
  text = changed("  %5 = cast(%3) {to=\"f32\"} : f32[4,6]\n", "", text);
  text = changed("  %6 = cast(%4) {to=\"f32\"} : f32[4,6]\n", "", text);
  expect_left_alone(changed("(%0, %6)", "(%0, %4)", changed("(%0, %5)", "(%0, %3)", text)));
}

TEST(JoinGates, LeavesFewTokens) { expect_left_alone(changed("[3,3,", "[2,4,", forward())); }

TEST(JoinGates, LeavesWhatTheBackendHasNoKernelFor) {
  for (const char* missing : {"packed_gate", "packed_gate_grad"}) {
    SCOPED_TRACE(missing);
    PassContext context;
    context.kernels =
        test::fake_kernels({.has_kernel = [&](const Graph&, const Node& node) { return node.op->name != missing; }});
    expect_left_alone(kGate, context);
  }
  PassContext context;
  context.kernels = test::fake_kernels(
      {.has_kernel = [&](const Graph&, const Node& node) { return node.op->name != "packed_gate_grad"; }});
  Graph graph = parse(forward());
  EXPECT_TRUE(join_gates(graph, context));
}

ModelConfig tiny() {
  ModelConfig model{.family = "llama", .layers = 2, .heads = 2, .width = 8, .context = 8, .vocab = 24};
  model.hidden = 12;
  return model;
}

PassContext context_of(const MeshConfig& mesh, Precision precision) {
  PassContext context;
  context.mesh = step_mesh(mesh);
  context.zero = mesh.zero;
  context.sequence = mesh.sequence && mesh.tensor > 1;
  context.options.precision = precision;
  context.options.disable_passes = {"pad_vocab"};
  return context;
}

Graph compiled(Graph step, const PassContext& context) {
  run_passes(step, PassStage::kForward, context);
  run_passes(step, PassStage::kStep, context);
  return step;
}

struct NamedMesh {
  const char* name;
  MeshConfig mesh;
  int64_t batch = 8;  // enough for a rank to have more tokens than columns
};
const NamedMesh kMeshes[] = {
    {"one", {}},
    {"data2", {.data = 2, .tensor = 1}},
    {"zero3", {.data = 2, .zero = 3}},
    {"tensor2", {.data = 1, .tensor = 2}},
    {"tensor2_without_sequence", {.data = 1, .tensor = 2, .sequence = false}},
    {"context2", {.data = 1, .context = 2}},
    {"data2_tensor2_zero2", {.data = 2, .tensor = 2, .zero = 2}},
};

class JoinGatesOnMesh : public testing::TestWithParam<NamedMesh> {};

// Each rank's matrix is of its own shares of gate and up. bf16 rounds otherwise where gate and up are apart; that a
// share is the wrong one would be seen in the first digit.
TEST_P(JoinGatesOnMesh, GivesTheStepAsItWas) {
  Graph step = test::step_of(tiny(), GetParam().batch);
  for (bool recomputes : {false, true}) {
    PassContext context = context_of(GetParam().mesh, Precision::kBf16);
    if (recomputes) context.options.memory_budget_gib = 1e-9;
    Graph joined = compiled(step, context);
    EXPECT_EQ(count_ops(joined, "packed_gate"), recomputes ? 4 : 2) << print(joined);
    EXPECT_EQ(count_ops(joined, "packed_gate_grad"), 2);
    context.options.disable_passes.emplace_back("join_gates");
    Graph apart = compiled(step, context);
    EXPECT_EQ(count_ops(apart, "packed_gate"), 0);
    std::vector<HostTensor> arguments = test::step_arguments(step);
    for (const Graph* graph : {&apart, &joined})
      EXPECT_EQ(test::find_sharding_fault(step, *graph, context.mesh, arguments, 2e-2), "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, JoinGatesOnMesh, testing::ValuesIn(kMeshes),
                         [](const auto& info) { return std::string(info.param.name); });

// In eight bits products are chosen one by one, and f32 has no copies of weights.
TEST(JoinGates, StepsAsideInOtherPrecisions) {
  Graph step = test::step_of(tiny());
  for (Precision precision : {Precision::kFp8, Precision::kFp32, Precision::kTf32})
    EXPECT_EQ(count_ops(compiled(step, context_of({}, precision)), "packed_gate"), 0);
  EXPECT_EQ(count_ops(compiled(step, context_of({}, Precision::kFp16)), "packed_gate"), 2);
}

}  // namespace
}  // namespace tokamak
