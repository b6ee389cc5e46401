#include "compile/step_compiler.h"

#include "autodiff/differentiate.h"
#include "autodiff/optimizer.h"
#include "base/error.h"
#include "compile/fill_budget.h"
#include "config/validate.h"
#include "graph/rewriter.h"
#include "model/model.h"
#include "ops/pointwise.h"
#include "passes/halves.h"
#include "passes/hoist_weights.h"
#include "passes/step_mesh.h"

#include <algorithm>
#include <bit>

namespace tokamak {
namespace {

// A gain below this is within the noise of the measured rates.
constexpr double kWorthwhileGain = 1.1;

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

// In halves uses come in pairs, one of each, which are added.
std::vector<ValueId> add_halves(GraphBuilder& g, const std::vector<ValueId>& uses) {
  PhaseScope backward(g, Phase::kBackward);
  TOKAMAK_CHECK(uses.size() % 2 == 0, "{} uses in halves", uses.size());
  std::vector<ValueId> sums;
  for (size_t i = 0; i < uses.size(); i += 2) sums.push_back(add(g, uses[i], uses[i + 1]));
  return sums;
}

// A parameter with two uses stands twice in them.
Gradients append_slot_gradients(GraphBuilder& g, bool scaled, bool in_halves) {
  Gradients gradients;
  std::vector<ValueId> parameters;
  for (const Argument& argument : g.graph().arguments())
    if (argument.kind == Argument::Kind::kParameter) parameters.push_back(argument.value);
  ValueId loss = g.graph().find_result("loss");
  auto uses = differentiate_by_use(g, scaled ? scaled_loss(g, loss) : loss, parameters);
  if (in_halves)
    for (std::vector<ValueId>& of_one : uses) of_one = add_halves(g, of_one);
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
  return compile_program(std::move(graph), context, Stage::kStep, observer);
}

CompiledGraph compile_forward(Graph graph, const PassContext& context) {
  run_passes(graph, Stage::kForward, context);
  return compile_graph(std::move(graph), context, {});
}

// Slots are said, and the batch is what follows from them. UserError when they do not fit the step.
RunConfig with_slots(RunConfig config) {
  int64_t ranks = step_mesh(config.mesh).size(kDataAxis), micro_batches = count_micro_batches(config);
  int64_t& slots = config.mesh.slots;
  bool can_have = (ranks > 1 || config.mesh.pipe > 1) && std::has_single_bit(uint64_t(ranks * micro_batches)) &&
                  config.train.batch % ranks == 0;
  if (slots == 0) slots = can_have ? ranks * micro_batches : 1;
  if (slots == 1) return config;
  validate_slots(config, ranks);
  int64_t sequences = config.train.batch * micro_batches, runs = slots / ranks;
  if (runs > 1) config.train.total_batch = sequences * config.model.context;
  config.train.batch = sequences / runs;
  return config;
}

// The graph with the parameters that it does not read as they are in `other`.
Graph with_unread_types(const Graph& graph, const Graph& other) {
  std::vector<std::vector<int>> users = find_users(graph);
  std::map<ValueId, ValueType> types;
  for (const Argument& argument : graph.arguments())
    if (is_parameter(argument.layout.role) && users[size_t(argument.value)].empty())
      types[argument.value] = other.type(other.find_argument(argument.name));
  Rewriter rewriter(graph, types);
  for (const Node& node : graph.nodes()) rewriter.copy(node);
  return rewriter.finish();
}

// The program of a micro-batch, and before it in the schedule what makes weights for all of them.
void add_micro_batch(CompiledStep& step, Graph graph, const PassContext& context, const PassObserver& observer) {
  std::vector<PassReport> reports = run_passes(graph, Stage::kWhole, context, observer);
  HoistedWeights parts = hoist_weights(graph, context);
  CompiledGraph program = compile_program(std::move(parts.rest), context, Stage::kProgram, observer);
  program.reports.insert(program.reports.begin(), reports.begin(), reports.end());
  step.programs.push_back(std::move(program));
  if (parts.weights.nodes().empty()) return;
  step.schedule.push_back({step.programs.size()});
  step.programs.push_back(compile_program(std::move(parts.weights), context, Stage::kProgram, observer));
}

int64_t ranks_of_program(const RunConfig& config) {
  return config.mesh.slots > 1 ? 1 : step_mesh(config.mesh).size(kDataAxis);
}

void require_halves(const RunConfig& config) {
  int64_t sequences = sequences_of_program(config) / ranks_of_program(config), tensor = config.mesh.tensor;
  if (can_be_halved(sequences, tensor)) return;
  user_error(
      "[mesh.halves] expected a multiple of {} sequences for each data rank and run, got {} (train.batch / data "
      "ranks{}); "
      "change train.batch, or leave mesh.halves out",
      sequences % tensor == 0 ? 2 * tensor : 2, sequences, config.mesh.slots > 1 ? ", by mesh.slots" : "");
}

// The forward pass of one of so many runs, after its passes.
Graph begin_step(CompiledStep& step, int64_t runs, const PassContext& context, const PassObserver& observer) {
  const RunConfig& config = step.config;
  bool halves = computes_in_halves(config);
  if (halves) require_halves(config);
  Graph graph =
      forward_graph(runs == 1 ? "step" : "micro_batch", config.model, sequences_of_program(config) / (halves ? 2 : 1),
                    config.model.context, config.data.mask_documents);
  step.forward = graph;
  step.forward_reports = run_passes(graph, Stage::kForward, context, observer);
  if (halves) graph = in_halves(graph, ranks_of_program(config));
  return graph;
}

// Each run is of one slot: a graph of its own on every data rank.
CompiledStep compile_slots(CompiledStep out, const PassContext& context, const PassObserver& observer) {
  const RunConfig& config = out.config;
  Slots slots = slots_of(config);
  Graph graph = begin_step(out, slots.runs(), context, observer);
  GraphBuilder g(graph);
  std::optional<LossScaling> scaling = loss_scaling(config);
  Gradients gradients = append_slot_gradients(g, scaling.has_value(), computes_in_halves(config));
  ValueId loss = graph.find_result("loss");
  graph.remove_results();
  auto add_program = [&](Graph program) {
    out.programs.push_back(compile_graph(std::move(program), context, observer));
  };
  if (slots.runs() == 1) {
    append_slot_update(g, gradients, loss, config.optimizer, slots, scaling);
    add_program(std::move(graph));
    out.schedule = {{0, 0}};
    return out;
  }
  append_slot(g, gradients, loss, slots);
  SlotTerms terms = terms_of(graph, gradients);
  add_micro_batch(out, std::move(graph), context, observer);
  out.odd_states = states_of_odd_runs(terms);
  size_t first_sum = out.programs.size();
  for (int level = 1; level < slots.levels(); ++level) add_program(partial_sum_graph(terms, level));
  add_program(slot_update_graph(terms, config.optimizer, slots, scaling));
  for (int64_t run = 0; run < slots.runs(); ++run) {
    out.schedule.push_back({0, run});
    if (int ones = std::countr_one(uint64_t(run)); ones > 0) out.schedule.push_back({first_sum + size_t(ones) - 1});
  }
  return out;
}

// Sums in any order: a rank runs micro-batches, and updates once.
CompiledStep compile_micro_batches(CompiledStep out, const PassContext& context, const PassObserver& observer) {
  const RunConfig& config = out.config;
  int64_t micro_batches = count_micro_batches(config);
  Graph graph = begin_step(out, micro_batches, context, observer);
  GraphBuilder g(graph);
  std::optional<LossScaling> scaling = loss_scaling(config);
  Gradients gradients = append_gradients(g, scaling.has_value());
  if (micro_batches == 1) {
    append_update(g, gradients, config.optimizer, 1, scaling);
    out.programs.push_back(compile_graph(std::move(graph), context, observer));
    out.schedule = {{0, 0}};
    return out;
  }
  append_accumulation(g, gradients);
  Graph update = accumulated_update_graph(graph, config.optimizer, micro_batches, scaling);
  add_micro_batch(out, std::move(graph), context, observer);
  for (int64_t i = 0; i < micro_batches; ++i) out.schedule.push_back({0, i});
  out.schedule.push_back({out.programs.size()});
  out.programs.push_back(compile_graph(std::move(update), context, observer));
  return out;
}

}  // namespace

std::optional<LossScaling> loss_scaling(const RunConfig& config) {
  if (config.compile.precision != Precision::kFp16) return {};
  return LossScaling{.growth_interval = double(config.compile.loss_scale_growth_interval)};
}

PassContext context_of(const RunConfig& config, const Platform& platform) {
  RunConfig resolved = resolve(config, platform.target);
  PassContext context{platform, resolved.compile};
  context.slots = resolved.mesh.slots;
  context.own_inputs = context.slots > 1;
  context.mesh = step_mesh(config.mesh);
  context.zero = config.mesh.zero;
  context.gathers_once = is_low(resolved.compile.precision) && gathers_once(config.mesh);
  context.sequence = config.mesh.sequence;
  context.bucket_mib = config.mesh.bucket_mib;
  return context;
}

CompiledGraph compile_program(Graph graph, const PassContext& context, Stage stage, const PassObserver& observer) {
  CompiledGraph compiled;
  compiled.before = graph;
  compiled.reports = run_passes(graph, stage, context, observer);
  compiled.plan = make_plan(std::move(graph), context, int(context.options.streams));
  return compiled;
}

int64_t count_micro_batches(const RunConfig& config) {
  int64_t micro = config.train.batch * config.model.context, total = config.train.total_batch;
  if (total == 0) return 1;
  if (total % micro != 0)
    user_error(
        "[train] expected train.total_batch to be a multiple of train.batch x model.context = {} tokens, got {}; "
        "the nearest below is {}",
        micro, total, std::max(micro, total / micro * micro));
  return total / micro;
}

RunConfig resolve(RunConfig config, const Target& target) {
  Precision& precision = config.compile.precision;
  if (precision == Precision::kAuto) {
    bool has_gain = target.tf32_flops > kWorthwhileGain * target.f32_flops;
    double f32 = has_gain ? target.tf32_flops : target.f32_flops;
    precision = target.bf16_flops > kWorthwhileGain * f32 ? Precision::kBf16
                : has_gain                                ? Precision::kTf32
                                                          : Precision::kFp32;
  }
  if (precision == Precision::kTf32 && target.tf32_flops <= 0) precision = Precision::kFp32;
  config.compile.streams = std::min<int64_t>(config.compile.streams, target.streams);
  return with_slots(std::move(config));
}

void require_one_rank(const RunConfig& config) {
  Mesh mesh = step_mesh(config.mesh);
  if (mesh.num_ranks() > 1)
    user_error("[mesh] expected one rank here, got {}; `tokamak train` trains on a mesh and `tokamak explain` plans it",
               to_string(mesh));
}

Slots slots_of(const RunConfig& config) {
  if (config.mesh.slots == 1) return {};
  Mesh mesh = step_mesh(config.mesh);
  return {.count = config.mesh.slots,
          .ranks = {kDataAxis, mesh.size(kDataAxis)},
          .sums_over_ranks_first = config.mesh.zero >= 2,
          .other_ranks = mesh.size(kContextAxis) * mesh.size(kTensorAxis)};
}

bool computes_in_halves(const RunConfig& config) {
  return config.mesh.halves && std::max(config.mesh.tensor, config.mesh.context) > 1;
}

bool records_runs(const RunConfig& config) { return config.compile.cuda_graph && !computes_in_halves(config); }

int64_t sequences_of_program(const RunConfig& config) { return config.train.batch / slots_of(config).ranks.size; }

CompiledStep compile_step(const RunConfig& asked, const Platform& platform, const PassObserver& observer) {
  TOKAMAK_CHECK(asked.mesh.pipe == 1, "a pipeline of {} stages in one step", asked.mesh.pipe);
  RunConfig config = resolve(asked, platform.target);
  auto compile = [&](double told) {
    PassContext context = context_of(config, platform);
    context.options.memory_budget_gib = told;
    CompiledStep out;
    out.config = config;
    return config.mesh.slots > 1 ? compile_slots(std::move(out), context, observer)
                                 : compile_micro_batches(std::move(out), context, observer);
  };
  // What is told may change the classifier's chunks, and with them the last bits, which slots keep on any mesh.
  double budget = config.compile.memory_budget_gib;
  return config.mesh.slots > 1 ? compile(budget) : fill_budget(BudgetSearch(budget), compile);
}

CompiledGraph compile_evaluation(const RunConfig& config, const Platform& platform) {
  Graph graph =
      eval_graph(config.model, sequences_of_program(config), config.model.context, config.data.mask_documents);
  return compile_forward(std::move(graph), context_of(config, platform));
}

CompiledGraph compile_inference(Graph graph, const RunConfig& config, const Platform& platform) {
  return compile_forward(std::move(graph), context_of(config, platform));
}

CompiledGraph compile_generation(Graph graph, const RunConfig& config, const Platform& platform, const Graph* other,
                                 const Mesh& mesh) {
  PassContext context{platform, resolve(config, platform.target).compile, true};
  context.mesh = mesh;
  run_passes(graph, Stage::kForward, context);
  run_passes(graph, Stage::kStep, context);
  if (other) graph = with_unread_types(graph, *other);
  CompiledGraph compiled;
  compiled.plan = make_plan(std::move(graph), context);
  return compiled;
}

}  // namespace tokamak
