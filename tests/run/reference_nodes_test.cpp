// What has no kernel is found before the run as it is in it, said, and refused where that is asked for.
#include "run/reference_nodes.h"

#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "config/config.h"
#include "graph/host_tensor.h"
#include "graph/op_def.h"
#include "run/session.h"
#include "tests/support/expect_error.h"
#include "tests/support/resolve_first.h"

namespace tokamak {
namespace {

RunConfig tiny(Precision precision) {
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 16, .context = 8, .vocab = 61};
  config.train.batch = 2;
  config.compile.precision = precision;
  return config;
}

ReferenceNode first(const std::vector<ReferenceNode>& nodes) { return nodes.empty() ? ReferenceNode{} : nodes[0]; }

void expect_as_planned(const RunConfig& config) {
  std::unique_ptr<Backend> backend = cpu::make_backend();
  Platform platform = cpu::nominal_platform();
  Session session = make_session(config, platform, *backend);
  std::vector<ReferenceNode> planned = find_reference_nodes(session.compiled(), *platform.kernels);
  std::vector<ReferenceNode> taken = session.reference_nodes();
  EXPECT_EQ(list_kernels(taken), list_kernels(planned));
  EXPECT_EQ(taken.size(), planned.size());
  EXPECT_EQ(first(taken).node, first(planned).node);
}

TEST(ReferenceNodes, AreThoseOfThePlan) {
  for (Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16}) {
    SCOPED_TRACE(precision_name(precision));
    RunConfig config = tiny(precision);
    expect_as_planned(config);
    config.compile.disable_passes = {"fuse", "flash_attention", "fused_optimizer"};
    config.model.dropout = 0.1;
    config.train.total_batch = 4 * config.train.batch * config.model.context;
    expect_as_planned(config);
  }
}

TEST(ReferenceNodes, AreNoneOfAnOrdinaryRun) {
  std::unique_ptr<Backend> backend = cpu::make_backend();
  RunConfig config = tiny(Precision::kFp32);
  config.compile.strict = true;
  Session session = make_session(config, cpu::nominal_platform(), *backend);
  EXPECT_EQ(reference_warning(session.reference_nodes()), "");
}

TEST(ReferenceNodes, AreSaid) {
  std::unique_ptr<Backend> backend = cpu::make_backend();
  Session session = make_session(tiny(Precision::kFp16), cpu::nominal_platform(), *backend);
  std::string warning = reference_warning(session.reference_nodes());
  EXPECT_EQ(warning.rfind("warning: there is no kernel here for ", 0), 0u) << warning;
  for (const char* part : {"attention x2", "attention_grad x2", "matmul", "compile.strict"})
    EXPECT_NE(warning.find(part), std::string::npos) << part << ": " << warning;
  EXPECT_EQ(warning.find("cast"), std::string::npos) << "the scale's old value is copied by a kernel: " << warning;
}

TEST(ReferenceNodes, AreRefusedWithStrict) {
  std::unique_ptr<Backend> backend = cpu::make_backend();
  RunConfig config = tiny(Precision::kFp16);
  config.compile.strict = true;
  expect_user_error([&] { make_session(config, cpu::nominal_platform(), *backend); },
                    {"[compile] expected a kernel for every node", "(node ", " of 'step')", "and ", " more",
                     "choose another --compile.precision", "leave out --compile.strict"});
}

// An op that no backend knows.
TEST(ReferenceNodes, AreThoseOfAnUnknownOp) {
  const OpDef negative{.name = "negative",
                       .infer = [](const NodeSpec& spec) { return ValueTypes(spec.inputs); },
                       .reference =
                           [](const Node&, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
                             for (int64_t i = 0; i < out[0].size(); ++i) out[0][i] = -(*in[0])[i];
                           }};
  Graph graph("one");
  ValueId x = graph.add_argument(Argument::Kind::kInput, "x", {DType::kF32, {4}});
  Node node{.op = &negative, .inputs = {x}};
  graph.add_result("y", graph.add_node(node, {{DType::kF32, {4}}}).outputs[0]);
  Platform platform = cpu::nominal_platform();
  EXPECT_FALSE(platform.kernels->has_kernel(graph, graph.nodes()[0]));
  std::unique_ptr<Backend> backend = cpu::make_backend();
  TensorStore store(*backend);
  Program program(make_plan(graph, platform), *backend, store);
  EXPECT_EQ(program.nodes_by_reference(), std::vector<int>{0});
  const float in[4] = {1, -2, 3, 0};
  float out[4] = {};
  program.set_input("x", in, sizeof in);
  program.run();
  program.get_result("y", out, sizeof out);
  EXPECT_EQ(out[1], 2);
}

}  // namespace
}  // namespace tokamak
