#include "train/pipe_compiler.h"

#include "autodiff/slots.h"
#include "base/error.h"
#include "graph/builder.h"
#include "model/model.h"
#include "ops/collective.h"
#include "ops/generate.h"
#include "passes/step_mesh.h"
#include "train/pipe_chunk.h"
#include "train/step_compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

namespace tokamak {
namespace {

using Kind = PipeAction::Kind;

// ---- Slots ----

// The parameters that there is something of, as the model's graph has them.
template <typename Has>
Graph take_parameters(const Graph& forward, const Has& has) {
  Graph model;
  for (const Argument& a : forward.arguments())
    if (a.kind == Argument::Kind::kParameter && has(a.name))
      model.add_argument(a.kind, a.name, forward.type(a.value), a.layout);
  return model;
}

// What a program of a stage gives of a slot.
SlotTerms terms_of(const Graph& program, const Graph& forward) {
  std::set<std::string> given;
  bool has_loss = false;
  for (const Update& update : program.updates()) {
    const Layout& layout = program.argument_of(update.target)->layout;
    if (layout.role != Role::kGradientSum) continue;
    layout.of.empty() ? void(has_loss = true) : void(given.insert(layout.of));
  }
  Graph model = take_parameters(forward, [&](const std::string& name) { return given.contains(name); });
  return {std::move(model), {}, has_loss, program.name()};
}

// ---- One stage ----

class StageCompiler {
 public:
  /// Without `slots` nobody adds up what runs give.
  StageCompiler(const PipeSchedule& schedule, const Slots& slots, int64_t stage, const ChunkCompiler& compiler,
                const PassObserver& observer, CompiledStep& step)
      : schedule_(schedule), slots_(slots), stage_(stage), compiler_(compiler), observer_(observer), step_(step) {}

  void add(int64_t chunk, CompiledChunk compiled) {
    for (auto& [kind, program] : compiled.programs) {
      find_uses(program.plan.graph, {kind, chunk});
      programs_[{kind, chunk}] = step_.programs.size();
      step_.programs.push_back(std::move(program));
      if (slots_.runs() > 1) add_sums({kind, chunk});
    }
  }

  void schedule() {
    for (const PipeAction& action : schedule_.actions[size_t(stage_)]) {
      if (is_transfer(action.kind))
        step_.schedule.push_back({.micro_batch = action.micro_batch, .transfer = transfer_of(action)});
      else
        schedule_run({action.kind, action.chunk}, action.micro_batch);
    }
    for (const auto& [state, use] : uses_) {
      TOKAMAK_CHECK(use.first && use.last, "state '{}' of stage {} is never {}", state, stage_,
                    use.first ? "read" : "written");
      step_.slots[state] = schedule_.slots(stage_, *use.first, *use.last);
    }
  }

 private:
  using Key = std::pair<Kind, int64_t>;  // and its chunk

  // What adds up what a program gives of each slot: its runs take micro-batches in order.
  void add_sums(Key key) {
    SlotTerms terms = terms_of(step_.programs.back().plan.graph, compiler_.model());
    if (terms.model.arguments().empty() && !terms.has_loss) return;
    auto add_program = [&](Graph sum) {
      sums_[key].push_back(step_.programs.size());
      step_.programs.push_back(compile_program(std::move(sum), compiler_.context(), Stage::kStep, observer_));
    };
    for (int level = 0; level < slots_.levels(); ++level) add_program(partial_sum_graph(terms, level));
    add_program(total_graph(terms, slots_));
  }

  void schedule_run(Key key, int64_t micro_batch) {
    step_.schedule.push_back({programs_.at(key), micro_batch});
    if (auto sums = sums_.find(key); sums != sums_.end())
      step_.schedule.push_back({sums->second[size_t(std::countr_one(uint64_t(micro_batch)))]});
  }

  struct Use {
    std::optional<PipeAction> first, last;  // what writes it, and what reads it last
  };

  // Programs come forward first, so that the last one that reads a state is the last to do so.
  void find_uses(const Graph& graph, PipeAction action) {
    for (const Argument& argument : graph.arguments()) {
      if (argument.layout.role != Role::kStream && argument.layout.role != Role::kActivation) continue;
      bool writes = std::any_of(graph.updates().begin(), graph.updates().end(),
                                [&](const Update& update) { return update.target == argument.value; });
      Use& use = uses_[argument.name];
      (writes ? use.first : use.last) = action;
    }
  }

  // The state's other end is on the other stage.
  StageTransfer transfer_of(const PipeAction& action) {
    bool is_gradient = action.kind == Kind::kSendGradient || action.kind == Kind::kReceiveGradient;
    bool sends = action.kind == Kind::kSend || action.kind == Kind::kSendGradient;
    std::string state = is_gradient ? stream_gradient_state(action.chunk) : stream_state(action.chunk);
    Use& use = uses_[state];
    (sends ? use.last : use.first) = PipeAction{action.kind, action.chunk};
    return {sends, schedule_.stage_of(sends == is_gradient ? action.chunk - 1 : action.chunk), state};
  }

  const PipeSchedule& schedule_;
  Slots slots_;
  int64_t stage_;
  const ChunkCompiler& compiler_;
  const PassObserver& observer_;
  CompiledStep& step_;
  std::map<Key, size_t> programs_;
  std::map<Key, std::vector<size_t>> sums_;  // of programs that give gradients: by level, and behind them the total
  std::map<std::string, Use> uses_;
};

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

Graph update_graph(const RunConfig& config, const Graph& model, const OtherStages& others) {
  if (config.mesh.slots == 1)
    return accumulated_update_graph(model, config.optimizer, count_micro_batches(config), loss_scaling(config), others);
  SlotTerms terms{model, others.shared, others.has_loss};
  return slot_update_graph(terms, config.optimizer, slots_of(config), loss_scaling(config), others);
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
    Graph update = update_graph(out.config, models[stage], others[stage]);
    step.schedule.push_back({step.programs.size()});
    step.programs.push_back(compile_program(std::move(update), compiler.context(), Stage::kStep, observer));
  }
}

// A stage without its update. Each micro-batch's intermediate values are to fit into `budget_gib`.
CompiledStep compile_stage(const CompiledPipeline& out, const ChunkCompiler& compiler, int64_t stage, double budget_gib,
                           std::vector<ChunkSeconds>& seconds, const PassObserver& observer) {
  CompiledStep step;
  StageCompiler stage_compiler(out.schedule, slots_of(out.config), stage, compiler, observer, step);
  int64_t chunks = out.schedule.chunks;
  for (int64_t chunk = stage; chunk < chunks; chunk += out.schedule.stages) {
    size_t c = size_t(chunk);
    ChunkOptions options{.splits_backward = out.schedule.splits_backward(chunk), .budget_gib = budget_gib};
    if (chunks > out.schedule.stages) options.suffix = fmt::format(".{}", chunk);
    Graph graph = compiler.build(chunk, chunks, out.first_block[c], out.first_block[c + 1]);
    CompiledChunk compiled = compiler.compile(std::move(graph), chunk, options, observer);
    seconds[c] = compiled.seconds();
    stage_compiler.add(chunk, std::move(compiled));
  }
  stage_compiler.schedule();
  return step;
}

// The same where compile.memory_budget_gib is for all micro-batches in flight: each has less, until they fit.
CompiledStep compile_within_budget(const CompiledPipeline& out, const ChunkCompiler& compiler, int64_t stage,
                                   std::vector<ChunkSeconds>& seconds, const PassObserver& observer) {
  constexpr int kTries = 8;
  constexpr double kGiB = double(int64_t(1) << 30), kLess = 0.7;
  double asked = out.config.compile.memory_budget_gib, budget = asked;
  CompiledStep step = compile_stage(out, compiler, stage, budget, seconds, observer);
  for (int tried = 1; asked > 0 && tried < kTries; ++tried) {
    double needed = double(step.intermediate_bytes()) / kGiB;
    if (needed <= asked) break;
    budget *= std::min(kLess, asked / needed);
    step = compile_stage(out, compiler, stage, budget, seconds, observer);
  }
  return step;
}

// Each block as a chunk of its own.
std::vector<double> seconds_of_blocks(const ChunkCompiler& compiler, int64_t blocks) {
  std::vector<double> seconds;
  for (int64_t block = 0; block < blocks; ++block) {
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

// The least that the longest chunk can take, by number of chunks and of blocks that they have together.
std::vector<int64_t> balance_blocks(const std::vector<double>& seconds_of_blocks, int64_t chunks) {
  auto blocks = int64_t(seconds_of_blocks.size());
  TOKAMAK_CHECK(chunks >= 1 && chunks <= blocks, "{} blocks in {} chunks", blocks, chunks);
  std::vector<double> before(size_t(blocks) + 1, 0);
  std::partial_sum(seconds_of_blocks.begin(), seconds_of_blocks.end(), before.begin() + 1);
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> least(size_t(chunks) + 1, std::vector<double>(size_t(blocks) + 1, kNever));
  std::vector<std::vector<int64_t>> first(size_t(chunks) + 1, std::vector<int64_t>(size_t(blocks) + 1, 0));
  least[0][0] = 0;
  for (size_t c = 1; c <= size_t(chunks); ++c)
    for (size_t end = c; end <= size_t(blocks); ++end)
      for (size_t begin = c - 1; begin < end; ++begin) {
        double longest = std::max(least[c - 1][begin], before[end] - before[begin]);
        if (longest >= least[c][end]) continue;
        least[c][end] = longest;
        first[c][end] = int64_t(begin);
      }
  std::vector<int64_t> borders{blocks};
  for (int64_t c = chunks; c > 0; --c) borders.push_back(first[size_t(c)][size_t(borders.back())]);
  std::reverse(borders.begin(), borders.end());
  return borders;
}

CompiledPipeline compile_pipeline(const RunConfig& asked, const Platform& platform, const PassObserver& observer) {
  CompiledPipeline out;
  out.config = resolve(asked, platform.target);
  const RunConfig& config = out.config;
  const MeshConfig& mesh = config.mesh;
  out.schedule = make_pipe_schedule(mesh.schedule, mesh.pipe, mesh.interleave, count_micro_batches(config));
  Graph graph = forward_graph("model", config.model, sequences_of_program(config), config.model.context,
                              config.data.mask_documents, true);
  out.forward = graph;
  PassContext context = context_of(config, platform);
  out.forward_reports = run_passes(graph, Stage::kForward, context, observer);

  ChunkCompiler compiler(config, platform, graph);
  int64_t chunks = out.schedule.chunks;
  out.first_block = balance_blocks(seconds_of_blocks(compiler, config.model.layers), chunks);
  std::vector<ChunkSeconds> seconds(out.first_block.size() - 1);
  for (int64_t stage = 0; stage < mesh.pipe; ++stage)
    out.stages.push_back(compile_within_budget(out, compiler, stage, seconds, observer));
  append_updates(out, compiler, observer);
  for (CompiledStep& stage : out.stages) {
    stage.config = config;
    stage.forward = out.forward;
    stage.forward_reports = out.forward_reports;
  }
  LinkRate link = platform.target.link(kPipeAxis);
  double transfer = double(stream_bytes(out)) / link.bandwidth + link.seconds;
  out.timeline = simulate_pipe(out.schedule, seconds, transfer);
  return out;
}

std::vector<CompiledStep> compile_pipeline_loss(const RunConfig& config, const Platform& platform,
                                                const std::vector<int64_t>& first_block) {
  Graph graph =
      eval_graph(config.model, sequences_of_program(config), config.model.context, config.data.mask_documents, true);
  PassContext context = context_of(config, platform);
  run_passes(graph, Stage::kForward, context);
  ChunkCompiler compiler(config, platform, graph);
  const MeshConfig& mesh = config.mesh;
  int64_t batches = count_micro_batches(config);
  PipeSchedule schedule = forward_part(make_pipe_schedule(mesh.schedule, mesh.pipe, mesh.interleave, batches));
  std::vector<CompiledStep> steps(size_t(mesh.pipe));
  for (int64_t stage = 0; stage < mesh.pipe; ++stage) {
    CompiledStep& step = steps[size_t(stage)];
    step.config = config;
    StageCompiler stage_compiler(schedule, {}, stage, compiler, {}, step);
    auto compile = [&](Graph program) {
      return compile_program(std::move(program), compiler.context(), Stage::kStep, {});
    };
    for (int64_t chunk = stage; chunk < schedule.chunks; chunk += mesh.pipe) {
      auto c = size_t(chunk);
      Graph forward = compiler.build_forward(chunk, schedule.chunks, first_block[c], first_block[c + 1]);
      CompiledChunk compiled;
      compiled.programs.emplace_back(Kind::kForward, compile(std::move(forward)));
      stage_compiler.add(chunk, std::move(compiled));
    }
    stage_compiler.schedule();
    step.slots[kChunkLoss] = batches;
    for (int64_t batch = 0; batch < batches; ++batch) step.schedule.push_back({step.programs.size(), batch});
    step.programs.push_back(compile(tell_loss_graph(stage, mesh.pipe)));
  }
  return steps;
}

}  // namespace tokamak
