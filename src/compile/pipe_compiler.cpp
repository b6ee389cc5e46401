#include "compile/pipe_compiler.h"

#include "autodiff/slots.h"
#include "base/error.h"
#include "compile/fill_budget.h"
#include "compile/pipe_chunk.h"
#include "compile/stage_compiler.h"
#include "compile/step_compiler.h"
#include "cost/price.h"
#include "graph/builder.h"
#include "model/model.h"
#include "ops/collective.h"
#include "ops/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace tokamak {
namespace {

using Kind = PipeAction::Kind;

// ---- The update ----

// The parameters of each stage, as the model's graph has them.
std::vector<Graph> parameters_of_stages(const Graph& forward, const std::vector<CompiledStep>& stages) {
  std::vector<Graph> models;
  for (const CompiledStep& stage : stages)
    models.push_back(take_parameters(forward, [&](const std::string& name) {
      return std::any_of(stage.programs.begin(), stage.programs.end(), [&](const CompiledGraph& program) {
        return program.plan.graph.find_argument(name) != kNoValue;
      });
    }));
  return models;
}

// Of each parameter, the stages that have it.
std::map<std::string, std::vector<int64_t>> owners_of_parameters(const std::vector<Graph>& models) {
  std::map<std::string, std::vector<int64_t>> owners;
  for (size_t stage = 0; stage < models.size(); ++stage)
    for (const Argument& a : models[stage].arguments()) owners[a.name].push_back(int64_t(stage));
  return owners;
}

Graph update_graph(const ResolvedRun& run, const Graph& model, const OtherStages& others) {
  const OptimizerConfig& optimizer = run.asked.optimizer;
  if (!run.has_slots())
    return accumulated_update_graph(model, optimizer, run.micro_batches, run.loss_scaling(), others);
  SlotTerms terms{model, others.shared, others.has_loss};
  return slot_update_graph(terms, optimizer, run.slots, run.loss_scaling(), others);
}

void append_updates(CompiledPipeline& out, const ChunkCompiler& compiler, const PassObserver& observer) {
  const Graph& forward = compiler.model();
  std::vector<Graph> models = parameters_of_stages(forward, out.stages);
  std::vector<OtherStages> others(models.size());
  for (OtherStages& of_stage : others) of_stage.axis = {kPipeAxis, int64_t(models.size())}, of_stage.model = &forward;
  others.back().has_loss = true;
  for (const auto& [name, owners] : owners_of_parameters(models)) {
    if (owners.size() == 1) continue;
    TOKAMAK_CHECK(owners.size() == 2, "'{}' is read on {} stages", name, owners.size());
    others[size_t(owners[1])].uncounted.insert(name);
    for (bool second : {false, true}) {
      CompiledStep& step = out.stages[size_t(owners[second])];
      others[size_t(owners[second])].shared.insert(name);
      StageTransfer send{true, owners[!second], gradient_sum_state(name)};
      StageTransfer receive{false, owners[!second], peer_gradient_state(name)};
      step.schedule.push_back({.transfer = second ? receive : send});
      step.schedule.push_back({.transfer = second ? send : receive});
    }
  }
  for (size_t stage = 0; stage < models.size(); ++stage) {
    CompiledStep& step = out.stages[stage];
    Graph update = update_graph(out.resolved, models[stage], others[stage]);
    step.schedule.push_back({step.programs.size()});
    step.programs.push_back(compile_program(std::move(update), compiler.context(), Stage::kStep, observer));
  }
}

// A stage without its update, and what its chunks take.
struct CompiledStage {
  CompiledStep step;
  std::vector<ChunkSeconds> seconds;  // in the order of its chunks
};
const CompiledStep& step_of(const CompiledStage& stage) { return stage.step; }

// Each micro-batch's intermediate values are to fit into `budget_gib`.
CompiledStage compile_stage(const CompiledPipeline& out, const ChunkCompiler& compiler, int64_t stage,
                            double budget_gib, const PassObserver& observer, int64_t kinds = -1) {
  CompiledStage made;
  StageCompiler stage_compiler(out.schedule, out.resolved.slots, stage, compiler, observer, made.step);
  int64_t chunks = out.schedule.chunks;
  for (int64_t chunk = stage; chunk < chunks; chunk += out.schedule.stages) {
    size_t c = size_t(chunk);
    ChunkOptions options{
        .splits_backward = out.schedule.splits_backward(chunk), .budget_gib = budget_gib, .recompute_kinds = kinds};
    if (chunks > out.schedule.stages) options.suffix = fmt::format(".{}", chunk);
    Graph graph = compiler.build(chunk, chunks, out.first_block[c], out.first_block[c + 1]);
    CompiledChunk compiled = compiler.compile(std::move(graph), chunk, options, observer);
    made.seconds.push_back(compiled.seconds());
    stage_compiler.add(chunk, std::move(compiled));
  }
  stage_compiler.schedule();
  return made;
}

// Passes of the stage, each of a micro-batch and a chunk, whose activations it has at a time.
int64_t passes_in_flight(const PipeSchedule& schedule, int64_t stage) {
  int64_t passes = 0;
  for (int64_t chunk = stage; chunk < schedule.chunks; chunk += schedule.stages) {
    Kind last = schedule.splits_backward(chunk) ? Kind::kBackwardInput : Kind::kBackward;
    passes += schedule.slots(stage, {Kind::kForward, chunk}, {last, chunk});
  }
  return passes;
}

// The same where `asked` GiB are for all micro-batches in flight.
CompiledStep compile_within_budget(const CompiledPipeline& out, const ChunkCompiler& compiler, int64_t stage,
                                   double asked, std::vector<ChunkSeconds>& seconds, const PassObserver& observer) {
  BudgetSearch search(asked, double(passes_in_flight(out.schedule, stage)));
  CompiledStage best =
      fill_budget(search, [&](double told) { return compile_stage(out, compiler, stage, told, observer); });
  for (size_t i = 0; i < best.seconds.size(); ++i)
    seconds[size_t(stage + int64_t(i) * out.schedule.stages)] = best.seconds[i];
  return std::move(best.step);
}

// All stages and their updates. Where an update has more intermediate values than the programs of a micro-batch, less
// is left for what is in flight.
void compile_stages(CompiledPipeline& out, const ChunkCompiler& compiler, std::vector<ChunkSeconds>& seconds,
                    const PassObserver& observer) {
  constexpr double kGiB = double(int64_t(1) << 30);
  double budget = out.resolved.compile.memory_budget_gib;
  for (int64_t stage = 0; stage < out.schedule.stages; ++stage)
    out.stages.push_back(compile_within_budget(out, compiler, stage, budget, seconds, observer));
  std::vector<CompiledStep> bare = out.stages;
  append_updates(out, compiler, observer);
  if (budget <= 0) return;
  bool any = false;
  for (int64_t stage = 0; stage < out.schedule.stages; ++stage) {
    double left = 2 * budget - double(out.stages[size_t(stage)].intermediate_bytes()) / kGiB;
    if (left >= budget || left <= 0) continue;
    bare[size_t(stage)] = compile_within_budget(out, compiler, stage, left, seconds, observer);
    any = true;
  }
  if (!any) return;
  out.stages = std::move(bare);
  append_updates(out, compiler, observer);
}

// Each block as a chunk of its own. All but the first and the last are alike.
std::vector<double> seconds_of_blocks(const ChunkCompiler& compiler, int64_t blocks) {
  std::vector<double> seconds;
  for (int64_t block = 0; block < blocks; ++block) {
    if (block > 1 && block + 1 < blocks) {
      seconds.push_back(seconds.back());
      continue;
    }
    Graph graph = compiler.build(block, blocks, block, block + 1);
    ChunkSeconds of_block = compiler.compile(std::move(graph), block, {}, {}).seconds();
    seconds.push_back(of_block.forward + of_block.backward);
  }
  return seconds;
}

// The loss, which the last stage has, for all.
Graph tell_loss_graph(int64_t stage, int64_t stages) {
  Graph graph("tell_loss");
  GraphBuilder g(graph);
  ValueId mine = stage + 1 == stages ? g.state(kChunkLoss, {DType::kF32, {}}, Role::kGradientSum) : constant(g, 0);
  graph.add_result("loss", all_reduce(g, mine, {kPipeAxis, stages}, Reduction::kSum));
  return graph;
}

PipeSchedule schedule_of(const ResolvedRun& run) {
  const MeshConfig& asked = run.asked.mesh;
  return make_pipe_schedule(asked.schedule, run.stages(), asked.interleave, run.micro_batches);
}

// The schedule, and the model after its forward passes.
std::pair<CompiledPipeline, Graph> begin_pipeline(const ResolvedRun& run, const Platform& platform,
                                                  const PassObserver& observer) {
  CompiledPipeline out;
  out.resolved = run;
  const RunConfig& asked = run.asked;
  out.schedule = schedule_of(run);
  Graph graph = forward_graph("model", asked.model, run.program_sequences(), asked.model.context,
                              asked.data.mask_documents, true);
  out.forward = graph;
  PassContext context = context_of(run, platform);
  out.forward_reports = run_passes(graph, Stage::kForward, context, observer);
  return {std::move(out), std::move(graph)};
}

int64_t stream_bytes(const CompiledPipeline& out) {
  for (const CompiledStep& stage : out.stages)
    for (const CompiledGraph& program : stage.programs)
      for (const Argument& a : program.plan.graph.arguments())
        if (a.layout.role == Role::kStream) return num_bytes(program.plan.graph.type(a.value));
  return 0;
}

}  // namespace

double CompiledPipeline::seconds() const {
  double longest = 0;
  for (const CompiledStep& stage : stages) {
    double beside = 0;
    for (const ScheduledRun& run : stage.schedule)
      if (run.micro_batch < 0 && !run.transfer) beside += stage.programs[run.program].plan.seconds;
    longest = std::max(longest, beside);
  }
  return timeline.seconds + longest;
}

// The least that the longest chunk can take, by number of chunks and of blocks that they have together. Of divisions
// that take as long, but for what sums of seconds are rounded by, later chunks have more blocks: their stages hold
// fewer micro-batches.
std::vector<int64_t> balance_blocks(const std::vector<double>& seconds_of_blocks, int64_t chunks) {
  auto blocks = int64_t(seconds_of_blocks.size());
  TOKAMAK_CHECK(chunks >= 1 && chunks <= blocks, "{} blocks in {} chunks", blocks, chunks);
  std::vector<double> before(size_t(blocks) + 1, 0);
  std::partial_sum(seconds_of_blocks.begin(), seconds_of_blocks.end(), before.begin() + 1);
  constexpr double kNever = std::numeric_limits<double>::infinity(), kRounding = 1e-9;
  std::vector<std::vector<double>> least(size_t(chunks) + 1, std::vector<double>(size_t(blocks) + 1, kNever));
  std::vector<std::vector<int64_t>> first(size_t(chunks) + 1, std::vector<int64_t>(size_t(blocks) + 1, 0));
  least[0][0] = 0;
  for (size_t c = 1; c <= size_t(chunks); ++c)
    for (size_t end = c; end <= size_t(blocks); ++end)
      for (size_t begin = c - 1; begin < end; ++begin) {
        double longest = std::max(least[c - 1][begin], before[end] - before[begin]);
        if (longest >= (1 - kRounding) * least[c][end]) continue;
        least[c][end] = longest;
        first[c][end] = int64_t(begin);
      }
  std::vector<int64_t> borders{blocks};
  for (int64_t c = chunks; c > 0; --c) borders.push_back(first[size_t(c)][size_t(borders.back())]);
  std::reverse(borders.begin(), borders.end());
  return borders;
}

CompiledPipeline compile_pipeline(const ResolvedRun& run, const Platform& platform, const PassObserver& observer) {
  auto [out, graph] = begin_pipeline(run, platform, observer);
  const RunConfig& asked = run.asked;
  ChunkCompiler compiler(run, platform, graph);
  int64_t chunks = out.schedule.chunks;
  out.first_block = balance_blocks(seconds_of_blocks(compiler, asked.model.layers), chunks);
  std::vector<ChunkSeconds> seconds(out.first_block.size() - 1);
  compile_stages(out, compiler, seconds, observer);
  for (CompiledStep& stage : out.stages) {
    stage.resolved = run;
    stage.forward = out.forward;
    stage.forward_reports = out.forward_reports;
  }
  double transfer = transfer_seconds(double(stream_bytes(out)), kPipeAxis, platform.target);
  out.timeline = simulate_pipe(out.schedule, seconds, transfer);
  return std::move(out);
}

CompiledPipeline compile_pipeline_of_kinds(const ResolvedRun& run, const Platform& platform,
                                           std::vector<int64_t> first_block, int64_t kinds, double budget_gib) {
  auto [out, graph] = begin_pipeline(run, platform, {});
  ChunkCompiler compiler(run, platform, graph);
  out.first_block = std::move(first_block);
  for (int64_t stage = 0; stage < run.stages(); ++stage)
    out.stages.push_back(compile_stage(out, compiler, stage, budget_gib, {}, kinds).step);
  append_updates(out, compiler, {});
  return std::move(out);
}

std::vector<CompiledStep> compile_pipeline_loss(const ResolvedRun& run, const Platform& platform,
                                                const std::vector<int64_t>& first_block) {
  const RunConfig& asked = run.asked;
  Graph graph = eval_graph(asked.model, run.program_sequences(), asked.model.context, asked.data.mask_documents, true);
  PassContext context = context_of(run, platform);
  run_passes(graph, Stage::kForward, context);
  ChunkCompiler compiler(run, platform, graph);
  int64_t stages = run.stages(), batches = run.micro_batches;
  PipeSchedule schedule = forward_part(schedule_of(run));
  std::vector<CompiledStep> steps(static_cast<size_t>(stages));
  for (int64_t stage = 0; stage < stages; ++stage) {
    CompiledStep& step = steps[size_t(stage)];
    step.resolved = run;
    StageCompiler stage_compiler(schedule, {}, stage, compiler, {}, step);
    auto compile = [&](Graph program) {
      return compile_program(std::move(program), compiler.context(), Stage::kStep, {});
    };
    for (int64_t chunk = stage; chunk < schedule.chunks; chunk += stages) {
      auto c = size_t(chunk);
      Graph forward = compiler.build_forward(chunk, schedule.chunks, first_block[c], first_block[c + 1]);
      CompiledChunk compiled;
      compiled.programs.emplace_back(PipeAction::Kind::kForward, compile(std::move(forward)));
      stage_compiler.add(chunk, std::move(compiled));
    }
    stage_compiler.schedule();
    step.slots[kChunkLoss] = batches;
    for (int64_t batch = 0; batch < batches; ++batch) step.schedule.push_back({step.programs.size(), batch});
    step.programs.push_back(compile(tell_loss_graph(stage, stages)));
  }
  return steps;
}

}  // namespace tokamak
