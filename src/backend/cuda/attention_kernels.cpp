// Attention, over all of a sequence or over a rank's rows of it: on Hopper by the project's own kernels for its tensor
// cores where the heads suffice for them and no kernel of cuDNN's is faster, by cuDNN where it has a plan, else by the
// blocked kernels, and by the reference where a head is too large for those.
#include "backend/cuda/blocked_attention.h"
#include "backend/cuda/cudnn_attention.h"
#include "backend/cuda/hopper_attention.h"
#include "graph/op_def.h"
#include "ops/attention.h"
#include "ops/attention_operands.h"
#include "ops/context_attention.h"
#include "ops/context_attention_parts.h"
#include "ops/element_place.h"
#include "ops/generate.h"

namespace tokamak::cuda {
namespace {

AttentionProblem attention_problem(const Graph& graph, const Node& node) {
  const ValueType& qkv = graph.type(node.inputs[0]);
  AttentionProblem p;
  p.batch = qkv.shape[0];
  p.time = qkv.shape[1];
  p.heads = node.attrs.get_int("heads");
  p.head_dim = qkv.shape[2] / 3 / p.heads;
  p.dtype = qkv.dtype;
  p.causal = node.attrs.get_bool("causal", true);
  if (node.op == &op::context_attention || node.op == &op::context_attention_grad)
    p.ranks = zigzag_of(spec_of(graph, node)).ranks;
  p.scale = node.attrs.get_double("scale");
  p.dropout = node.attrs.get_double("dropout");
  p.random_stream = node.attrs.get_int(kRandomStream);
  p.place = place_attr(node.attrs);
  p.any_order = node.attrs.get_bool("any_order", false);
  p.documents = attention_operands(node).documents >= 0;
  p.sums = node.attrs.get_bool("sums", false);
  p.float8 = node.attrs.get_bool("float8", false);
  return p;
}

enum class Family : uint8_t { kHopper, kCudnn, kBlocked, kReference };

// `cudnn`, whether cuDNN can do it, is asked only where that matters. Of heads of 128 its forward pass is the faster
// one (bench/results/2026-11-24-h200-heads-of-128.txt).
template <typename Cudnn>
Family choose_plain(const DeviceInfo& info, const AttentionProblem& problem, AttentionPass pass, const Cudnn& cudnn) {
  bool hopper = hopper_supports(problem, {info.major, info.minor});
  bool first = problem.head_dim == 64 || pass == AttentionPass::kBackward;
  if (hopper && first && hopper_fills(problem, info.multiprocessors)) return Family::kHopper;
  if (!problem.documents && problem.ranks == 1 && cudnn()) return Family::kCudnn;
  if (hopper) return Family::kHopper;
  return attention_block(problem.head_dim, info.shared_bytes) > 0 ? Family::kBlocked : Family::kReference;
}

// Sums, and what has eight bits, only the kernels for Hopper give.
template <typename Cudnn>
Family choose(const DeviceInfo& info, const AttentionProblem& problem, AttentionPass pass, const Cudnn& cudnn) {
  Family family = choose_plain(info, problem, pass, cudnn);
  return (problem.sums || problem.float8) && family != Family::kHopper ? Family::kReference : family;
}

template <typename Cudnn>
Family choose_grad(const DeviceInfo& info, const Graph& graph, const Node& node, const AttentionProblem& problem,
                   const Cudnn& cudnn) {
  for (size_t i : {0, 2})  // out and dout; autocast gives them the type of qkv
    if (graph.dtype(node.inputs[problem.first() + i]) != problem.dtype) return Family::kReference;
  return choose(info, problem, AttentionPass::kBackward, cudnn);
}

bool is_gradient(const Node& node) { return node.op == &op::attention_grad || node.op == &op::context_attention_grad; }

// As far as it is known without asking cuDNN for a plan.
Family expected_family(const DeviceInfo& info, const Graph& graph, const Node& node) {
  AttentionProblem problem = attention_problem(graph, node);
  auto cudnn = [&] { return cudnn_may_support(problem); };
  return is_gradient(node) ? choose_grad(info, graph, node, problem, cudnn)
                           : choose(info, problem, AttentionPass::kForward, cudnn);
}

}  // namespace

KernelPtr make_attention_kernel(Context& context, const Graph& graph, const Node& node) {
  AttentionProblem problem = attention_problem(graph, node);
  auto cudnn = [&] { return cudnn_supports(context, problem, AttentionPass::kForward); };
  switch (choose(context.info, problem, AttentionPass::kForward, cudnn)) {
    case Family::kHopper: return make_hopper_attention(context, problem);
    case Family::kCudnn: return make_cudnn_attention(context, problem);
    case Family::kBlocked: return make_blocked_attention(context, problem);
    case Family::kReference: break;
  }
  return make_reference_kernel(context, graph, node);
}

KernelPtr make_attention_grad_kernel(Context& context, const Graph& graph, const Node& node) {
  AttentionProblem problem = attention_problem(graph, node);
  auto cudnn = [&] { return cudnn_supports(context, problem, AttentionPass::kBackward); };
  switch (choose_grad(context.info, graph, node, problem, cudnn)) {
    case Family::kHopper: return make_hopper_attention_grad(context, problem);
    case Family::kCudnn: return make_cudnn_attention_grad(context, problem);
    case Family::kBlocked: return make_blocked_attention_grad(context, problem);
    case Family::kReference: break;
  }
  return make_reference_kernel(context, graph, node);
}

// Not what cuDNN may have a plan for: to ask it for one takes as long as to compile one.
void compile_attention_ahead(Context& context, const Graph& graph, const Node& node) {
  Family family = expected_family(context.info, graph, node);
  if (family != Family::kHopper && family != Family::kBlocked) return;
  is_gradient(node) ? make_attention_grad_kernel(context, graph, node) : make_attention_kernel(context, graph, node);
}

bool has_attention(const DeviceInfo& info, const Graph& graph, const Node& node) {
  return expected_family(info, graph, node) != Family::kReference;
}

// Without a kernel it is computed in parts, which cuDNN's kernels do better than the blocked ones the whole.
bool has_context_attention(const DeviceInfo& info, const Graph& graph, const Node& node) {
  AttentionProblem problem = attention_problem(graph, node);
  Family family = choose(info, problem, AttentionPass::kForward, [] { return false; });
  if (family == Family::kBlocked && has_parts(node) && cudnn_may_support(problem)) return false;
  return family != Family::kReference;
}

bool attention_has_extras(const DeviceInfo& info, const Graph& graph, const Node& node) {
  return expected_family(info, graph, node) == Family::kHopper;
}

int64_t attention_grad_scratch(const DeviceInfo& info, const Graph& graph, const Node& node) {
  AttentionProblem problem = attention_problem(graph, node);
  switch (expected_family(info, graph, node)) {
    case Family::kHopper: return hopper_grad_scratch_bytes(problem, info.multiprocessors);
    case Family::kCudnn: return cudnn_grad_scratch_bytes(problem);
    case Family::kBlocked: return blocked_grad_scratch_bytes(problem);
    case Family::kReference: break;
  }
  return 0;
}

}  // namespace tokamak::cuda
