#include "compile/pipe_compiler.h"

#include "autodiff/slots.h"
#include "base/error.h"
#include "compile/balance_blocks.h"
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
#include <array>

namespace tokamak {
namespace {

using Kind = PipeAction::Kind;

// ---- The update ----

// The parameters of each stage, as the model's graph has them.
using ReadsParameter = std::function<bool(int64_t stage, const std::string& name)>;
std::vector<Graph> parameters_of_stages(const Graph& forward, int64_t stages, const ReadsParameter& reads) {
  std::vector<Graph> models;
  for (int64_t stage = 0; stage < stages; ++stage)
    models.push_back(take_parameters(forward, [&](const std::string& name) { return reads(stage, name); }));
  return models;
}

bool reads_parameter(const CompiledStep& stage, const std::string& name) {
  return std::any_of(stage.programs.begin(), stage.programs.end(),
                     [&](const CompiledGraph& program) { return program.plan.graph.find_argument(name) != kNoValue; });
}

// Of each parameter, the stages that have it.
std::map<std::string, std::vector<int64_t>> owners_of_parameters(const std::vector<Graph>& models) {
  std::map<std::string, std::vector<int64_t>> owners;
  for (size_t stage = 0; stage < models.size(); ++stage)
    for (const Argument& a : models[stage].arguments()) owners[a.name].push_back(int64_t(stage));
  return owners;
}

Graph update_graph(const ResolvedRun& run, const Graph& model, const OtherStages& others) {
  const Optimizer optimizer = run.optimizer();
  if (!run.has_slots())
    return accumulated_update_graph(model, optimizer, run.micro_batches, run.loss_scaling(), others);
  SlotTerms terms{model, others.shared, others.has_loss};
  return slot_update_graph(terms, optimizer, run.slots, run.loss_scaling(), others);
}

// What a stage does after its micro-batches: sums of gradients of what another stage has too, and its program.
struct StageUpdate {
  std::vector<ProgramRun> transfers;
  CompiledGraph program;
};

void append_update(CompiledStep& step, StageUpdate update) {
  step.runs.insert(step.runs.end(), update.transfers.begin(), update.transfers.end());
  step.runs.push_back({step.programs.size()});
  step.programs.push_back(std::move(update.program));
}

// Of each stage, of which `models` has the parameters.
std::vector<StageUpdate> compile_updates(const ResolvedRun& run, const std::vector<Graph>& models,
                                         const ChunkCompiler& compiler, const PassObserver& observer) {
  std::vector<StageUpdate> updates(models.size());
  std::vector<OtherStages> others(models.size());
  for (OtherStages& of_stage : others)
    of_stage.axis = {kPipeAxis, int64_t(models.size())}, of_stage.model = &compiler.model();
  others.back().has_loss = true;
  for (const auto& [name, owners] : owners_of_parameters(models)) {
    if (owners.size() == 1) continue;
    TOKAMAK_CHECK(owners.size() == 2, "'{}' is read on {} stages", name, owners.size());
    others[size_t(owners[1])].uncounted.insert(name);
    for (bool second : {false, true}) {
      std::vector<ProgramRun>& transfers = updates[size_t(owners[second])].transfers;
      others[size_t(owners[second])].shared.insert(name);
      StageTransfer send{true, owners[!second], gradient_sum_state(name)};
      StageTransfer receive{false, owners[!second], peer_gradient_state(name)};
      transfers.push_back({.transfer = second ? receive : send});
      transfers.push_back({.transfer = second ? send : receive});
    }
  }
  for (size_t stage = 0; stage < models.size(); ++stage)
    updates[stage].program = compile_program(update_graph(run, models[stage], others[stage]), compiler.context(),
                                             PassStage::kStep, observer);
  return updates;
}

void append_updates(CompiledPipeline& out, const ChunkCompiler& compiler, const PassObserver& observer) {
  auto reads = [&](int64_t stage, const std::string& name) { return reads_parameter(out.stages[size_t(stage)], name); };
  std::vector<Graph> models = parameters_of_stages(compiler.model(), int64_t(out.stages.size()), reads);
  std::vector<StageUpdate> updates = compile_updates(out.resolved, models, compiler, observer);
  for (size_t stage = 0; stage < updates.size(); ++stage) append_update(out.stages[stage], std::move(updates[stage]));
}

// A stage without its update, and what its chunks take.
struct CompiledStage {
  CompiledStep step;
  std::vector<ChunkSeconds> seconds;  // in the order of its chunks
};
const CompiledStep& step_of(const CompiledStage& stage) { return stage.step; }

ChunkOptions options_of(const PipeSchedule& schedule, int64_t chunk) {
  ChunkOptions options{.splits_backward = schedule.splits_backward(chunk)};
  if (schedule.chunks > schedule.stages) options.suffix = fmt::format(".{}", chunk);
  return options;
}

// All chunks up to where it is chosen what is computed again.
std::vector<BegunChunk> begin_chunks(const CompiledPipeline& out, const ChunkCompiler& compiler,
                                     const PassObserver& observer) {
  std::vector<BegunChunk> begun;
  int64_t chunks = out.schedule.chunks;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    auto c = size_t(chunk);
    Graph graph = compiler.build(chunk, chunks, out.first_block[c], out.first_block[c + 1]);
    begun.push_back(compiler.begin(std::move(graph), options_of(out.schedule, chunk), observer));
  }
  return begun;
}

// Passes of the stage, each of a micro-batch and a chunk, whose activations it has at a time.
int64_t passes_in_flight(const PipeSchedule& schedule, int64_t stage) {
  int64_t passes = 0;
  for (int64_t chunk = stage; chunk < schedule.chunks; chunk += schedule.stages) {
    Kind last = schedule.splits_backward(chunk) ? Kind::kBackwardInput : Kind::kBackward;
    passes += schedule.in_flight(stage, {Kind::kForward, chunk}, {last, chunk});
  }
  return passes;
}

// `told`: GiB for what is computed again, of all micro-batches that the stage holds.
CompiledStage compile_stage(const CompiledPipeline& out, const ChunkCompiler& compiler,
                            const std::vector<BegunChunk>& begun, int64_t stage, double told,
                            const PassObserver& observer) {
  CompiledStage made;
  StageCompiler stage_compiler(out.schedule, out.resolved.slots, stage, compiler, observer, made.step);
  for (int64_t chunk = stage; chunk < out.schedule.chunks; chunk += out.schedule.stages) {
    ChunkOptions options = options_of(out.schedule, chunk);
    options.recompute_gib = told;
    options.micro_batches_held = passes_in_flight(out.schedule, stage);
    CompiledChunk compiled = compiler.end(begun[size_t(chunk)], chunk, options, observer);
    made.seconds.push_back(compiled.seconds());
    stage_compiler.add(chunk, std::move(compiled));
  }
  stage_compiler.list_runs();
  return made;
}

// The same where `asked` GiB are for all micro-batches in flight.
CompiledStep compile_within_budget(const CompiledPipeline& out, const ChunkCompiler& compiler,
                                   const std::vector<BegunChunk>& begun, int64_t stage, double asked,
                                   std::vector<ChunkSeconds>& seconds, const PassObserver& observer) {
  CompiledStage best = fill_budget(
      BudgetSearch(asked), [&](double told) { return compile_stage(out, compiler, begun, stage, told, observer); });
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
  const std::vector<BegunChunk> begun = begin_chunks(out, compiler, observer);
  for (int64_t stage = 0; stage < out.schedule.stages; ++stage)
    out.stages.push_back(compile_within_budget(out, compiler, begun, stage, budget, seconds, observer));
  std::vector<CompiledStep> bare = out.stages;
  append_updates(out, compiler, observer);
  if (budget <= 0) return;
  bool any = false;
  for (int64_t stage = 0; stage < out.schedule.stages; ++stage) {
    double left = 2 * budget - double(out.stages[size_t(stage)].intermediate_bytes()) / kGiB;
    if (left >= budget || left <= 0) continue;
    bare[size_t(stage)] = compile_within_budget(out, compiler, begun, stage, left, seconds, observer);
    any = true;
  }
  if (!any) return;
  out.stages = std::move(bare);
  append_updates(out, compiler, observer);
}

double seconds_of_chunk(const ChunkCompiler& compiler, int64_t number, int64_t chunks, int64_t first, int64_t last) {
  Graph graph = compiler.build(number, chunks, first, last);
  ChunkSeconds seconds = compiler.compile(std::move(graph), number, {.recompute_kinds = 0}, {}).seconds();
  return seconds.forward + seconds.backward;
}

// Each block as a chunk of its own. All but the first and the last are alike.
std::vector<double> seconds_of_blocks(const ChunkCompiler& compiler, int64_t blocks) {
  std::vector<double> seconds;
  for (int64_t block = 0; block < blocks; ++block) {
    if (block > 1 && block + 1 < blocks) {
      seconds.push_back(seconds.back());
      continue;
    }
    seconds.push_back(seconds_of_chunk(compiler, block, blocks, block, block + 1));
  }
  return seconds;
}

BlockSeconds seconds_by(const ChunkCompiler& compiler, int64_t blocks) {
  auto end = [&compiler, blocks](int64_t number) {
    return seconds_of_chunk(compiler, number, 2, number * blocks, number * blocks);
  };
  return {[&compiler, blocks] { return seconds_of_blocks(compiler, blocks); },
          [end] {
            return std::array{end(0), end(1)};
          }};
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
  Graph graph =
      forward_graph("model", asked.model, run.program_sequences(), run.phase.sequence, asked.data.mask_documents, true);
  out.forward = graph;
  PassContext context = context_of(run, platform);
  out.forward_reports = run_passes(graph, PassStage::kForward, context, observer);
  return {std::move(out), std::move(graph)};
}

// Of the stage that sends most.
int64_t residual_bytes(const CompiledPipeline& out) {
  int64_t bytes = 0;
  for (const CompiledStep& stage : out.stages)
    for (const CompiledGraph& program : stage.programs)
      for (const Argument& a : program.plan.graph.arguments())
        if (a.spec.role == Role::kResidual) bytes = std::max(bytes, num_bytes(program.plan.graph.type(a.value)));
  return bytes;
}

}  // namespace

// A pipeline up to where it is chosen what is computed again; the updates are the same whatever that is.
struct BegunPipeline {
  BegunPipeline(const ResolvedRun& run, const Platform& platform, std::vector<int64_t> first_block)
      : BegunPipeline(begin_pipeline(run, platform, {}), platform, std::move(first_block)) {}

  CompiledPipeline out;
  Graph forward;
  ChunkCompiler compiler;  // of what stands above, which must not move
  std::vector<BegunChunk> chunks;
  std::vector<StageUpdate> updates;

 private:
  BegunPipeline(std::pair<CompiledPipeline, Graph> begun, const Platform& platform, std::vector<int64_t> first_block)
      : out(std::move(begun.first)), forward(std::move(begun.second)),
        compiler(out.resolved, platform, forward, false) {
    int64_t stages = out.schedule.stages;
    TOKAMAK_CHECK(out.schedule.chunks == stages, "{} chunks on {} stages", out.schedule.chunks, stages);
    out.first_block = std::move(first_block);
    chunks = begin_chunks(out, compiler, {});
    auto reads = [&](int64_t stage, const std::string& name) {
      return chunks[size_t(stage)].graph.find_argument(name) != kNoValue;
    };
    updates = compile_updates(out.resolved, parameters_of_stages(forward, stages, reads), compiler, {});
  }
};

double CompiledPipeline::seconds() const {
  double longest = 0;
  for (const CompiledStep& stage : stages) {
    double beside = 0;
    for (const ProgramRun& run : stage.runs)
      if (run.micro_batch < 0 && !run.transfer) beside += stage.programs[run.program].plan.seconds;
    longest = std::max(longest, beside);
  }
  return timeline.seconds + longest;
}

CompiledPipeline compile_pipeline(const ResolvedRun& run, const Platform& platform, const PassObserver& observer) {
  auto [out, graph] = begin_pipeline(run, platform, observer);
  const RunConfig& asked = run.asked;
  ChunkCompiler compiler(run, platform, graph);
  int64_t layers = asked.model.layers;
  out.first_block = divide_blocks(asked.mesh, layers, seconds_by(compiler, layers));
  std::vector<ChunkSeconds> seconds(out.first_block.size() - 1);
  compile_stages(out, compiler, seconds, observer);
  for (CompiledStep& stage : out.stages) {
    stage.resolved = run;
    stage.forward = out.forward;
    stage.forward_reports = out.forward_reports;
  }
  double transfer = transfer_seconds(double(residual_bytes(out)), kPipeAxis, platform.target);
  out.timeline = simulate_pipe(out.schedule, seconds, transfer);
  return std::move(out);
}

PipelineOfKinds::PipelineOfKinds(const ResolvedRun& run, const Platform& platform, std::vector<int64_t> first_block)
    : begun_(std::make_shared<const BegunPipeline>(run, platform, std::move(first_block))) {}

CompiledStep PipelineOfKinds::compile(int64_t stage, int64_t kinds) const {
  const CompiledPipeline& out = begun_->out;
  CompiledStep step;
  ChunkOptions options = options_of(out.schedule, stage);
  options.recompute_kinds = kinds;
  StageCompiler stage_compiler(out.schedule, out.resolved.slots, stage, begun_->compiler, {}, step);
  stage_compiler.add(stage, begun_->compiler.end(begun_->chunks[size_t(stage)], stage, options, {}));
  stage_compiler.list_runs();
  append_update(step, begun_->updates[size_t(stage)]);
  return step;
}

std::vector<CompiledStep> compile_pipeline_loss(const ResolvedRun& run, const Platform& platform,
                                                const std::vector<int64_t>& first_block) {
  const RunConfig& asked = run.asked;
  Graph graph = eval_graph(asked.model, run.program_windows(), asked.model.context, asked.data.mask_documents, true);
  PassContext context = context_of(run, platform);
  run_passes(graph, PassStage::kForward, context);
  ChunkCompiler compiler(run, platform, graph);
  int64_t stages = run.stages(), batches = run.micro_batches;
  PipeSchedule schedule = forward_part(schedule_of(run));
  std::vector<CompiledStep> steps(static_cast<size_t>(stages));
  for (int64_t stage = 0; stage < stages; ++stage) {
    CompiledStep& step = steps[size_t(stage)];
    step.resolved = run;
    StageCompiler stage_compiler(schedule, {}, stage, compiler, {}, step);
    auto compile = [&](Graph program) {
      return compile_program(std::move(program), compiler.context(), PassStage::kStep, {});
    };
    for (int64_t chunk = stage; chunk < schedule.chunks; chunk += stages) {
      auto c = size_t(chunk);
      Graph forward = compiler.build_forward(chunk, schedule.chunks, first_block[c], first_block[c + 1]);
      CompiledChunk compiled;
      compiled.programs.emplace_back(PipeAction::Kind::kForward, compile(std::move(forward)));
      stage_compiler.add(chunk, std::move(compiled));
    }
    stage_compiler.list_runs();
    step.buffers[kChunkLoss] = batches;
    for (int64_t batch = 0; batch < batches; ++batch) step.runs.push_back({step.programs.size(), batch});
    step.programs.push_back(compile(tell_loss_graph(stage, stages)));
  }
  return steps;
}

}  // namespace tokamak
