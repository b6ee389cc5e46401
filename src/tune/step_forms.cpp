#include "tune/step_forms.h"

#include "exec/collective_kernel.h"
#include "exec/measure.h"
#include "graph/single_node.h"
#include "ops/group.h"
#include "ops/row_block.h"
#include "passes/float8_choice.h"

#include <algorithm>
#include <optional>

namespace tokamak {
namespace {

// Appends the plan's matmul groups, in order.
void add_matmul_groups(const Plan& plan, std::vector<std::string>& keys) {
  for (const Launch& launch : plan.launches) {
    const Node& node = plan.graph.nodes()[size_t(launch.node)];
    if (node.op != &op::fused_matmul) continue;
    std::string key = kernel_key(plan.graph, node);
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(std::move(key));
  }
}

// In eight bits, by a kernel that makes nothing else.
bool is_made_for_products(const Graph& graph, ValueId value) {
  int maker = graph.producer(value);
  if (maker < 0) return false;
  const ValueIds& made = graph.nodes()[size_t(maker)].outputs;
  return std::all_of(made.begin(), made.end(), [&](ValueId one) { return dtype_bytes(graph.dtype(one)) == 1; });
}

void add_float8(StepForm& form, size_t p) {
  const Graph& graph = form.programs[p].plan.graph;
  std::map<ValueId, std::set<std::string>> readers;
  for (const Launch& launch : form.programs[p].plan.launches) {
    const Node& node = graph.nodes()[size_t(launch.node)];
    if (!is_of_ranks(node)) form.kernels.try_emplace(kernel_key(graph, node), StepForm::NodeAt{p, launch.node});
    if (!has_float8_operand(graph, node)) continue;
    std::optional<std::string> key = float8_key(graph, node);
    if (!key) continue;
    form.float8.insert({*key});
    for (ValueId input : node.inputs)
      if (is_made_for_products(graph, input)) readers[input].insert(*key);
  }
  for (auto& [value, keys] : readers) form.float8.insert(std::move(keys));
}

// With slots the run of one data rank and one stage: how many there are must not change a bit, so not a choice either.
// Products that begin with a rank's own rows have the forms of whole ones.
ResolvedRun chosen_for(const ResolvedRun& run, const Target& target) {
  if (!run.has_slots() && (run.asked.mesh.tensor == 1 || !run.asked.mesh.async_tensor)) return run;
  RunConfig one = run.settled();
  MeshConfig& mesh = one.mesh;
  mesh.async_tensor = false;
  if (!run.has_slots()) return resolve(one, target);
  mesh.pipe = mesh.data = mesh.interleave = 1;
  mesh.schedule = MeshConfig().schedule;
  mesh.zero = 0;
  return resolve(one, target);
}

ResolvedRun without_budget(ResolvedRun run) {
  run.compile.memory_budget_gib = 0;  // recomputing must not change a bit either
  return run;
}

}  // namespace

StepForms::StepForms(const ResolvedRun& run, const Platform& platform, CodeAhead& code)
    : run_(without_budget(run)), chosen_for_(chosen_for(run_, platform.target)), platform_(platform), code_(code) {}

StepForm StepForms::compile(const ResolvedRun& run, const std::set<std::string>& refused) const {
  Platform trial = platform_;
  trial.tuning.slow_forms = refused;
  StepForm form;
  form.refused = refused;
  CompiledRun compiled = compile_run(run, trial);
  for (CompiledStep& stage : compiled.stages)
    for (size_t p = 0; p < stage.programs.size(); ++p) {
      form.runs.push_back(stage.runs_of(p));
      form.programs.push_back(std::move(stage.programs[p]));
    }
  for (size_t p = 0; p < form.programs.size(); ++p) {
    const Plan& plan = form.programs[p].plan;
    add_matmul_groups(plan, form.groups);
    for (const auto& [key, node] : library_kernels(plan)) form.libraries.try_emplace(key, StepForm::NodeAt{p, node});
    if (run.compile.precision == Precision::kFp8) add_float8(form, p);
  }
  return form;
}

void StepForms::prepare(const StepForm& best) {
  for (const auto& [key, at] : best.libraries) compile_ahead(best, at);
  prepare_formats(best);
  prepare_groups(best, {});
  compile_ahead(best);
}

void StepForms::prepare_formats(const StepForm& best) {
  for (const std::set<std::string>& products : best.float8)
    prepare_trial(best, refuse_both(best.refused, products), &StepForm::kernels);
}

void StepForms::prepare_groups(const StepForm& best, const std::set<std::string>& tried) {
  for (const std::string& group : best.groups) {
    if (tried.contains(group)) continue;
    std::set<std::string> refused = best.refused;
    for (std::vector<std::string> more{group}; !more.empty();) {
      refused.insert(more.begin(), more.end());
      more = new_groups(best, prepare_trial(best, refused, &StepForm::libraries));
    }
  }
}

// A trial needs kernels that nothing else has. Those of all trials of a plan are compiled beside each other, and
// beside the step's own, instead of one after the other when they are measured.
const StepForm& StepForms::prepare_trial(const StepForm& best, const std::set<std::string>& refused,
                                         StepForm::Kernels StepForm::*kernels) {
  auto [trial, fresh] = trials_.try_emplace(refused);
  if (!fresh) return trial->second;
  trial->second = compile_chosen(refused);
  for (const auto& [key, at] : trial->second.*kernels)
    if (!(best.*kernels).contains(key)) compile_ahead(trial->second, at);
  return trial->second;
}

StepForm StepForms::take_trial(const StepForm& best, const std::set<std::string>& refused,
                               StepForm::Kernels StepForm::*kernels) {
  prepare_trial(best, refused, kernels);
  return std::move(trials_.extract(refused).mapped());
}

void StepForms::compile_ahead(const StepForm& form) {
  for (size_t p = 0; p < form.programs.size(); ++p)
    for (const Launch& launch : form.programs[p].plan.launches) compile_ahead(form, {p, launch.node});
}

void StepForms::compile_ahead(const StepForm& form, StepForm::NodeAt at) {
  const Graph& graph = form.programs[at.program].plan.graph;
  KernelNode kernel = kernel_node(graph, graph.nodes()[size_t(at.node)]);
  if (compiled_.insert(kernel_key(kernel.graph, kernel.node)).second) code_.compile_ahead(kernel.graph, kernel.node);
}

std::set<std::string> refuse_both(std::set<std::string> refused, const std::set<std::string>& more) {
  refused.insert(more.begin(), more.end());
  return refused;
}

std::vector<std::string> new_groups(const StepForm& best, const StepForm& trial) {
  std::vector<std::string> groups;
  for (const std::string& key : trial.groups)
    if (std::find(best.groups.begin(), best.groups.end(), key) == best.groups.end()) groups.push_back(key);
  return groups;
}

}  // namespace tokamak
