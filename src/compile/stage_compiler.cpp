#include "compile/stage_compiler.h"

#include "base/error.h"
#include "compile/step_compiler.h"

#include <algorithm>
#include <bit>
#include <set>

namespace tokamak {
namespace {

using Kind = PipeAction::Kind;

// What a program of a stage gives of a slot.
SlotTerms terms_of(const Graph& program, const Graph& forward) {
  std::set<std::string> given;
  bool has_loss = false;
  for (const Update& update : program.updates()) {
    const ArgumentSpec& spec = program.argument_of(update.target)->spec;
    if (spec.role != Role::kGradientSum) continue;
    spec.of.empty() ? void(has_loss = true) : void(given.insert(spec.of));
  }
  Graph model = take_parameters(forward, [&](const std::string& name) { return given.contains(name); });
  return {std::move(model), {}, has_loss, program.name()};
}

}  // namespace

Graph take_parameters(const Graph& model, const std::function<bool(const std::string&)>& is_wanted) {
  Graph parameters;
  for (const Argument& a : model.arguments())
    if (a.kind == Argument::Kind::kParameter && is_wanted(a.name))
      parameters.add_argument(a.kind, a.name, model.type(a.value), a.spec);
  return parameters;
}

void StageCompiler::add(int64_t chunk, CompiledChunk compiled) {
  if (compiled.weights) {
    step_.runs.push_back({step_.programs.size()});
    step_.programs.push_back(std::move(*compiled.weights));
  }
  for (auto& [kind, program] : compiled.programs) {
    find_uses(program.plan.graph, {kind, chunk});
    programs_[{kind, chunk}] = step_.programs.size();
    step_.programs.push_back(std::move(program));
    if (slots_.runs() > 1) add_sums({kind, chunk});
  }
  if (!compiled.last) return;
  Key last = {compiled.programs.back().first, chunk};
  find_uses(compiled.last->plan.graph, {last.first, chunk});
  last_ = {last, step_.programs.size()};
  step_.programs.push_back(std::move(*compiled.last));
}

void StageCompiler::list_runs() {
  for (const PipeAction& action : schedule_.actions[size_t(stage_)]) {
    if (is_transfer(action.kind))
      step_.runs.push_back({.micro_batch = action.micro_batch, .transfer = transfer_of(action)});
    else
      add_run({action.kind, action.chunk}, action.micro_batch);
  }
  if (last_) {
    TOKAMAK_CHECK(step_.runs.back().program == programs_.at(last_->in_place_of), "'{}' is not what stage {} ends with",
                  step_.programs[last_->program].name(), stage_);
    step_.runs.back().program = last_->program;
  }
  for (const auto& [state, use] : uses_) {
    TOKAMAK_CHECK(use.first && use.last, "state '{}' of stage {} is never {}", state, stage_,
                  use.first ? "read" : "written");
    step_.buffers[state] = schedule_.in_flight(stage_, *use.first, *use.last);
  }
}

// What adds up what a program gives of each slot: its runs take micro-batches in order.
void StageCompiler::add_sums(Key key) {
  SlotTerms terms = terms_of(step_.programs.back().plan.graph, compiler_.model());
  if (terms.model.arguments().empty() && !terms.has_loss) return;
  auto add_program = [&](Graph sum) {
    sums_[key].push_back(step_.programs.size());
    step_.programs.push_back(compile_program(std::move(sum), compiler_.context(), PassStage::kStep, observer_));
  };
  step_.odd_states.merge(states_of_odd_runs(terms));
  for (int level = 1; level < slots_.levels(); ++level) add_program(partial_sum_graph(terms, level));
  add_program(total_graph(terms, slots_));
}

void StageCompiler::add_run(Key key, int64_t micro_batch) {
  step_.runs.push_back({programs_.at(key), micro_batch});
  int ones = std::countr_one(uint64_t(micro_batch));
  if (auto sums = sums_.find(key); sums != sums_.end() && ones > 0)
    step_.runs.push_back({sums->second[size_t(ones) - 1]});
}

// Programs come forward first, so that the last one that reads a state is the last to do so.
void StageCompiler::find_uses(const Graph& graph, PipeAction action) {
  for (const Argument& argument : graph.arguments()) {
    if (argument.spec.role != Role::kResidual && argument.spec.role != Role::kActivation) continue;
    bool writes = std::any_of(graph.updates().begin(), graph.updates().end(),
                              [&](const Update& update) { return update.target == argument.value; });
    Use& use = uses_[argument.name];
    (writes ? use.first : use.last) = action;
  }
}

// The state's other end is on the other stage.
StageTransfer StageCompiler::transfer_of(const PipeAction& action) {
  bool is_gradient = action.kind == Kind::kSendGradient || action.kind == Kind::kReceiveGradient;
  bool sends = action.kind == Kind::kSend || action.kind == Kind::kSendGradient;
  std::string state = is_gradient ? residual_gradient_state(action.chunk) : residual_state(action.chunk);
  Use& use = uses_[state];
  (sends ? use.last : use.first) = PipeAction{action.kind, action.chunk};
  return {sends, schedule_.stage_of(sends == is_gradient ? action.chunk - 1 : action.chunk), state};
}

}  // namespace tokamak
