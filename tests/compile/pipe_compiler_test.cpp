// Pipelines, run by the interpreter, are the step of one rank.
#include "compile/pipe_compiler.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <deque>

#include "compile/step_compiler.h"
#include "config/config.h"
#include "graph/text.h"
#include "ops/collective.h"
#include "tests/compile/pipe_run.h"
#include "tests/support/resolve_first.h"

namespace tokamak {
namespace {

using test::Inputs;
using test::PipeRun;

RunConfig tiny(int64_t layers, int64_t micro_batches) {
  RunConfig config;
  config.model = {.layers = layers, .heads = 2, .width = 8, .context = 4, .vocab = 13};
  config.train.batch = 2;
  config.train.total_batch = micro_batches * 2 * 4;
  config.optimizer = {.lr = 1e-2, .eps = 1e-4, .clip = 0.7};
  config.compile.precision = Precision::kFp32;
  return config;
}

Target target() {
  Target target;
  target.vocab_multiple = 8;
  return target;
}

Inputs random_inputs(const RunConfig& config, int64_t step) {
  ValueType type{DType::kI32, {config.train.batch, config.model.context}};
  Inputs inputs;
  for (int64_t m = 0; m < resolve(config, {}).micro_batches; ++m) {
    auto seed = uint64_t(100 * step + m);
    HostTensor starts = test::random_tensor(type, seed + 30, 4);
    test::make_starts(starts);
    inputs.push_back({{"tokens", test::random_tensor(type, seed + 10, 13)},
                      {"targets", test::random_tensor(type, seed + 20, 13)},
                      {"documents", starts},
                      {"loss_weight", HostTensor({DType::kF32, {}}, {1.0 / 8})},
                      {"rng", HostTensor({DType::kI32, {2}}, {double(seed), 3})}});
  }
  return inputs;
}

std::vector<const CompiledStep*> pointers(const std::vector<CompiledStep>& steps) {
  std::vector<const CompiledStep*> all;
  for (const CompiledStep& step : steps) all.push_back(&step);
  return all;
}

// Runs both; the largest difference of losses, norms, parameters and states.
double difference_after(RunConfig config, int64_t steps, const Target& target) {
  config.mesh.slots = 1;  // their bits: tests/mesh/pipe_slots_test.cpp
  RunConfig alone = config;
  alone.mesh = {};
  CompiledStep step = compile_step(alone, target);
  CompiledPipeline pipeline = compile_pipeline(config, target);
  PipeRun expected({&step}, alone), got(pointers(pipeline.stages), config);
  double worst = 0;
  for (int64_t s = 0; s < steps; ++s) {
    Inputs inputs = random_inputs(config, s);
    test::StepOutcome one = expected.run_step(inputs, 1e-2)[0];
    for (const test::StepOutcome& stage : got.run_step(inputs, 1e-2))
      worst = std::max({worst, std::fabs(stage.loss - one.loss), std::fabs(stage.grad_norm - one.grad_norm)});
  }
  size_t compared = 0, all = 0;
  auto outlives = [](const ArgumentSpec& spec) { return spec.role != Role::kWeights; };
  test::StageRun& whole = expected.stages()[0];
  for (const auto& [name, spec] : whole.specs()) all += outlives(spec);
  for (test::StageRun& stage : got.stages())
    for (const auto& [name, spec] : stage.specs()) {
      if (!whole.specs().count(name) || !outlives(spec)) continue;
      const HostTensor& truth = *whole.tensors(name, -1)[0];
      Mesh mesh = step_mesh({.data = config.mesh.data, .context = config.mesh.context, .tensor = config.mesh.tensor});
      std::vector<HostTensor*> ranks = stage.tensors(name, -1);
      for (size_t rank = 0; rank < ranks.size(); ++rank)
        worst = std::max(worst, test::difference(*ranks[rank], test::share_of(truth, spec.cuts, mesh, int64_t(rank))));
      ++compared;
    }
  EXPECT_GE(compared, all);
  return worst;
}

TEST(PipeCompiler, IsTheStepOfOneRankInEverySchedule) {
  for (const char* name : kPipeSchedules)
    for (int64_t stages : {2, 4})
      for (int64_t micro_batches : {1, 3, 4, 8})
        for (bool tied : {true, false}) {
          bool interleaved = name == std::string_view("interleaved");
          if (interleaved && micro_batches % stages != 0) continue;
          SCOPED_TRACE(fmt::format("{} {} stages, {} micro-batches, tied {}", name, stages, micro_batches, tied));
          RunConfig config = tiny(interleaved ? 2 * stages : stages, micro_batches);
          config.model.tie_weights = tied;
          config.mesh = {.pipe = stages, .schedule = name, .interleave = interleaved ? 2 : 1};
          EXPECT_LE(difference_after(config, 4, target()), 1e-12);
        }
}

TEST(PipeCompiler, KeepsDropoutMasksAndScaling) {
  for (const char* name : {"1f1b", "zero_bubble"}) {
    RunConfig config = tiny(5, 3);
    config.mesh = {.pipe = 2, .schedule = name};
    config.model.dropout = 0.2;
    config.data.mask_documents = true;
    EXPECT_LE(difference_after(config, 3, target()), 1e-12) << name;
    config.compile.disable_passes = {"flash_attention", "fuse"};
    EXPECT_LE(difference_after(config, 3, target()), 1e-12) << name;
  }
}

// Ranks of other axes within each stage; what is cut over data ranks goes to the same one of the other stage.
TEST(PipeCompiler, GoesTogetherWithTheOtherAxes) {
  RunConfig config = tiny(4, 4);
  config.mesh = {.pipe = 2, .data = 2, .schedule = "1f1b"};
  for (int64_t zero = 0; zero <= 3; ++zero) {
    config.mesh.zero = zero;
    EXPECT_LE(difference_after(config, 2, target()), 1e-9) << "zero " << zero;
  }
  config.mesh = {.pipe = 2, .data = 2, .tensor = 2, .zero = 1, .schedule = "zero_bubble"};
  EXPECT_LE(difference_after(config, 2, target()), 1e-9);
  config.mesh = {.pipe = 2, .data = 1, .context = 2, .schedule = "interleaved", .interleave = 2};
  EXPECT_LE(difference_after(config, 2, target()), 1e-9);
}

Target with_all_kernels() {
  Target target = ::tokamak::target();
  target.chunked_classifier = target.matmul_argument = target.matmul_operand = target.matmul_operand_sums = true;
  target.matmul_accumulate = target.row_column_groups = true;
  return target;
}

TEST(PipeCompiler, RunsInLowPrecision) {
  for (Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16})
    for (const char* name : {"1f1b", "zero_bubble"}) {
      RunConfig config = tiny(4, 3);
      config.mesh = {.pipe = 2, .schedule = name};
      config.compile.precision = precision;
      double tolerance = precision == Precision::kFp32 ? 1e-12 : 2e-2;
      EXPECT_LE(difference_after(config, 2, with_all_kernels()), tolerance) << name << " " << precision_name(precision);
    }
}

// What stage 1 does while it would wait, by op.
std::map<std::string, int> put_off(const RunConfig& config) {
  std::map<std::string, int> ops;
  CompiledPipeline pipeline = compile_pipeline(config, target());
  for (const CompiledGraph& program : pipeline.stages[1].programs)
    if (program.name() == "backward_weight")
      for (const Node& node : program.before.nodes()) ++ops[std::string(node.op->name)];
  return ops;
}

TEST(PipeCompiler, PutsTheSameGradientsOffWithSlots) {
  RunConfig config = tiny(4, 4);
  config.mesh = {.pipe = 2, .schedule = "zero_bubble", .slots = 1};
  std::map<std::string, int> plain = put_off(config);
  config.mesh.slots = 4;
  std::map<std::string, int> slots = put_off(config);
  EXPECT_GT(plain["matmul"], 0);
  EXPECT_EQ(plain["matmul"], slots["matmul"]);
}

// Sums of slots come after the program that gives them, whenever the schedule runs that.
TEST(PipeCompiler, AddsSlotsOfEachProgramInATree) {
  RunConfig config = tiny(4, 4);
  config.mesh = {.pipe = 2, .schedule = "zero_bubble", .slots = 4};
  CompiledPipeline pipeline = compile_pipeline(config, target());
  for (const char* program : {"backward_input", "backward_weight"}) {
    std::string runs;
    const CompiledStep& stage = pipeline.stages[1];
    for (const ProgramRun& run : stage.runs)
      if (const std::string& name = stage.programs[run.program].name(); !run.transfer && name.ends_with(program))
        runs += name.substr(0, name.find('.')) + " ";
    std::string own = program + std::string(" ");
    EXPECT_EQ(runs, own + own + "sum1 " + own + own + "total ");
  }
  EXPECT_GT(pipeline.seconds(), pipeline.timeline.seconds);
}

const Argument* find_state(const CompiledStep& step, const std::string& name, ValueType* type) {
  for (const CompiledGraph& program : step.programs)
    for (const Argument& a : program.plan.graph.arguments())
      if (a.name == name) return *type = program.plan.graph.type(a.value), &a;
  return nullptr;
}

TEST(PipeCompiler, SendsTheStreamInTheTypeThatItHas) {
  RunConfig config = tiny(2, 4);
  config.mesh.pipe = 2;
  config.compile.precision = Precision::kBf16;
  CompiledPipeline low = compile_pipeline(config, with_all_kernels());
  for (const char* name : {"stream.1", "stream_grad.1"}) {
    ValueType type;
    ASSERT_TRUE(find_state(low.stages[0], name, &type)) << name;
    EXPECT_EQ(type, (ValueType{DType::kBF16, {2, 4, 8}})) << name;
  }
}

// What goes to the next stage is the data rank's own, though tensor ranks put it together.
TEST(PipeCompiler, GathersTheStreamOverTensorAlone) {
  RunConfig config = tiny(2, 4);
  config.train.batch = 4, config.train.total_batch = 4 * 4 * 4;
  config.mesh.pipe = 2, config.mesh.data = 2, config.mesh.tensor = 2, config.mesh.slots = 1;
  CompiledPipeline pipeline = compile_pipeline(config, target());
  int gathered = 0;
  for (const CompiledGraph& program : pipeline.stages[0].programs)
    for (const Node& node : program.plan.graph.nodes())
      if (node.op == &op::all_gather) {
        EXPECT_EQ(node.attrs.get_string("axis"), "tensor") << program.name();
        ++gathered;
      }
  EXPECT_GT(gathered, 0);
}

// No activation has a dim of the vocabulary, and none is as large as a matrix times the micro-batches in flight.
// Elements that data ranks add up or scatter in the programs of that name, of all stages.
int64_t added_over_data(const CompiledPipeline& pipeline, std::string_view name) {
  int64_t elements = 0;
  for (const CompiledStep& stage : pipeline.stages)
    for (const CompiledGraph& program : stage.programs)
      for (const Node& node : program.plan.graph.nodes())
        if ((node.op == &op::all_reduce || node.op == &op::reduce_scatter) && program.name() == name &&
            node.attrs.get_string("axis") == kDataAxis)
          for (ValueId input : node.inputs) elements += num_elements(program.plan.graph.shape(input));
  return elements;
}

TEST(PipeCompiler, AddsGradientsOverDataOnceAStep) {
  for (int64_t zero : {0, 1, 2}) {
    RunConfig config = tiny(2, 4);
    config.mesh = {.pipe = 2, .data = 2, .zero = zero};
    config.mesh.slots = 1;
    CompiledPipeline pipeline = compile_pipeline(config, target());
    int64_t in_backward = added_over_data(pipeline, "backward"), once = 0;
    for (const char* program : {"last_backward", "sync_gradients", "update"})
      once += added_over_data(pipeline, program);
    if (zero == 2) {
      EXPECT_GT(in_backward, once) << "their sums are cut";
    } else {
      EXPECT_EQ(in_backward, 1) << "the loss";
      EXPECT_GT(once, 1000);
    }
  }
}

TEST(PipeCompiler, GathersParametersOnceAStepInLowPrecision) {
  RunConfig config = tiny(4, 4);
  config.compile.precision = Precision::kBf16;
  config.mesh = {.pipe = 2, .data = 2, .schedule = "interleaved", .interleave = 2};
  config.mesh.slots = 1;
  for (int64_t zero : {1, 2}) {
    config.mesh.zero = zero;
    EXPECT_LE(difference_after(config, 2, with_all_kernels()), 2e-2) << zero;
    CompiledPipeline pipeline = compile_pipeline(config, with_all_kernels());
    for (const CompiledStep& stage : pipeline.stages) {
      int of_weights = 0;
      for (size_t p = 0; p < stage.programs.size(); ++p) {
        const Graph& graph = stage.programs[p].plan.graph;
        bool is_weights = graph.name().starts_with("weights");
        bool is_behind = graph.name() == "sync_gradients" || graph.name() == "update";
        of_weights += is_weights;
        EXPECT_EQ(stage.runs_of(p), is_weights || is_behind ? 1 : 4) << graph.name();
        for (const Node& node : graph.nodes()) EXPECT_TRUE(is_weights || node.op != &op::all_gather) << graph.name();
        for (const Argument& a : graph.arguments())
          if (a.spec.role == Role::kColumn) {
            EXPECT_FALSE(a.spec.cuts.empty()) << a.name;
          }
      }
      EXPECT_EQ(of_weights, 2) << "one for each chunk";
      EXPECT_TRUE(stage.programs[stage.runs[0].program].name().starts_with("weights"));
      for (const auto& [state, buffers] : stage.buffers) EXPECT_FALSE(state.starts_with("weights")) << state;
    }
  }
}

TEST(PipeCompiler, HoldsActivationsAloneInBuffers) {
  RunConfig config = tiny(4, 8);
  config.mesh.pipe = 4;
  CompiledPipeline pipeline = compile_pipeline(config, target());
  for (size_t s = 0; s < 4; ++s) {
    const CompiledStep& stage = pipeline.stages[s];
    EXPECT_FALSE(stage.buffers.empty());
    for (const auto& [name, buffers] : stage.buffers) {
      ValueType type;
      const Argument* state = find_state(stage, name, &type);
      ASSERT_TRUE(state) << name;
      EXPECT_EQ(type.shape[0] == 2 || type.shape[0] == 8, true) << name << " " << to_string(type);
      EXPECT_LE(type.shape.back(), 32) << name << " " << to_string(type);
      if (state->spec.role == Role::kActivation) {
        EXPECT_EQ(buffers, int64_t(4 - s)) << name;
      }
    }
    EXPECT_GT(stage.buffer_bytes(), 0);
    EXPECT_GT(stage.total_bytes(), stage.buffer_bytes());
  }
}

// Of the stages, the first holds most micro-batches, and has to compute most again.
TEST(PipeCompiler, FitsWhatIsInFlightIntoTheBudget) {
  RunConfig config = tiny(8, 8);
  config.model.width = 32, config.model.context = 32;
  config.train.total_batch = 8 * 2 * 32;
  config.mesh.pipe = 4;
  CompiledPipeline whole = compile_pipeline(config, target());
  int64_t most = whole.stages[0].intermediate_bytes(), budget = most * 2 / 3;
  ASSERT_LT(whole.stages[3].intermediate_bytes(), budget);
  config.compile.memory_budget_gib = double(budget) / double(int64_t(1) << 30);
  CompiledPipeline fitted = compile_pipeline(config, target());
  for (const CompiledStep& stage : fitted.stages) EXPECT_LE(stage.intermediate_bytes(), budget);
  EXPECT_GE(double(fitted.stages[0].intermediate_bytes()), 0.9 * double(budget)) << "no more than it must";
  EXPECT_GT(fitted.stages[0].seconds(), whole.stages[0].seconds());
  EXPECT_EQ(fitted.stages[3].buffer_bytes(), whole.stages[3].buffer_bytes());
  EXPECT_LE(difference_after(config, 2, target()), 1e-12);
}

// What a rank has in memory is its own, so it does not matter how many others there are.
TEST(PipeCompiler, FitsIntoTheBudgetBesideManyDataRanks) {
  RunConfig config = tiny(4, 8);
  config.model.width = 32, config.model.context = 32;
  config.mesh = {.pipe = 2, .zero = 2};
  config.mesh.slots = 1;
  for (int64_t data : {2, 64}) {
    config.mesh.data = data;
    config.train.batch = 2 * data, config.train.total_batch = 8 * 2 * data * 32;
    config.compile.memory_budget_gib = 0;
    int64_t most = compile_pipeline(config, target()).stages[0].buffer_bytes();
    config.compile.memory_budget_gib = double(most / 2) / double(int64_t(1) << 30);
    CompiledPipeline fitted = compile_pipeline(config, target());
    EXPECT_LT(fitted.stages[0].buffer_bytes(), most * 2 / 3) << data;
    EXPECT_GT(fitted.stages[0].buffer_bytes(), most / 10) << data;
  }
}

// What all micro-batches in flight keep counts where it is chosen what is computed again.
TEST(PipeCompiler, FillsABudgetThatAMicroBatchWouldNotNotice) {
  RunConfig config = tiny(12, 16);
  config.model.width = 512, config.model.context = 1024;
  config.train.total_batch = 16 * config.train.batch * config.model.context;
  config.mesh = {.pipe = 3};
  config.mesh.slots = 1;
  double most = double(compile_pipeline(config, target()).stages[0].intermediate_bytes());
  for (double share : {0.6, 0.25}) {
    config.compile.memory_budget_gib = share * most / double(int64_t(1) << 30);
    double used = double(compile_pipeline(config, target()).stages[0].intermediate_bytes()) / most / share;
    EXPECT_LE(used, 1) << share;
    EXPECT_GE(used, 0.9) << share;
  }
}

std::string text_of(const CompiledStep& step) {
  std::string text = print_runs(step) + "\n";
  for (const CompiledGraph& program : step.programs) text += print(program.plan.graph);
  return text;
}

RunConfig with_data_ranks(const char* schedule) {
  RunConfig config = tiny(6, 4);
  config.mesh = {.pipe = 3, .data = 2, .zero = 1};
  config.mesh.slots = 1;
  config.mesh.schedule = schedule;
  config.mesh.reduce_gradients = "last";
  return config;
}

std::vector<std::string> last_runs(const RunConfig& config) {
  std::vector<std::string> names;
  for (const CompiledStep& stage : compile_pipeline(config, target()).stages)
    for (const ProgramRun& run : stage.runs)
      if (!run.transfer && stage.programs[run.program].name().starts_with("last_"))
        names.push_back(stage.programs[run.program].name() + fmt::format(" {}", run.micro_batch));
  return names;
}

// Of the last stage, behind its last micro-batch.
std::string runs_behind(const RunConfig& config) {
  CompiledStep stage = compile_pipeline(config, target()).stages.back();
  auto is_of_micro_batch = [](const ProgramRun& run) { return run.micro_batch >= 0; };
  auto last = std::find_if(stage.runs.rbegin(), stage.runs.rend(), is_of_micro_batch);
  stage.runs.erase(stage.runs.begin(), last.base());
  return print_runs(stage);
}

// What a stage sends on must not wait for sums over data ranks: the first stage alone sends nothing at the end, and
// what gives gradients of weights apart from those of inputs.
TEST(PipeCompiler, AddsGradientsUpBesideWhatAStageEndsWith) {
  EXPECT_EQ(last_runs(with_data_ranks("1f1b")), (std::vector<std::string>{"last_backward 3"}));
  EXPECT_EQ(last_runs(with_data_ranks("zero_bubble")),
            (std::vector<std::string>{"last_backward 3", "last_backward_weight 3", "last_backward_weight 3"}));
  RunConfig other = with_data_ranks("1f1b");
  other.mesh.reduce_gradients = "update";
  EXPECT_EQ(last_runs(other), std::vector<std::string>());
  other = with_data_ranks("1f1b");
  other.mesh.data = 1;
  EXPECT_EQ(last_runs(other), std::vector<std::string>());
  other = with_data_ranks("1f1b");
  other.mesh.zero = 2;
  EXPECT_EQ(last_runs(other), std::vector<std::string>()) << "sums of gradients are cut, not added once";
}

// The program of the last micro-batch reads what the forward pass of the others left, also where some of it is
// computed again.
TEST(PipeCompiler, AddsGradientsUpWhateverIsComputedAgain) {
  for (const char* recompute : {"selective", "full"})
    for (const char* schedule : {"1f1b", "zero_bubble"}) {
      RunConfig config = with_data_ranks(schedule);
      config.compile.recompute = recompute;
      EXPECT_FALSE(last_runs(config).empty()) << recompute << schedule;
    }
  RunConfig config = with_data_ranks("1f1b");
  config.compile.memory_budget_gib =
      0.9 / double(int64_t(1) << 30) * double(compile_pipeline(config, target()).stages[0].intermediate_bytes());
  EXPECT_EQ(last_runs(config).size(), 1u);
}

// A stage that waits for another one's gradients of what both have adds up all others before it does.
TEST(PipeCompiler, AddsGradientsUpBeforeAStageWaitsForAnother) {
  RunConfig config = with_data_ranks("1f1b");
  EXPECT_EQ(runs_behind(config), "sync_gradients, receive peer_grad.wte.weight, send grad.wte.weight, update");
  config.mesh.schedule = "zero_bubble";
  EXPECT_EQ(runs_behind(config), "receive peer_grad.wte.weight, send grad.wte.weight, update") << "done already";
  config.mesh.schedule = "1f1b";
  config.mesh.reduce_gradients = "update";
  EXPECT_EQ(runs_behind(config), "receive peer_grad.wte.weight, send grad.wte.weight, update");
  config = with_data_ranks("1f1b");
  config.model.tie_weights = false;
  EXPECT_EQ(runs_behind(config), "update");
}

// The stage that is done last waits for nobody; another one's sums are hidden.
TEST(PipeCompiler, PredictsThatStagesBeginTheirUpdatesWhenTheyAreDone) {
  CompiledPipeline pipeline = compile_pipeline(with_data_ranks("1f1b"), target());
  double before = pipeline.seconds();
  CompiledStep& last = pipeline.stages.back();
  auto sums = std::find_if(last.programs.begin(), last.programs.end(),
                           [](const CompiledGraph& program) { return program.name() == "sync_gradients"; });
  ASSERT_NE(sums, last.programs.end());
  double idle = pipeline.timeline.ends.front() - pipeline.timeline.ends.back();
  ASSERT_GT(idle, sums->plan.seconds);
  sums->plan.seconds = idle;
  EXPECT_DOUBLE_EQ(pipeline.seconds(), before);
  sums->plan.seconds = idle + 1;
  EXPECT_GT(pipeline.seconds(), before + 0.9);
}

// What the update finds added up is not added up again, but for what two stages have: that is added up last.
TEST(PipeCompiler, UpdatesFromReducedGradients) {
  RunConfig config = with_data_ranks("1f1b");
  config.mesh.bucket_mib = 0;
  CompiledPipeline pipeline = compile_pipeline(config, target());
  auto scattered = [](const CompiledGraph& program) {
    const Graph& graph = program.plan.graph;
    return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                         [](const Node& node) { return node.op == &op::reduce_scatter; });
  };
  const CompiledStep& first = pipeline.stages[0];
  const Graph& update = first.programs.back().plan.graph;
  EXPECT_NE(update.find_argument("reduced.h.0.ln_1.weight"), kNoValue);
  EXPECT_EQ(update.find_argument("reduced.wte.weight"), kNoValue);
  EXPECT_EQ(scattered(first.programs.back()), 1) << "the tied table";
  EXPECT_GT(scattered(pipeline.stages[1].programs.back()), 1);
}

// With nothing computed again, and the blocks in the same chunks.
TEST(PipelineOfKinds, HasThePipelinesStages) {
  RunConfig config = tiny(6, 4);
  config.mesh = {.pipe = 3, .data = 2};
  config.mesh.slots = 1;
  std::deque<StageUpdate> updates;
  auto keep = [&](bool, const std::function<StageUpdate()>& make) -> const StageUpdate& {
    return updates.emplace_back(make());
  };
  for (const char* schedule : {"1f1b", "zero_bubble"}) {
    config.mesh.schedule = schedule;
    ResolvedRun run = resolve(config, target());
    CompiledPipeline whole = compile_pipeline(run, Platform(target()));
    RunConfig within = config;
    within.compile.memory_budget_gib = 1;
    PipelineOfKinds stages(run, Platform(target()), whole.first_block),
        told(resolve(within, target()), Platform(target()), whole.first_block);
    for (size_t stage = 0; stage < whole.stages.size(); ++stage) {
      EXPECT_EQ(text_of(stages.compile(int64_t(stage), -1, keep)), text_of(whole.stages[stage])) << schedule << stage;
      EXPECT_NE(text_of(told.compile(int64_t(stage), 3, keep)), text_of(whole.stages[stage])) << schedule << stage;
    }
  }
}

// Which are measured while other programs run.
TEST(PipeCompiler, DividesBlocksAlikeWhateverACpusRatesAre) {
  RunConfig config = tiny(6, 4);
  config.mesh.pipe = 3;
  config.model.vocab = 4000;
  auto division = [&](double bandwidth, int streams) {
    Target measured = target();
    measured.f32_flops = 1e12, measured.memory_bandwidth = bandwidth, measured.streams = streams;
    return compile_pipeline(config, measured).first_block;
  };
  EXPECT_EQ(division(1e8, 1), division(1e12, 1));
  EXPECT_NE(division(1e8, 2), division(1e12, 2)) << "of a GPU, whose rates are known";
}

TEST(PipeCompiler, DividesBlocksAsIsSaid) {
  RunConfig config = tiny(6, 4);
  config.mesh.pipe = 2;
  EXPECT_EQ(compile_pipeline(config, target()).first_block, (std::vector<int64_t>{0, 3, 6}));
  config.mesh.chunk_layers = "4,2";
  EXPECT_EQ(compile_pipeline(config, target()).first_block, (std::vector<int64_t>{0, 4, 6}));
  config.mesh.chunk_layers = "0,6";
  EXPECT_EQ(compile_pipeline(config, target()).first_block, (std::vector<int64_t>{0, 0, 6}));
}

TEST(PipeCompiler, CountsEmbeddingAndClassifierWhenItBalances) {
  RunConfig config = tiny(6, 4);
  config.model.vocab = 4000;
  config.mesh.pipe = 2;
  Target without_latency = target();
  without_latency.launch_seconds = 0;
  CompiledPipeline pipeline = compile_pipeline(config, without_latency);
  EXPECT_GT(pipeline.blocks(0), pipeline.blocks(1));
  EXPECT_EQ(pipeline.blocks(0) + pipeline.blocks(1), 6);
}

}  // namespace
}  // namespace tokamak
