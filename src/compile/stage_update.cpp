#include "compile/stage_update.h"

#include "autodiff/slots.h"
#include "base/error.h"
#include "compile/stage_compiler.h"
#include "compile/step_compiler.h"
#include "passes/step_mesh.h"

#include <map>

namespace tokamak {
namespace {

// Of each parameter, the stages that have it.
std::map<std::string, std::vector<int64_t>> owners_of_parameters(const std::vector<Graph>& models) {
  std::map<std::string, std::vector<int64_t>> owners;
  for (size_t stage = 0; stage < models.size(); ++stage)
    for (const Argument& a : models[stage].arguments()) owners[a.name].push_back(int64_t(stage));
  return owners;
}

}  // namespace

// Without ZeRO each rank keeps all of the sums, beside those of its own: where nobody asks for that, memory counts.
bool adds_up_before_update(const ResolvedRun& run) {
  const MeshConfig& mesh = run.asked.mesh;
  bool is_wanted = mesh.reduce_gradients == "last" || (mesh.reduce_gradients == "auto" && mesh.zero == 1);
  return is_wanted && !run.has_slots() && adds_gradients_once(mesh.zero) && run.mesh.size(kDataAxis) > 1;
}

void append_update(CompiledStep& step, StageUpdate update) {
  if (update.sums) {
    step.runs.push_back({step.programs.size()});
    step.programs.push_back(std::move(*update.sums));
  }
  step.runs.insert(step.runs.end(), update.transfers.begin(), update.transfers.end());
  step.runs.push_back({step.programs.size()});
  step.programs.push_back(std::move(update.program));
}

std::set<std::string> reduced_by(const CompiledStep& stage) {
  std::set<std::string> names;
  for (const CompiledGraph& program : stage.programs) names.merge(reduced_parameters(program.plan.graph));
  return names;
}

UpdateCompiler::UpdateCompiler(const ResolvedRun& run, const ChunkCompiler& compiler, int64_t stages,
                               const std::function<bool(int64_t stage, const std::string& name)>& reads)
    : run_(run), compiler_(compiler), others_(size_t(stages)), transfers_(size_t(stages)) {
  for (int64_t stage = 0; stage < stages; ++stage)
    models_.push_back(take_parameters(compiler.model(), [&](const std::string& name) { return reads(stage, name); }));
  for (OtherStages& of_stage : others_) of_stage.axis = {kPipeAxis, stages}, of_stage.model = &compiler.model();
  others_.back().has_loss = true;
  for (const auto& [name, owners] : owners_of_parameters(models_)) {
    if (owners.size() == 1) continue;
    TOKAMAK_CHECK(owners.size() == 2, "'{}' is read on {} stages", name, owners.size());
    others_[size_t(owners[1])].uncounted.insert(name);
    for (bool second : {false, true}) {
      std::vector<ProgramRun>& transfers = transfers_[size_t(owners[second])];
      others_[size_t(owners[second])].shared.insert(name);
      StageTransfer send{true, owners[!second], gradient_sum_state(name)};
      StageTransfer receive{false, owners[!second], peer_gradient_state(name)};
      transfers.push_back({.transfer = second ? receive : send});
      transfers.push_back({.transfer = second ? send : receive});
    }
  }
}

StageUpdate UpdateCompiler::compile(int64_t stage, std::set<std::string> reduced, const PassObserver& observer) const {
  auto compile = [&](Graph graph) {
    return compile_program(std::move(graph), compiler_.context(), PassStage::kStep, observer);
  };
  OtherStages others = others_[size_t(stage)];
  others.reduced = std::move(reduced);
  StageUpdate update{.transfers = transfers_[size_t(stage)]};
  if (others.reduced.empty() && !update.transfers.empty() && adds_up_before_update(run_)) {
    Graph sums = sums_of(stage);
    others.reduced = reduced_parameters(sums);
    if (!others.reduced.empty()) update.sums = compile(std::move(sums));
  }
  update.program = compile(graph_of(stage, others));
  return update;
}

Graph UpdateCompiler::sums_of(int64_t stage) const {
  const std::set<std::string>& shared = others_[size_t(stage)].shared;
  return sync_gradients_graph(
      take_parameters(models_[size_t(stage)], [&](const std::string& name) { return !shared.contains(name); }));
}

Graph UpdateCompiler::graph_of(int64_t stage, const OtherStages& others) const {
  const Graph& model = models_[size_t(stage)];
  const Optimizer optimizer = run_.optimizer();
  if (!run_.has_slots())
    return accumulated_update_graph(model, optimizer, run_.micro_batches, run_.loss_scaling(), others);
  SlotTerms terms{model, others.shared, others.has_loss};
  return slot_update_graph(terms, optimizer, run_.slots, run_.loss_scaling(), others);
}

}  // namespace tokamak
