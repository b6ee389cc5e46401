#include "compile/step_compiler.h"

#include "autodiff/differentiate.h"
#include "autodiff/optimizer.h"
#include "base/error.h"
#include "compile/fill_budget.h"
#include "graph/gpu_target.h"
#include "graph/rewriter.h"
#include "model/model.h"
#include "passes/hoist_weights.h"

#include <algorithm>
#include <bit>

namespace tokamak {
/// A micro-batch's graph before anything is done with its gradients.
struct UnsummedMicroBatch {
  Graph graph;
  Gradients gradients;
};

/// A program up to where it is chosen what is computed again, and as it was before the passes.
struct BegunProgram {
  Graph graph, before;
  std::vector<PassReport> reports;
};

/// The same of a step; with slots nothing of it yet.
struct BegunStep {
  CompiledStep step;         // no programs yet
  BegunProgram micro_batch;  // with a single one the update as well
  // Of several micro-batches, where that may be faster: the last one together with the update.
  std::optional<BegunProgram> last = {};
  std::shared_ptr<const UnsummedMicroBatch> unsummed = {};  // of steps that are only looked at
};

namespace {

Gradients append_gradients(GraphBuilder& g, bool scaled) {
  Gradients gradients;
  for (const Argument& argument : g.graph().arguments())
    if (argument.kind == Argument::Kind::kParameter) gradients.parameters.push_back(argument.value);
  ValueId loss = g.graph().find_result("loss");
  gradients.grads = differentiate(g, scaled ? scaled_loss(g, loss) : loss, gradients.parameters);
  for (size_t i = 0; i < gradients.grads.size(); ++i)
    TOKAMAK_CHECK(gradients.grads[i] != kNoValue, "the loss does not depend on '{}'",
                  g.graph().argument_of(gradients.parameters[i])->name);
  return gradients;
}

// A parameter with two uses stands twice in them.
Gradients append_slot_gradients(GraphBuilder& g, bool scaled) {
  Gradients gradients;
  ValueIds parameters;
  for (const Argument& argument : g.graph().arguments())
    if (argument.kind == Argument::Kind::kParameter) parameters.push_back(argument.value);
  ValueId loss = g.graph().find_result("loss");
  auto uses = differentiate_by_use(g, scaled ? scaled_loss(g, loss) : loss, parameters);
  for (size_t use : {0, 1})
    for (size_t i = 0; i < parameters.size(); ++i) {
      TOKAMAK_CHECK(!uses[i].empty() && uses[i].size() <= 2, "'{}' is used {} times",
                    g.graph().argument_of(parameters[i])->name, uses[i].size());
      if (use >= uses[i].size()) continue;
      gradients.parameters.push_back(parameters[i]);
      gradients.grads.push_back(uses[i][use]);
    }
  return gradients;
}

CompiledGraph compile_graph(Graph graph, const PassContext& context, const PassObserver& observer) {
  return compile_program(std::move(graph), context, PassStage::kStep, observer);
}

CompiledGraph compile_forward(Graph graph, const PassContext& context) {
  run_passes(graph, PassStage::kForward, context);
  return compile_graph(std::move(graph), context, {});
}

// The graph with the parameters that it does not read as they are in `other`.
Graph with_unread_types(const Graph& graph, const Graph& other) {
  Users users(graph);
  std::map<ValueId, ArgumentForm> forms;
  for (const Argument& argument : graph.arguments())
    if (is_parameter(argument.spec.role) && users[size_t(argument.value)].empty()) {
      const Argument& there = *other.argument_of(other.find_argument(argument.name));
      forms[argument.value] = {other.type(there.value), there.spec};
    }
  Rewriter rewriter(graph, forms);
  for (const Node& node : graph.nodes()) rewriter.copy(node);
  return rewriter.finish();
}

void append(std::vector<PassReport>& reports, std::vector<PassReport> more) {
  reports.insert(reports.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

CompiledGraph compile_part(Graph graph, const std::vector<PassReport>& reports, const PassContext& context,
                           const PassObserver& observer) {
  CompiledGraph program = compile_program(std::move(graph), context, PassStage::kProgram, observer);
  program.reports.insert(program.reports.begin(), reports.begin(), reports.end());
  return program;
}

// The program of a micro-batch, and before it what makes weights for all of them.
void add_programs(CompiledStep& step, Graph graph, const std::vector<PassReport>& reports, const PassContext& context,
                  const PassObserver& observer) {
  HoistedWeights parts = hoist_weights(graph, context);
  step.programs.push_back(compile_part(std::move(parts.rest), reports, context, observer));
  if (parts.weights.nodes().empty()) return;
  step.runs.push_back({step.programs.size()});
  step.programs.push_back(compile_program(std::move(parts.weights), context, PassStage::kProgram, observer));
}

// The forward pass of a run, after its passes.
Graph begin_step(CompiledStep& step, const PassContext& context, const PassObserver& observer) {
  const ResolvedRun& run = step.resolved;
  const RunConfig& asked = run.asked;
  Graph graph = forward_graph(run.micro_batches == 1 ? "step" : "micro_batch", asked.model, run.program_sequences(),
                              run.phase.sequence, asked.data.mask_documents);
  step.forward = graph;
  step.forward_reports = run_passes(graph, PassStage::kForward, context, observer);
  return graph;
}

// Each run is of one slot: a graph of its own on every data rank.
CompiledStep compile_slots(CompiledStep out, const PassContext& context, const PassObserver& observer) {
  const Optimizer optimizer = out.resolved.optimizer();
  const Slots slots = out.resolved.slots;
  Graph graph = begin_step(out, context, observer);
  GraphBuilder g(graph);
  std::optional<LossScaling> scaling = out.resolved.loss_scaling();
  Gradients gradients = append_slot_gradients(g, scaling.has_value());
  ValueId loss = graph.find_result("loss");
  graph.remove_results();
  auto add_program = [&](Graph program) {
    out.programs.push_back(compile_graph(std::move(program), context, observer));
  };
  if (slots.runs() == 1) {
    append_slot_update(g, gradients, loss, optimizer, slots, scaling);
    add_program(std::move(graph));
    out.runs = {{0, 0}};
    return out;
  }
  append_slot(g, gradients, loss, slots);
  SlotTerms terms = terms_of(graph, gradients);
  std::vector<PassReport> reports = run_passes(graph, PassStage::kWhole, context, observer);
  add_programs(out, std::move(graph), reports, context, observer);
  out.odd_states = states_of_odd_runs(terms);
  size_t first_sum = out.programs.size();
  for (int level = 1; level < slots.levels(); ++level) add_program(partial_sum_graph(terms, level));
  add_program(slot_update_graph(terms, optimizer, slots, scaling));
  for (int64_t run = 0; run < slots.runs(); ++run) {
    out.runs.push_back({0, run});
    if (int ones = std::countr_one(uint64_t(run)); ones > 0) out.runs.push_back({first_sum + size_t(ones) - 1});
  }
  return out;
}

// Whether ranks may add gradients up, once a step, beside the last micro-batch. Sums that wait to be sent take memory.
bool sums_with_last(const ResolvedRun& run) {
  const MeshConfig& mesh = run.asked.mesh;
  if (run.data_ranks() == 1 || !adds_gradients_once(mesh.zero)) return false;
  return mesh.reduce_gradients == "last" || (mesh.reduce_gradients == "auto" && run.compile.memory_budget_gib <= 0);
}

// The last micro-batch is the step of a single one, with the sums of the others: ranks add gradients up beside its
// backward pass.
BegunProgram begin_last(const Graph& micro_batch, Gradients gradients, const ResolvedRun& run,
                        const PassContext& context, const PassObserver& observer) {
  Graph last = with_sums_added(micro_batch, gradients);
  last.rename("last_" + micro_batch.name());
  GraphBuilder g(last);
  append_update(g, gradients, run.optimizer(), run.micro_batches, run.loss_scaling());
  BegunProgram begun{.before = last};
  begun.reports = run_passes(last, PassStage::kRewrite, context, observer);
  begun.graph = std::move(last);
  return begun;
}

// It stands in place of the last micro-batch and the update behind it if it takes less than they do: where links are
// busy all the time, what is sent for the sums delays what the backward pass waits for.
void replace_last(CompiledStep& out, BegunProgram begun, bool may_choose, const PassContext& context,
                  const PassObserver& observer) {
  append(begun.reports, run_passes(begun.graph, PassStage::kRecompute, context, observer));
  Graph graph = hoist_weights(begun.graph, context).rest;
  for (const Argument& argument : graph.arguments())
    TOKAMAK_CHECK(argument.spec.role != Role::kWeights ||
                      std::any_of(out.programs.begin(), out.programs.end(),
                                  [&](const CompiledGraph& program) {
                                    return program.plan.graph.find_argument(argument.name) != kNoValue;
                                  }),
                  "'{}' is made for the last micro-batch alone", argument.name);
  CompiledGraph last = compile_part(std::move(graph), begun.reports, context, observer);
  if (may_choose && last.plan.seconds >= out.programs[0].plan.seconds + out.programs.back().plan.seconds) return;
  last.before = std::move(begun.before);
  out.programs.back() = std::move(last);
  out.runs.pop_back();
  out.runs.back().program = out.programs.size() - 1;
}

// Sums in any order: a rank runs micro-batches, and updates once; of a single one the update is part.
BegunStep begin_micro_batches(CompiledStep out, const PassContext& context, const PassObserver& observer) {
  const Optimizer optimizer = out.resolved.optimizer();
  int64_t micro_batches = out.resolved.micro_batches;
  BegunStep begun;
  Graph graph = begin_step(out, context, observer);
  GraphBuilder g(graph);
  std::optional<LossScaling> scaling = out.resolved.loss_scaling();
  Gradients gradients = append_gradients(g, scaling.has_value());
  if (micro_batches == 1) {
    append_update(g, gradients, optimizer, 1, scaling);
  } else {
    if (sums_with_last(out.resolved)) begun.last = begin_last(graph, gradients, out.resolved, context, observer);
    if (!context.verifies) begun.unsummed = std::make_shared<UnsummedMicroBatch>(graph, gradients);
    append_accumulation(g, gradients);
  }
  begun.step = std::move(out);
  begun.micro_batch.before = graph;
  begun.micro_batch.reports = run_passes(graph, PassStage::kRewrite, context, observer);
  begun.micro_batch.graph = std::move(graph);
  return begun;
}

// Of the parameters that a micro-batch has.
Graph update_graph(const Graph& micro_batch, const ResolvedRun& run) {
  return accumulated_update_graph(micro_batch, run.optimizer(), run.micro_batches, run.loss_scaling());
}

CompiledStep end_micro_batches(const BegunStep& begun, const PassContext& context, const PassObserver& observer,
                               const KeptUpdate& kept = {}) {
  CompiledStep out = begun.step;
  const Graph& before = begun.micro_batch.before;
  Graph graph = begun.micro_batch.graph;
  std::vector<PassReport> reports = begun.micro_batch.reports;
  append(reports, run_passes(graph, PassStage::kRecompute, context, observer));
  if (out.resolved.micro_batches == 1) {
    CompiledGraph program = compile_part(std::move(graph), reports, context, observer);
    program.before = before;
    out.programs.push_back(std::move(program));
    out.runs = {{0, 0}};
    return out;
  }
  add_programs(out, std::move(graph), reports, context, observer);
  for (int64_t i = 0; i < out.resolved.micro_batches; ++i) out.runs.push_back({0, i});
  out.runs.push_back({out.programs.size()});
  auto update = [&] { return compile_graph(update_graph(before, out.resolved), context, observer); };
  out.programs.push_back(kept ? kept(update) : update());
  bool may_choose = out.resolved.asked.mesh.reduce_gradients == "auto";
  if (begun.last) replace_last(out, *begun.last, may_choose, context, observer);
  return out;
}

CompiledStep begun_step(const ResolvedRun& run) {
  TOKAMAK_CHECK(run.stages() == 1, "a pipeline of {} stages in one step", run.stages());
  CompiledStep step;
  step.resolved = run;
  return step;
}

// Ranks that are a power of two divide what a model has. Others have rows added to parameters, which only those are
// that ZeRO cuts (passes/pad_shards.h).
bool divides_evenly(const Mesh& mesh) {
  return std::has_single_bit(uint64_t(mesh.size(kDataAxis) * mesh.size(kContextAxis)));
}

}  // namespace

PassContext context_of(const ResolvedRun& run, const Platform& platform) {
  const MeshConfig& asked = run.asked.mesh;
  PassContext context{platform, run.compile};
  context.slots = run.slots.count;
  context.own_inputs = run.has_slots();
  if (!run.asked.data.mask_documents)
    context.loss_weight = 1.0 / double(run.program_windows() * run.asked.model.context);
  context.mesh = run.mesh;
  context.zero = asked.zero;
  context.gathers_once = gathers_once(asked) && (is_low(run.compile.precision) || !divides_evenly(run.mesh));
  context.sequence = asked.sequence;
  context.async_tensor = asked.async_tensor;
  context.bucket_mib = asked.bucket_mib;
  const Optimizer optimizer(run.asked.optimizer);
  context.updates_whole = optimizer.updates_whole();
  context.rows_in_parts = optimizer.keeps_rows();
  return context;
}

CompiledGraph compile_program(Graph graph, const PassContext& context, PassStage stage, const PassObserver& observer) {
  CompiledGraph compiled;
  if (context.verifies) compiled.before = graph;
  compiled.reports = run_passes(graph, stage, context, observer);
  Platform platform = context;
  if (context.mesh.num_ranks() > 1) platform.target = with_awake_links(platform.target);
  compiled.plan = make_plan(std::move(graph), platform, int(context.options.streams));
  return compiled;
}

CompiledStep compile_step(const ResolvedRun& run, const Platform& platform, const PassObserver& observer) {
  const CompiledStep step = begun_step(run);
  PassContext context = context_of(run, platform);
  BudgetSearch search(run.compile.memory_budget_gib);
  if (run.has_slots())
    return fill_budget(search, [&](double told) {
      context.recompute_gib = told;
      return compile_slots(step, context, observer);
    });
  const BegunStep begun = begin_micro_batches(step, context, observer);
  return fill_budget(search, [&](double told) {
    context.recompute_gib = told;
    return end_micro_batches(begun, context, observer);
  });
}

StepOfKinds::StepOfKinds(const ResolvedRun& run, const Platform& platform) : context_(context_of(run, platform)) {
  context_.verifies = false;
  CompiledStep step = begun_step(run);
  BegunStep begun = run.has_slots() ? BegunStep{std::move(step)} : begin_micro_batches(std::move(step), context_, {});
  begun.step.forward = Graph();
  begun_ = std::make_shared<const BegunStep>(std::move(begun));
}

CompiledStep StepOfKinds::compile(int64_t kinds, double budget_gib, const KeptUpdate& kept) const {
  PassContext context = context_;
  context.recompute_kinds = kinds;
  context.options.memory_budget_gib = budget_gib;
  return begun_->step.resolved.has_slots() ? compile_slots(begun_->step, context, {})
                                           : end_micro_batches(*begun_, context, {}, kept);
}

CompiledStep StepOfKinds::with_sums_in_last(CompiledStep step, bool may_choose) const {
  const UnsummedMicroBatch& from = *begun_->unsummed;
  BegunProgram last = begin_last(from.graph, from.gradients, step.resolved, context_, {});
  replace_last(step, std::move(last), may_choose, context_, {});
  return step;
}

CompiledGraph compile_evaluation(const ResolvedRun& run, const Platform& platform) {
  const RunConfig& asked = run.asked;
  Graph graph = eval_graph(asked.model, run.program_windows(), asked.model.context, asked.data.mask_documents);
  return compile_forward(std::move(graph), context_of(run, platform));
}

CompiledGraph compile_scores(const ResolvedRun& run, const Platform& platform, int64_t rows, int64_t length) {
  TOKAMAK_CHECK(run.stages() == 1, "scores of a pipeline of {} stages", run.stages());
  PassContext context = context_of(run, platform);
  context.own_inputs = false;
  return compile_forward(score_graph(run.asked.model, rows, length), context);
}

CompiledGraph compile_inference(Graph graph, const ResolvedRun& run, const Platform& platform) {
  return compile_forward(std::move(graph), context_of(run, platform));
}

CompiledGraph compile_generation(Graph graph, const ResolvedRun& run, const Platform& platform, const Graph* other,
                                 const Mesh& mesh) {
  PassContext context{platform, run.compile, true};
  context.mesh = mesh;
  run_passes(graph, PassStage::kForward, context);
  run_passes(graph, PassStage::kStep, context);
  if (other) graph = with_unread_types(graph, *other);
  CompiledGraph compiled;
  compiled.plan = make_plan(std::move(graph), context);
  return compiled;
}

}  // namespace tokamak
