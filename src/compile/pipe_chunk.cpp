#include "compile/pipe_chunk.h"

#include "autodiff/differentiate.h"
#include "base/error.h"
#include "compile/stage_border.h"
#include "compile/step_compiler.h"
#include "graph/builder.h"
#include "model/model.h"
#include "passes/hoist_weights.h"
#include "passes/split_chunk.h"

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
  return seconds;
}

ChunkCompiler::ChunkCompiler(const ResolvedRun& run, const Platform& platform, const Graph& forward, bool verifies)
    : run_(run), context_(context_of_stage(run, platform)), forward_(forward) {
  context_.verifies = verifies;
}

// The only update leaves the end of its blocks; the last chunk has the loss as its result.
Graph ChunkCompiler::cut_out(int64_t number, int64_t chunks, int64_t first, int64_t last) const {
  Part part{forward_.name()};
  bool is_last = number + 1 == chunks;
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

Graph ChunkCompiler::build(int64_t number, int64_t chunks, int64_t first, int64_t last) const {
  Graph graph = cut_out(number, chunks, first, last);
  append_backward(graph, number, number + 1 == chunks);
  return graph;
}

Graph ChunkCompiler::build_forward(int64_t number, int64_t chunks, int64_t first, int64_t last) const {
  Graph graph = cut_out(number, chunks, first, last);
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
  context.micro_batches_held = options.micro_batches_held;
  return context;
}

BegunChunk ChunkCompiler::begin(Graph graph, const ChunkOptions& options, const PassObserver& observer) const {
  std::vector<PassReport> reports = run_passes(graph, PassStage::kRewrite, context_of(options), observer);
  return {std::move(graph), std::move(reports)};
}

CompiledChunk ChunkCompiler::end(BegunChunk begun, int64_t number, const ChunkOptions& options,
                                 const PassObserver& observer) const {
  PassContext context = context_of(options);
  std::vector<PassReport> more = run_passes(begun.graph, PassStage::kRecompute, context, observer);
  begun.reports.insert(begun.reports.end(), more.begin(), more.end());
  CompiledChunk compiled;
  HoistedWeights parts = hoist_weights(begun.graph, context, options.suffix);
  Graph graph = std::move(parts.rest);
  if (!parts.weights.nodes().empty())
    compiled.weights = compile_program(std::move(parts.weights), context, PassStage::kProgram, observer);
  std::string output = residual_state(number + 1), input_gradient = residual_gradient_state(number);
  bool is_last = updated_value(graph, output) == kNoValue;
  if (updated_value(graph, input_gradient) == kNoValue) input_gradient.clear();
  Chunk chunk{graph, number, options.suffix, is_last ? kLastEnd : output, is_last, input_gradient};
  bool splits_backward = options.splits_backward;
  std::vector<Kind> kinds = {Kind::kForward, splits_backward ? Kind::kBackwardInput : Kind::kBackward};
  if (splits_backward) kinds.push_back(Kind::kBackwardWeight);
  for (Graph& program : split_chunk(chunk, splits_backward)) {
    Kind kind = kinds[compiled.programs.size()];
    compiled.programs.emplace_back(kind, compile_program(std::move(program), context, PassStage::kProgram, observer));
  }
  std::vector<PassReport>& first = compiled.programs[0].second.reports;
  first.insert(first.begin(), begun.reports.begin(), begun.reports.end());
  return compiled;
}

StandIn ChunkCompiler::residual(std::string name, ValueType type) const {
  bool is_low = tokamak::is_low(run_.compile.precision) && run_.compile.low_residual;
  if (is_low) type.dtype = run_.compile.precision == Precision::kFp16 ? DType::kF16 : DType::kBF16;
  return {std::move(name), type, {Role::kResidual, "", type.shape}};
}

void ChunkCompiler::append_backward(Graph& graph, int64_t number, bool is_last) const {
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
  ValueId loss = kNoValue;
  if (is_last) {
    loss = graph.find_result("loss");
    gradients.grads = differentiate(g, run_.loss_scaling() ? scaled_loss(g, loss) : loss, wrt);
    if (!run_.has_slots()) append_loss_sum(g, loss);
    graph.remove_results();
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
  if (run_.has_slots())
    append_slot(g, gradients, loss, run_.slots);
  else
    append_accumulation(g, gradients);
}

}  // namespace tokamak
