#include "compile/stage_update.h"

#include "autodiff/slots.h"
#include "base/error.h"
#include "compile/stage_compiler.h"
#include "compile/step_compiler.h"

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

void append_update(CompiledStep& step, StageUpdate update) {
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
  OtherStages others = others_[size_t(stage)];
  others.reduced = std::move(reduced);
  return {transfers_[size_t(stage)],
          compile_program(graph_of(stage, others), compiler_.context(), PassStage::kStep, observer)};
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
