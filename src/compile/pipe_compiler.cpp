#include "compile/pipe_compiler.h"

#include "base/bytes.h"
#include "base/error.h"
#include "compile/balance_blocks.h"
#include "compile/fill_budget.h"
#include "compile/pipe_chunk.h"
#include "compile/stage_compiler.h"
#include "compile/stage_update.h"
#include "compile/step_compiler.h"
#include "cost/price.h"
#include "graph/builder.h"
#include "model/model.h"
#include "ops/collective.h"
#include "ops/generate.h"
#include "passes/step_mesh.h"
#include "plan/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace tokamak {
namespace {

using Kind = PipeAction::Kind;

bool reads_parameter(const CompiledStep& stage, const std::string& name) {
  return std::any_of(stage.programs.begin(), stage.programs.end(),
                     [&](const CompiledGraph& program) { return program.plan.graph.find_argument(name) != kNoValue; });
}

void append_updates(CompiledPipeline& out, const ChunkCompiler& compiler, const PassObserver& observer) {
  auto reads = [&](int64_t stage, const std::string& name) { return reads_parameter(out.stages[size_t(stage)], name); };
  UpdateCompiler updates(out.resolved, compiler, out.schedule.stages, reads);
  for (int64_t stage = 0; stage < out.schedule.stages; ++stage) {
    CompiledStep& step = out.stages[size_t(stage)];
    append_update(step, updates.compile(stage, reduced_by(step), observer));
  }
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

// The chunk of whose backward pass a stage is done with all micro-batches; none where it sends another stage what that
// gives, which would wait for the sums.
std::optional<int64_t> last_chunk(const PipeSchedule& schedule, int64_t stage) {
  const PipeAction& last = schedule.actions[size_t(stage)].back();
  return is_transfer(last.kind) ? std::optional<int64_t>() : last.chunk;
}

// Parameters that several chunks read.
std::set<std::string> shared_parameters(const std::vector<BegunChunk>& chunks) {
  std::set<std::string> known, shared;
  for (const BegunChunk& chunk : chunks)
    for (const Argument& a : chunk.graph.arguments())
      if (a.kind == Argument::Kind::kParameter && !known.insert(a.name).second) shared.insert(a.name);
  return shared;
}

void begin_last_programs(const CompiledPipeline& out, const ChunkCompiler& compiler, std::vector<BegunChunk>& begun,
                         const PassObserver& observer) {
  if (!adds_up_before_update(out.resolved)) return;
  std::set<std::string> shared = shared_parameters(begun);
  for (int64_t stage = 0; stage < out.schedule.stages; ++stage) {
    std::optional<int64_t> chunk = last_chunk(out.schedule, stage);
    if (!chunk) continue;
    auto c = size_t(*chunk);
    ChunkPlace place{*chunk, out.schedule.chunks, out.first_block[c], out.first_block[c + 1]};
    compiler.begin_last(begun[c], place, shared, options_of(out.schedule, *chunk), observer);
  }
}

// All chunks up to where it is chosen what is computed again.
std::vector<BegunChunk> begin_chunks(const CompiledPipeline& out, const ChunkCompiler& compiler,
                                     const PassObserver& observer) {
  std::vector<BegunChunk> begun;
  int64_t chunks = out.schedule.chunks;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    auto c = size_t(chunk);
    ChunkPlace place{chunk, chunks, out.first_block[c], out.first_block[c + 1]};
    begun.push_back(compiler.begin(compiler.build(place), options_of(out.schedule, chunk), observer));
  }
  begin_last_programs(out, compiler, begun, observer);
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

// The same within a budget for all micro-batches in flight.
CompiledStep compile_within_budget(const CompiledPipeline& out, const ChunkCompiler& compiler,
                                   const std::vector<BegunChunk>& begun, int64_t stage, BudgetSearch& search,
                                   std::vector<ChunkSeconds>& seconds, const PassObserver& observer) {
  CompiledStage best =
      fill_budget(search, [&](double told) { return compile_stage(out, compiler, begun, stage, told, observer); });
  for (size_t i = 0; i < best.seconds.size(); ++i)
    seconds[size_t(stage + int64_t(i) * out.schedule.stages)] = best.seconds[i];
  return std::move(best.step);
}

// All stages and their updates. Where an update has more intermediate values than the programs of a micro-batch, less
// is left for what is in flight.
void compile_stages(CompiledPipeline& out, const ChunkCompiler& compiler, std::vector<ChunkSeconds>& seconds,
                    const PassObserver& observer) {
  double budget = out.resolved.compile.memory_budget_gib;
  const std::vector<BegunChunk> begun = begin_chunks(out, compiler, observer);
  std::vector<BudgetSearch> searches(size_t(out.schedule.stages), BudgetSearch(budget));
  for (int64_t stage = 0; stage < out.schedule.stages; ++stage)
    out.stages.push_back(
        compile_within_budget(out, compiler, begun, stage, searches[size_t(stage)], seconds, observer));
  std::vector<CompiledStep> bare = out.stages;
  append_updates(out, compiler, observer);
  if (budget <= 0) return;
  bool any = false;
  for (int64_t stage = 0; stage < out.schedule.stages; ++stage) {
    const CompiledStep& whole = out.stages[size_t(stage)];
    int64_t arena = whole.largest().plan.arena_bytes;
    if (double(whole.intermediate_bytes()) <= budget * kGiB || double(arena) >= budget * kGiB) continue;
    BudgetSearch search = searches[size_t(stage)].beside(arena);
    bare[size_t(stage)] = compile_within_budget(out, compiler, begun, stage, search, seconds, observer);
    any = true;
  }
  if (!any) return;
  out.stages = std::move(bare);
  append_updates(out, compiler, observer);
}

double seconds_of_chunk(const ChunkCompiler& compiler, const ChunkPlace& place) {
  ChunkSeconds seconds = compiler.compile(compiler.build(place), place.number, {.recompute_kinds = 0}, {}).seconds();
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
    seconds.push_back(seconds_of_chunk(compiler, {block, blocks, block, block + 1}));
  }
  return seconds;
}

BlockSeconds seconds_by(const ChunkCompiler& compiler, int64_t blocks) {
  auto end = [&compiler, blocks](int64_t number) {
    return seconds_of_chunk(compiler, {number, 2, number * blocks, number * blocks});
  };
  return {[&compiler, blocks] { return seconds_of_blocks(compiler, blocks); },
          [end] {
            return std::array{end(0), end(1)};
          }};
}

// Bits depend on how blocks are divided, and a CPU's rates are measured while other programs run: there the blocks are
// balanced by rates that do not change from start to start.
Platform balancing_platform(Platform platform) {
  Target& target = platform.target;
  if (target.streams > 1) return platform;  // of a GPU, of which rates are known
  const Target known;
  target.f32_flops = target.bf16_flops = known.f32_flops;
  if (target.tf32_flops > 0) target.tf32_flops = known.f32_flops;
  if (target.fp8_flops > 0) target.fp8_flops = 2 * known.f32_flops;
  target.memory_bandwidth = known.memory_bandwidth;
  target.pointwise_flops = known.pointwise_flops;
  target.attention_flops = known.attention_flops;
  platform.tuning.measured_seconds.clear();
  return platform;
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

// A pipeline up to where it is chosen what is computed again.
struct BegunPipeline {
  BegunPipeline(const ResolvedRun& run, const Platform& platform, std::vector<int64_t> first_block)
      : BegunPipeline(begin_pipeline(run, platform, {}), platform, std::move(first_block)) {}

  CompiledPipeline out;
  Graph forward;
  ChunkCompiler compiler;  // of what stands above, which must not move
  std::vector<BegunChunk> chunks;
  UpdateCompiler updates;

 private:
  BegunPipeline(std::pair<CompiledPipeline, Graph> begun, const Platform& platform, std::vector<int64_t> first_block)
      : out(std::move(begun.first)), forward(std::move(begun.second)), compiler(out.resolved, platform, forward, false),
        chunks(begin(std::move(first_block))),
        updates(out.resolved, compiler, out.schedule.stages, [&](int64_t stage, const std::string& name) {
          return chunks[size_t(stage)].graph.find_argument(name) != kNoValue;
        }) {}

  std::vector<BegunChunk> begin(std::vector<int64_t> first_block) {
    int64_t stages = out.schedule.stages;
    TOKAMAK_CHECK(out.schedule.chunks == stages, "{} chunks on {} stages", out.schedule.chunks, stages);
    out.first_block = std::move(first_block);
    return begin_chunks(out, compiler, {});
  }
};

namespace {

// When a stage begins its update, and what it runs before its micro-batches and between them.
struct UpdateStart {
  double seconds = 0, beside = 0;
};
UpdateStart update_start(const CompiledStep& stage, const PipeTimeline& timeline, size_t number) {
  UpdateStart start{timeline.ends[number]};
  size_t behind = stage.runs.size();  // the last micro-batch
  while (behind > 0 && stage.runs[behind - 1].micro_batch < 0) --behind;
  for (size_t i = 0; i + 1 < stage.runs.size(); ++i) {
    const ProgramRun& run = stage.runs[i];
    if (run.micro_batch >= 0) continue;
    if (!run.transfer)
      (i >= behind ? start.seconds : start.beside) += stage.programs[run.program].plan.seconds;
    else
      start.seconds = std::max(start.seconds, timeline.ends[size_t(run.transfer->stage)]);
  }
  return start;
}

}  // namespace

// A stage begins its update when it is done, and so are those that have gradients for it; all wait for each other where
// the norm is added up.
double CompiledPipeline::seconds() const {
  double beside = 0, until_norm = 0, from_norm = 0;
  for (size_t s = 0; s < stages.size(); ++s) {
    UpdateStart start = update_start(stages[s], timeline, s);
    const Plan& update = stages[s].programs.back().plan;
    double before = seconds_before(update, kPipeAxis);
    beside = std::max(beside, start.beside);
    until_norm = std::max(until_norm, start.seconds + before);
    from_norm = std::max(from_norm, update.seconds - before);
  }
  return beside + until_norm + from_norm;
}

CompiledPipeline compile_pipeline(const ResolvedRun& run, const Platform& platform, const PassObserver& observer) {
  auto [out, graph] = begin_pipeline(run, platform, observer);
  const RunConfig& asked = run.asked;
  ChunkCompiler compiler(run, platform, graph), balancing(run, balancing_platform(platform), graph);
  int64_t layers = asked.model.layers;
  out.first_block = divide_blocks(asked.mesh, layers, seconds_by(balancing, layers));
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

CompiledStep PipelineOfKinds::compile(int64_t stage, int64_t kinds, const KeptUpdates& kept) const {
  const CompiledPipeline& out = begun_->out;
  CompiledStep step;
  ChunkOptions options = options_of(out.schedule, stage);
  options.recompute_kinds = kinds;
  StageCompiler stage_compiler(out.schedule, out.resolved.slots, stage, begun_->compiler, {}, step);
  stage_compiler.add(stage, begun_->compiler.end(begun_->chunks[size_t(stage)], stage, options, {}));
  stage_compiler.list_runs();
  std::set<std::string> reduced = reduced_by(step);
  append_update(step, kept(!reduced.empty(), [&] { return begun_->updates.compile(stage, reduced, {}); }));
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
      Graph forward = compiler.build_forward({chunk, schedule.chunks, first_block[c], first_block[c + 1]});
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
