// What a step of several programs amounts to, and how its schedule reads.
#include "compile/compiled_step.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "compile/step_compiler.h"
#include "config/config.h"
#include "graph/gpu_target.h"
#include "graph/op_def.h"
#include "graph/single_node.h"
#include "graph/text.h"
#include "model/model.h"
#include "ops/collective.h"
#include "ops/group.h"
#include "ops/matmul.h"
#include "plan/product_names.h"
#include "tests/support/resolve_first.h"

namespace tokamak {
namespace {

RunConfig tiny(int64_t micro_batches) {
  RunConfig config;
  config.model = {.layers = 1, .heads = 2, .width = 16, .context = 8, .vocab = 61};
  config.train.batch = 2;
  config.train.total_batch = micro_batches * 2 * 8;
  return config;
}

double flops_of(const Plan& plan) {
  double flops = 0;
  for (const Launch& launch : plan.launches) flops += launch.cost.flops;
  return flops;
}

// Seconds of the first launch, measured alone as one second of all that the device can do, in a long run.
double predicted_of_measured(int64_t ranks, double sustained) {
  RunConfig config = tiny(1);
  config.train.batch = 2 * ranks;
  config.train.total_batch = 0;
  config.mesh.data = ranks;
  config.compile.precision = Precision::kBf16;
  Platform platform;
  platform.target.sustained_share = sustained;
  platform.target.bf16_flops = 1;
  const Plan plan = compile_step(config, platform).programs[0].plan;
  auto matmul = std::ranges::find_if(
      plan.launches, [&](const Launch& l) { return plan.graph.nodes()[size_t(l.node)].op == &op::matmul; });
  const Node& node = plan.graph.nodes()[size_t(matmul->node)];
  platform.tuning.measured_seconds[kernel_key(plan.graph, node)] = 1;
  return compile_step(config, platform).programs[0].plan.launches[size_t(matmul - plan.launches.begin())].seconds;
}

TEST(CompiledStep, OverRanksTakesTheClockThatLinksLeave) {
  Target half;
  half.sustained_share = 0.5;
  EXPECT_DOUBLE_EQ(predicted_of_measured(1, 0.5), 2);
  EXPECT_DOUBLE_EQ(predicted_of_measured(2, 0.5), 1 / with_awake_links(half).sustained_share);
  EXPECT_GT(predicted_of_measured(2, 0.5), 2);
  EXPECT_DOUBLE_EQ(predicted_of_measured(2, 1), 1) << "a CPU has no such limit";
}

TEST(CompiledStep, IsOneProgramWithoutAccumulation) {
  CompiledStep step = compile_step(tiny(1), Target());
  ASSERT_EQ(step.programs.size(), 1u);
  const Plan& plan = step.programs[0].plan;
  EXPECT_EQ(print_runs(step), "step 0");
  EXPECT_EQ(step.resolved.micro_batches, 1);
  EXPECT_EQ(step.total_bytes(), plan.total_bytes());
  EXPECT_EQ(step.seconds(), plan.seconds);
  EXPECT_EQ(step.flops(), flops_of(plan));
}

TEST(CompiledStep, IsTwoProgramsWithAccumulation) {
  CompiledStep step = compile_step(tiny(4), Target());
  ASSERT_EQ(step.programs.size(), 2u);
  EXPECT_EQ(print_runs(step), "micro_batch 0-3, update");
  EXPECT_EQ(step.resolved.micro_batches, 4);
  EXPECT_EQ(step.largest().name(), "micro_batch");
  const Plan &part = step.programs[0].plan, &update = step.programs[1].plan;
  EXPECT_EQ(step.seconds(), 4 * part.seconds + update.seconds);
  EXPECT_EQ(step.flops(), 4 * flops_of(part) + flops_of(update));
  // All that the first keeps, parameters and sums of gradients, the second has as well.
  EXPECT_GT(part.state_bytes, 0);
  EXPECT_EQ(step.total_bytes(), part.arena_bytes + part.input_bytes + update.input_bytes + update.parameter_bytes +
                                    update.state_bytes + part.scratch_bytes + update.scratch_bytes);
}

// Of each parameter that a matmul multiplies a product forward and its two gradients, in every form that passes give
// them; the table of tokens has the classifier's.
TEST(CompiledStep, EveryProductHasAName) {
  for (const char* family : {"gpt2", "llama", "modern"})
    for (int64_t micro_batches : {1, 4})
      for (Precision precision : {Precision::kFp32, Precision::kBf16}) {
        RunConfig config = tiny(micro_batches);
        config.model.family = family;
        config.model.layers = 2;
        config.compile.precision = precision;
        CompiledStep step = compile_step(config, Target());
        const Graph& graph = step.programs[0].plan.graph;
        ProductFinder products(graph);
        std::map<std::string, std::array<int, 3>> counts;
        for (const Node& node : graph.nodes())
          if (std::optional<NamedProduct> product = products.find(node))
            ++counts[product->parameter][size_t(product->part)];
          else
            EXPECT_FALSE(node.op == &op::matmul && graph.shape(node.outputs[0]).size() == 2) << print(graph);
        EXPECT_GE(counts.size(), 8u) << family;
        for (const auto& [parameter, parts] : counts)
          EXPECT_EQ(parts, (std::array<int, 3>{1, 1, 1})) << family << " " << micro_batches << " " << parameter;
      }
}

// Queries, keys and values are one product where there are more tokens than columns; tensor ranks gather what norms
// make.
TEST(CompiledStep, ProductsSideBySideAndBetweenRanksHaveNames) {
  for (const char* family : {"llama", "modern"})
    for (auto [mesh, micro_batches] : {std::pair{MeshConfig{}, 1},
                                       {MeshConfig{}, 2},
                                       {{.data = 2}, 2},
                                       {{.data = 2, .zero = 2}, 2},
                                       {{.tensor = 2}, 1},
                                       {{.data = 2, .zero = 3}, 1}}) {
      RunConfig config = tiny(1);
      config.model = {.family = family, .layers = 2, .heads = 4, .width = 64, .context = 512, .vocab = 128};
      config.model.hidden = 192;  // fewer columns of gate and up than tokens
      config.compile.precision = Precision::kBf16;
      config.train.total_batch = micro_batches * 2 * 512;
      config.mesh = mesh;
      CompiledStep step = compile_step(config, Target());
      const Graph& graph = step.programs[0].plan.graph;
      ProductFinder products(graph);
      std::map<std::string, int> counts;
      for (const Node& node : graph.nodes())
        if (std::optional<NamedProduct> product = products.find(node)) ++counts[product_label(*product)];
      for (const auto& [label, count] : counts) EXPECT_FALSE(label.find("norm") != label.npos) << label;
      std::string up = config.model.family == "llama" ? "mlp.gate+up_proj" : "mlp.up_proj";
      for (std::string part : {"", " dgrad", " wgrad"})
        for (const std::string& name :
             {std::string("self_attn.q+k+v_proj"), std::string("self_attn.o_proj"), up, std::string("mlp.down_proj")})
          EXPECT_EQ(counts[name + part], 2)
              << family << " " << mesh.data << " " << mesh.tensor << " " << micro_batches << " " << name << part;
    }
}

TEST(CompiledStep, AddsSlotsInATree) {
  RunConfig config = tiny(8);
  config.mesh.slots = 8;
  CompiledStep step = compile_step(config, Target());
  EXPECT_EQ(print_runs(step), "micro_batch 0-7 (sum1 sum2), update");
  std::string runs;
  for (const ProgramRun& run : step.runs) runs += step.programs[run.program].name().back();
  EXPECT_EQ(runs, "hh1hh2hh1hhe");
  EXPECT_EQ(step.resolved.micro_batches, 8);
  config.mesh.data = 8;
  EXPECT_EQ(compile_step(config, Target()).programs.size(), 1u) << "a slot for each rank";
}

// Neighbours in the tree are slots of one rank, or of one run where that adds over ranks.
TEST(CompiledStep, GivesEverySlotToARunOfARank) {
  RunConfig config = tiny(4);
  config.mesh = {.data = 2, .zero = 1, .slots = 8};
  CompiledStep step = compile_step(config, Target());
  EXPECT_EQ(step.slot_of(0, 3), 3);
  EXPECT_EQ(step.slot_of(1, 0), 4);
  step.resolved.slots.sums_over_ranks_first = true;
  EXPECT_EQ(step.slot_of(0, 3), 6);
  EXPECT_EQ(step.slot_of(1, 0), 1);
}

// By the type of what is gathered: bytes that a rank sends in a step before its update, and in it.
struct Gathered {
  std::map<DType, double> before, after;
};

Gathered gathered_of(const CompiledStep& step) {
  Gathered gathered;
  for (size_t p = 0; p < step.programs.size(); ++p) {
    const Graph& graph = step.programs[p].plan.graph;
    for (const Node& node : graph.nodes())
      if (node.op == &op::all_gather)
        (node.phase == Phase::kUpdate ? gathered.after : gathered.before)[graph.dtype(node.inputs[0])] +=
            node_cost(graph, node).link_bytes * double(step.runs_of(p));
  }
  return gathered;
}

TEST(CompiledStep, GathersParametersOnceInTheLowTypeThatTheyAreReadIn) {
  RunConfig config = tiny(4);  // 8 sequences
  config.model.vocab = 128;
  config.mesh.data = 2;
  constexpr double kSent = 0.5;    // of 2 ranks
  for (int64_t slots : {1, 2, 8})  // several micro-batches; one; several again, one behind the other in a tree
    for (int64_t zero : {1, 2}) {
      SCOPED_TRACE(fmt::format("slots {}, zero {}", slots, zero));
      config.mesh.slots = slots, config.mesh.zero = zero;
      config.compile.precision = Precision::kFp32;
      Gathered full = gathered_of(compile_step(config, Target()));
      EXPECT_TRUE(full.before.empty()) << "in f32 parameters are gathered after the update";
      config.compile.precision = Precision::kBf16;
      CompiledStep step = compile_step(config, Target());
      Gathered low = gathered_of(step);
      double all = double(count_parameters(config.model)) * kSent, in_norms = 3 * 2 * 16 * kSent;
      EXPECT_EQ(low.before[DType::kBF16], 2 * (all - in_norms));
      EXPECT_EQ(low.before[DType::kF32], 4 * in_norms);
      EXPECT_EQ(full.after[DType::kF32] - low.after[DType::kF32], 4 * all) << "what is left are pieces of the norm";
      if (slots != 2) {
        EXPECT_EQ(print_runs(step).substr(0, 21), "weights, micro_batch ");
      }
    }
}

double sent_in(const CompiledStep& step, size_t program) {
  const Graph& graph = step.programs[program].plan.graph;
  double bytes = 0;
  for (const Node& node : graph.nodes()) bytes += node_cost(graph, node).link_bytes;
  return bytes;
}

// With the loss and the squares for the norm, which are next to nothing here. Where ranks have sums of their own, the
// last micro-batch may add them up beside its backward pass.
TEST(CompiledStep, AddsGradientsOverDataOnceAStepWhereARankHasRoomForThem) {
  RunConfig config = tiny(4);
  config.model.vocab = 128;
  config.mesh = {.data = 2, .slots = 1};
  auto W = double(count_parameters(config.model));
  constexpr double kRest = 100;
  for (auto [zero, where] : std::initializer_list<std::pair<int64_t, const char*>>{
           {0, "last"}, {1, "last"}, {2, "last"}, {0, "update"}, {1, "update"}}) {
    config.mesh.zero = zero;
    config.mesh.reduce_gradients = where;
    CompiledStep step = compile_step(config, Target());
    bool with_last = zero < 2 && config.mesh.reduce_gradients == "last";
    ASSERT_EQ(print_runs(step), with_last ? "micro_batch 0-2, last_micro_batch 3" : "micro_batch 0-3, update");
    EXPECT_NEAR(sent_in(step, 0), zero < 2 ? 0 : 4 * W / 2, kRest) << zero;
    EXPECT_NEAR(sent_in(step, 1), (zero < 2 ? 8 : 4) * W / 2, kRest)
        << "gradients, and the parameters that ZeRO 1 and 2 have updated";
  }
}

// What is compiled once for both is what each would be.
TEST(CompiledStep, SumsInTheLastMicroBatchMayComeAfterTheRest) {
  RunConfig config = tiny(4);
  config.mesh = {.data = 2, .slots = 1};
  auto begun = [&](const char* where) {
    config.mesh.reduce_gradients = where;
    return StepOfKinds(resolve(config, Target()), Platform(Target()));
  };
  StepOfKinds late = begun("update"), early = begun("last");
  CompiledStep expected = early.compile(-1, 0), made = late.with_sums_in_last(late.compile(-1, 0), false);
  EXPECT_EQ(print_runs(made), "micro_batch 0-2, last_micro_batch 3");
  EXPECT_EQ(print_runs(made), print_runs(expected));
  ASSERT_EQ(made.programs.size(), expected.programs.size());
  for (size_t i = 0; i < made.programs.size(); ++i) {
    EXPECT_EQ(print(made.programs[i].plan.graph), print(expected.programs[i].plan.graph)) << i;
    EXPECT_EQ(made.programs[i].plan.seconds, expected.programs[i].plan.seconds) << i;
  }
  config.mesh.bucket_mib = 0;  // so many small messages are slower beside the backward pass
  StepOfKinds many = begun("update");
  EXPECT_EQ(print_runs(many.with_sums_in_last(many.compile(-1, 0), true)), print_runs(compile_step(
                                                                               [&] {
                                                                                 config.mesh.reduce_gradients = "auto";
                                                                                 return config;
                                                                               }(),
                                                                               Target())));
}

// A target on which eight bits always pay.
Target with_float8() {
  Target target;
  target.bf16_flops = 1e9;
  target.fp8_flops = 1.7e9;
  target.memory_bandwidth = 1e12;
  target.launch_seconds = 0;
  return target;
}

int64_t count_float8(const CompiledStep& step) {
  int64_t count = 0;
  for (const CompiledGraph& program : step.programs)
    for (const Node& node : program.plan.graph.nodes())
      count += (node.op == &op::matmul || node.op == &op::fused_matmul) &&
               is_float8(program.plan.graph.dtype(node.inputs[0]));
  return count;
}

void expect_states_have_names_of_their_own(const CompiledStep& step) {
  for (const CompiledGraph& program : step.programs) {
    std::set<std::string> names;
    for (const Argument& argument : program.plan.graph.arguments())
      EXPECT_TRUE(names.insert(argument.name).second) << program.name() << ": " << argument.name;
  }
}

// What a product's range follows from may be gathered, cut or of another program.
TEST(CompiledStep, HasProductsInEightBitsOnMeshes) {
  RunConfig config = tiny(1);
  config.model = {.layers = 2, .heads = 2, .width = 64, .context = 32, .vocab = 128};
  config.compile.precision = Precision::kFp8;
  config.train.batch = 8;
  config.train.total_batch = 8 * 32;
  int64_t alone = count_float8(compile_step(config, with_float8()));
  config.compile.fp8_attention = false;
  int64_t without_attention = count_float8(compile_step(config, with_float8()));
  config.compile.fp8_attention = true;
  EXPECT_GE(without_attention, 10);
  EXPECT_GT(alone, without_attention);
  for (int64_t micro_batches : {1, 2})
    for (MeshConfig mesh : std::initializer_list<MeshConfig>{{.data = 2},
                                                             {.data = 2, .zero = 1},
                                                             {.data = 2, .zero = 2},
                                                             {.data = 2, .zero = 3},
                                                             {.context = 2},
                                                             {.data = 2, .context = 2, .zero = 1},
                                                             {.tensor = 2},
                                                             {.data = 2, .tensor = 2, .zero = 3}}) {
      config.mesh = mesh;
      config.mesh.slots = 1;
      config.train.total_batch = micro_batches * config.train.batch * config.model.context;
      CompiledStep step = compile_step(config, with_float8());
      EXPECT_EQ(count_float8(step), mesh.context > 1 ? without_attention : alone)
          << mesh.data << mesh.context << mesh.tensor << mesh.zero << micro_batches;
      expect_states_have_names_of_their_own(step);
    }
}

// Scales and casts of weights are made once for all micro-batches.
TEST(CompiledStep, CastsWeightsToEightBitsOnce) {
  for (const char* family : {"gpt2", "llama", "modern"})
    for (double budget : {0.0, 0.001}) {
      RunConfig config = tiny(2);
      config.model = {.family = family, .layers = 2, .heads = 2, .width = 64, .context = 32, .vocab = 128};
      config.compile.precision = Precision::kFp8;
      config.compile.memory_budget_gib = budget;
      config.train.batch = 8;
      config.train.total_batch = 2 * 8 * 32;
      CompiledStep step = compile_step(config, with_float8());
      EXPECT_GT(count_float8(step), 0);
      expect_states_have_names_of_their_own(step);
      if (budget > 0) continue;  // then casts to bf16 stay
      for (const Argument& argument : step.programs[0].plan.graph.arguments()) {
        bool is_matrix = argument.kind == Argument::Kind::kParameter && argument.spec.global.size() > 1;
        EXPECT_FALSE(is_matrix) << argument.name << " is read by each micro-batch";
      }
    }
}

// The order of nodes is that of the device.
TEST(CompiledStep, SendsGradientsOfTheLastMicroBatchBesideItsBackwardPass) {
  RunConfig config = tiny(4);
  config.model.layers = 3;
  config.mesh = {.data = 2, .bucket_mib = 0, .slots = 1, .reduce_gradients = "last"};
  const Graph graph = compile_step(config, Target()).programs[1].plan.graph;
  int sent = 0, sent_early = 0;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (!node.op->together) continue;
    ++sent;
    bool is_before_more = std::any_of(graph.nodes().begin() + int64_t(n), graph.nodes().end(), [](const Node& later) {
      return later.phase == Phase::kBackward && later.op == &op::matmul;
    });
    sent_early += is_before_more;
  }
  EXPECT_GT(sent, 30);
  EXPECT_GT(sent_early, sent * 2 / 3);
}

// As a stage of a pipeline will have it.
TEST(CompiledStep, PrintsSchedulesOfAnyPrograms) {
  CompiledStep step;
  for (const char* name : {"forward", "backward", "update"}) step.programs.push_back({Graph(), {}, {Graph(name)}});
  step.runs = {{0, 0}, {0, 1}, {1, 0}, {0, 2}, {1, 1}, {1, 2}, {2}};
  EXPECT_EQ(print_runs(step), "forward 0-1, backward 0, forward 2, backward 1-2, update");
  EXPECT_EQ(step.runs_of(1), 3);
  StageTransfer out{true, 1, "stream.1"}, in{false, 1, "stream_grad.1"};
  step.runs = {{0, 0},
               {.micro_batch = 0, .transfer = out},
               {.micro_batch = 1, .transfer = out},
               {.micro_batch = 0, .transfer = in},
               {1, 0},
               {2}};
  EXPECT_EQ(print_runs(step), "forward 0, send stream.1 0-1, receive stream_grad.1 0, backward 0, update");
  EXPECT_EQ(step.runs_of(0), 1);
}

}  // namespace
}  // namespace tokamak
