#include "advise/stage_cost.h"

#include "cost/price.h"
#include "ops/work_class.h"
#include "passes/step_mesh.h"
#include "plan/timeline.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace tokamak {
namespace {

using Kind = PipeAction::Kind;

double& exposed_of(TimeByKind& time, const std::string& axis) {
  return axis == kContextAxis  ? time.context
         : axis == kTensorAxis ? time.tensor
         : axis == kPipeAxis   ? time.pipe
                               : time.data;
}

double& computed_of(TimeByKind& time, const Node& node) {
  if (node.recompute && node.phase == Phase::kBackward) return time.recomputed;
  WorkClass work = work_class(node);
  return work == WorkClass::kMatmul ? time.matmul : work == WorkClass::kAttention ? time.attention : time.memory_bound;
}

// Kernels have what is left beside collectives that nothing hides: collectives beside them slow them down, and those of
// two streams share the device.
TimeByKind time_of(const Plan& plan) {
  std::vector<Span> timeline = simulate(plan);
  std::vector<double> exposed = exposed_seconds(plan, timeline);
  TimeByKind computed, sent;
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    const Node& node = plan.graph.nodes()[size_t(plan.launches[i].node)];
    if (node.op->together)
      exposed_of(sent, node.attrs.get_string("axis")) += exposed[i];
    else
      computed_of(computed, node) += plan.launches[i].seconds;
  }
  double left = end_of_timeline(timeline) - sent.total();
  if (computed.total() > 0) sent += (left / computed.total()) * computed;
  return sent;
}

// The launches as they are priced here.
Plan priced(const Plan& from, const Platform& platform) {
  Plan plan = from;
  for (Launch& launch : plan.launches)
    static_cast<Price&>(launch) = price(plan.graph, plan.graph.nodes()[size_t(launch.node)], platform);
  return plan;
}

std::string name_of(const CompiledGraph& program) { return program.name().substr(0, program.name().find('.')); }

double& kept_of(MemoryByKind& kept, const Argument& argument) {
  if (argument.kind == Argument::Kind::kParameter || argument.spec.role == Role::kWeights) return kept.weights;
  if (argument.spec.role == Role::kGradientSum || argument.spec.role == Role::kReducedGradient) return kept.gradients;
  return argument.spec.role == Role::kMoment ? kept.optimizer : kept.buffers;
}

Kind kind_of(std::string_view program) {
  if (program == "backward" || program == "last_backward") return Kind::kBackward;
  if (program == "backward_input") return Kind::kBackwardInput;
  return program == "backward_weight" || program == "last_backward_weight" ? Kind::kBackwardWeight : Kind::kForward;
}

bool is_of_micro_batch(const Argument& argument) {
  return argument.spec.role == Role::kResidual || argument.spec.role == Role::kActivation;
}

// Programs come forward first, so the last one that has a state is the last to read it.
std::map<std::string, StateLife> find_lives(const CompiledStep& step) {
  std::map<std::string, StateLife> lives;
  for (const CompiledGraph& program : step.programs) {
    Kind kind = kind_of(name_of(program));
    for (const Argument& argument : program.plan.graph.arguments()) {
      if (!is_of_micro_batch(argument)) continue;
      auto [at, is_first] = lives.try_emplace(argument.name, StateLife{kind, kind});
      at->second.last = kind;
    }
  }
  return lives;
}

void add_states(StageCost& cost, const CompiledStep& step) {
  std::map<std::string, StateLife> lives = find_lives(step);
  std::set<std::string_view> known;
  for (const CompiledGraph& program : step.programs)
    for (const Argument& argument : program.plan.graph.arguments()) {
      if (argument.kind == Argument::Kind::kInput || !known.insert(argument.name).second) continue;
      auto bytes = double(num_bytes(program.plan.graph.type(argument.value)));
      if (argument.spec.role == Role::kResidual) cost.residual = bytes;
      if (is_of_micro_batch(argument))
        cost.of_micro_batch[lives.at(argument.name)] += bytes;
      else
        kept_of(cost.kept, argument) += bytes;
    }
}

ProgramCost mix(const ProgramCost& less, const ProgramCost& more, double share) {
  auto between = [&](double a, double b) { return a + share * (b - a); };
  ProgramCost mixed{(1 - share) * less.time, between(less.arena, more.arena), between(less.scratch, more.scratch),
                    between(less.inputs, more.inputs), between(less.alone, more.alone)};
  mixed.time += share * more.time;
  return mixed;
}

}  // namespace

double StageCost::intermediate() const {
  double most = 0;
  for (const auto& [name, program] : programs) most = std::max(most, program.arena);
  return most;
}

double StageCost::fixed() const {
  double bytes = kept.total();
  for (const auto& [name, program] : programs) bytes += program.scratch + program.inputs;
  return bytes;
}

StageCost stage_cost(const CompiledStep& step, const Platform& platform) {
  StageCost cost;
  for (const CompiledGraph& program : step.programs) {
    Plan plan = priced(program.plan, platform);
    cost.programs[name_of(program)] = {time_of(plan), double(plan.arena_bytes), double(plan.scratch_bytes),
                                       double(plan.input_bytes), seconds_before(plan, kPipeAxis)};
  }
  add_states(cost, step);
  cost.exchanges_gradients =
      std::ranges::any_of(step.runs, [](const ProgramRun& run) { return run.transfer && run.micro_batch < 0; });
  return cost;
}

StageCost mix(const StageCost& less, const StageCost& more, double share) {
  StageCost mixed;
  for (const StageCost* cost : {&less, &more})
    for (const auto& [name, program] : cost->programs) mixed.programs[name];
  auto of = [](const StageCost& cost, const std::string& name) {
    auto at = cost.programs.find(name);
    return at == cost.programs.end() ? ProgramCost{} : at->second;
  };
  for (auto& [name, program] : mixed.programs) program = mix(of(less, name), of(more, name), share);
  mixed.kept = (1 - share) * less.kept;
  mixed.kept += share * more.kept;
  for (const auto& [life, bytes] : less.of_micro_batch) mixed.of_micro_batch[life] += (1 - share) * bytes;
  for (const auto& [life, bytes] : more.of_micro_batch) mixed.of_micro_batch[life] += share * bytes;
  mixed.residual = less.residual;
  mixed.exchanges_gradients = less.exchanges_gradients;
  return mixed;
}

}  // namespace tokamak
