#include "compile/pipe_chunk.h"

#include "autodiff/differentiate.h"
#include "base/error.h"
#include "compile/stage_border.h"
#include "compile/step_compiler.h"
#include "graph/builder.h"
#include "graph/op_def.h"
#include "model/model.h"
#include "passes/hoist_weights.h"
#include "passes/split_chunk.h"
#include "passes/step_mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace tokamak {
namespace {

using Kind = PipeAction::Kind;

// State of the last chunk's graph that gets the end of its blocks. No program has it: it says what is forward. A result
// would do so, too, but is put together from all ranks, which no budget of memory has room for.
constexpr const char* kLastEnd = "end_of_blocks";

// The ranks of a stage are a mesh of their own.
PassContext context_of_stage(const ResolvedRun& run, const Platform& platform) {
  PassContext context = tokamak::context_of(run, platform);
  context.mesh.axes[context.mesh.find(kPipeAxis)].size = 1;
  return context;
}

// What the state of that name gets; kNoValue: it is not updated.
ValueId updated_value(const Graph& graph, const std::string& state) {
  for (const Update& update : graph.updates())
    if (graph.argument_of(update.target)->name == state) return update.value;
  return kNoValue;
}

int64_t num_computed_again(const Graph& graph) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                       [](const Node& node) { return node.recompute && node.phase == Phase::kForward; });
}

// Whether two programs compute the same of states of the same names.
bool are_alike(const Graph& a, const Graph& b) {
  auto alike = [](const auto& left, const auto& right, const auto& same) {
    return std::equal(left.begin(), left.end(), right.begin(), right.end(), same);
  };
  return alike(a.nodes(), b.nodes(),
               [](const Node& x, const Node& y) {
                 return x.op == y.op && x.inputs == y.inputs && x.outputs == y.outputs && x.attrs == y.attrs;
               }) &&
         alike(a.arguments(), b.arguments(),
               [&](const Argument& x, const Argument& y) {
                 return x.name == y.name && x.value == y.value && a.type(x.value) == b.type(y.value);
               }) &&
         alike(a.updates(), b.updates(),
               [](const Update& x, const Update& y) { return x.target == y.target && x.value == y.value; });
}

// What the sums over data ranks would take where nothing hides them.
double seconds_of_sums(const Plan& plan) {
  double seconds = 0;
  for (const Launch& launch : plan.launches) {
    const Node& node = plan.graph.nodes()[size_t(launch.node)];
    if (node.op->together && node.attrs.get_string("axis") == kDataAxis) seconds += launch.seconds;
  }
  return seconds;
}

}  // namespace

std::string residual_state(int64_t chunk) { return fmt::format("stream.{}", chunk); }
std::string residual_gradient_state(int64_t chunk) { return fmt::format("stream_grad.{}", chunk); }

ChunkSeconds CompiledChunk::seconds() const {
  ChunkSeconds seconds;
  for (const auto& [kind, program] : programs) {
    double taken = program.plan.seconds;
    if (kind == Kind::kForward) seconds.forward = taken;
    if (kind == Kind::kBackward) seconds.backward = taken;
    if (kind == Kind::kBackwardInput) seconds.backward_input = taken;
    if (kind == Kind::kBackwardWeight) seconds.backward_weight = taken;
  }
  if (last) seconds.last = last->plan.seconds;
  return seconds;
}

ChunkCompiler::ChunkCompiler(const ResolvedRun& run, const Platform& platform, const Graph& forward, bool verifies)
    : run_(run), context_(context_of_stage(run, platform)), forward_(forward) {
  context_.verifies = verifies;
}

// The only update leaves the end of its blocks; the last chunk has the loss as its result.
Graph ChunkCompiler::cut_out(const ChunkPlace& place) const {
  auto [number, chunks, first, last] = place;
  Part part{forward_.name()};
  bool is_last = place.is_last();
  std::optional<Graph> joined = number > 0 ? joined_at_end(forward_, first - 1) : std::nullopt;
  if (!is_last)
    if (std::optional<Graph> more = joined_at_end(joined ? *joined : forward_, last - 1)) joined = std::move(more);
  const Graph& forward = joined ? *joined : forward_;
  auto end_of = [&](int64_t block) { return forward.find_result(block_result(block)); };
  auto residual = [&](int64_t block, std::string name) { return this->residual(name, forward.type(end_of(block))); };
  if (is_last) part.results.push_back({"loss", forward.find_result("loss")});
  part.left.emplace_back(end_of(last - 1), residual(last - 1, is_last ? kLastEnd : residual_state(number + 1)));
  if (number > 0) part.given[end_of(first - 1)] = residual(first - 1, residual_state(number));
  return extract(forward, part);
}

Graph ChunkCompiler::build(const ChunkPlace& place, const std::set<std::string>& reduced) const {
  Graph graph = cut_out(place);
  Gradients added, left;  // to sums of micro-batches, and as the step's
  Gradients gradients = append_backward(graph, place.number, place.is_last());
  for (size_t i = 0; i < gradients.grads.size(); ++i) {
    Gradients& own = reduced.contains(graph.argument_of(gradients.parameters[i])->name) ? left : added;
    own.parameters.push_back(gradients.parameters[i]);
    own.grads.push_back(gradients.grads[i]);
  }
  GraphBuilder g(graph);
  if (run_.has_slots())
    append_slot(g, added, place.is_last() ? graph.find_result("loss") : kNoValue, run_.slots);
  else
    append_accumulation(g, added);
  graph.remove_results();
  return left.grads.empty() ? graph : with_sums_reduced(graph, left);
}

Graph ChunkCompiler::build_forward(const ChunkPlace& place) const {
  Graph graph = cut_out(place);
  ValueId loss = graph.find_result("loss");
  if (loss == kNoValue) return graph;
  Graph with_loss = extract(graph, {graph.name(), graph.results(), {}});
  loss = with_loss.find_result("loss");
  with_loss.remove_results();
  GraphBuilder g(with_loss);
  with_loss.add_update(g.state(kChunkLoss, {DType::kF32, {}}, Role::kGradientSum), loss);
  return with_loss;
}

PassContext ChunkCompiler::context_of(const ChunkOptions& options) const {
  PassContext context = context_;
  context.recompute_gib = options.recompute_gib;
  context.recompute_kinds = options.recompute_kinds;
  context.recompute_nodes = options.recompute_nodes;
  context.micro_batches_held = options.micro_batches_held;
  return context;
}

BegunChunk ChunkCompiler::begin(Graph graph, const ChunkOptions& options, const PassObserver& observer) const {
  std::vector<PassReport> reports = run_passes(graph, PassStage::kRewrite, context_of(options), observer);
  return {std::move(graph), std::move(reports)};
}

void ChunkCompiler::begin_last(BegunChunk& begun, const ChunkPlace& place, const std::set<std::string>& shared,
                               const ChunkOptions& options, const PassObserver& observer) const {
  std::set<std::string> reduced;
  const Graph last_program = divide(begun.graph, place.number, options).back();
  for (const Update& update : last_program.updates())
    if (const ArgumentSpec& spec = last_program.argument_of(update.target)->spec;
        spec.role == Role::kGradientSum && !spec.of.empty() && !shared.contains(spec.of))
      reduced.insert(spec.of);
  if (reduced.empty()) return;
  begun.last = build(place, reduced);
  begun.last_reports = run_passes(*begun.last, PassStage::kRewrite, context_of(options), observer);
}

std::vector<Graph> ChunkCompiler::divide(const Graph& graph, int64_t number, const ChunkOptions& options) const {
  std::string output = residual_state(number + 1), input_gradient = residual_gradient_state(number);
  bool is_last = updated_value(graph, output) == kNoValue;
  if (updated_value(graph, input_gradient) == kNoValue) input_gradient.clear();
  return split_chunk({graph, number, options.suffix, is_last ? kLastEnd : output, is_last, input_gradient},
                     options.splits_backward);
}

CompiledChunk ChunkCompiler::end(BegunChunk begun, int64_t number, const ChunkOptions& options,
                                 const PassObserver& observer) const {
  PassContext context = context_of(options);
  std::vector<PassReport> more = run_passes(begun.graph, PassStage::kRecompute, context, observer);
  begun.reports.insert(begun.reports.end(), more.begin(), more.end());
  CompiledChunk compiled;
  HoistedWeights parts = hoist_weights(begun.graph, context, options.suffix);
  if (!parts.weights.nodes().empty())
    compiled.weights = compile_program(std::move(parts.weights), context, PassStage::kProgram, observer);
  std::vector<Kind> kinds = {Kind::kForward, options.splits_backward ? Kind::kBackwardInput : Kind::kBackward};
  if (options.splits_backward) kinds.push_back(Kind::kBackwardWeight);
  std::vector<Graph> programs = divide(parts.rest, number, options);
  for (size_t i = 0; i < programs.size(); ++i)
    compiled.programs.emplace_back(kinds[i], compile_program(programs[i], context, PassStage::kProgram, observer));
  if (begun.last) compiled.last = end_last(begun, programs, number, options, compiled.programs.back().second, observer);
  std::vector<PassReport>& first = compiled.programs[0].second.reports;
  first.insert(first.begin(), begun.reports.begin(), begun.reports.end());
  return compiled;
}

// `programs` are those of the other micro-batches, which leave what this one reads; `other` the last of them.
std::optional<CompiledGraph> ChunkCompiler::end_last(const BegunChunk& begun, const std::vector<Graph>& programs,
                                                     int64_t number, ChunkOptions options, const CompiledGraph& other,
                                                     const PassObserver& observer) const {
  options.recompute_nodes = num_computed_again(begun.graph);
  PassContext context = context_of(options);
  Graph graph = *begun.last;
  std::vector<PassReport> reports = run_passes(graph, PassStage::kRecompute, context, observer);
  std::vector<Graph> own = divide(hoist_weights(graph, context, options.suffix).rest, number, options);
  for (size_t i = 0; i + 1 < own.size(); ++i)
    if (!are_alike(own[i], programs[i])) return {};
  own.back().rename("last_" + own.back().name());
  CompiledGraph last = compile_program(std::move(own.back()), context, PassStage::kProgram, observer);
  last.reports.insert(last.reports.begin(), begun.last_reports.begin(), begun.last_reports.end());
  last.reports.insert(last.reports.end(), reports.begin(), reports.end());
  bool may_choose = run_.asked.mesh.reduce_gradients == "auto";
  if (may_choose && last.plan.seconds - other.plan.seconds >= seconds_of_sums(last.plan)) return {};
  return last;
}

StandIn ChunkCompiler::residual(std::string name, ValueType type) const {
  bool is_low = tokamak::is_low(run_.compile.precision) && run_.compile.low_residual;
  if (is_low) type.dtype = run_.compile.precision == Precision::kFp16 ? DType::kF16 : DType::kBF16;
  return {std::move(name), type, {Role::kResidual, "", type.shape}};
}

Gradients ChunkCompiler::append_backward(Graph& graph, int64_t number, bool is_last) const {
  GraphBuilder g(graph);
  ValueIds wrt;
  for (const Argument& argument : graph.arguments())
    if (argument.kind == Argument::Kind::kParameter) wrt.push_back(argument.value);
  Gradients gradients{wrt, {}};
  ValueId input = graph.find_argument(residual_state(number));
  if (input != kNoValue) wrt.push_back(input);
  auto add_gradient = [&](int64_t of, ValueId residual) {
    ArgumentSpec spec = graph.argument_of(residual)->spec;
    return graph.add_argument(Argument::Kind::kState, residual_gradient_state(of), graph.type(residual), spec);
  };
  if (is_last) {
    ValueId loss = graph.find_result("loss");
    gradients.grads = differentiate(g, run_.loss_scaling() ? scaled_loss(g, loss) : loss, wrt);
    if (!run_.has_slots()) append_loss_sum(g, loss);
  } else {
    Update output = graph.updates()[0];
    gradients.grads = differentiate(g, output.value, add_gradient(number + 1, output.target), wrt);
  }
  for (size_t i = 0; i < wrt.size(); ++i)
    TOKAMAK_CHECK(gradients.grads[i] != kNoValue, "the loss does not depend on '{}'", graph.argument_of(wrt[i])->name);
  if (input != kNoValue) {
    graph.add_update(add_gradient(number, input), gradients.grads.back());
    gradients.grads.pop_back();
  }
  return gradients;
}

}  // namespace tokamak
