// Attention: on Hopper by the project's own kernels for its tensor cores where the heads suffice for them, by cuDNN
// where it has a plan, else (and always with documents) by the blocked kernels, and by the reference where a head is
// too large for those.
#include "backend/cuda/blocked_attention.h"
#include "backend/cuda/cudnn_attention.h"
#include "backend/cuda/hopper_attention.h"
#include "graph/op_def.h"
#include "ops/attention_operands.h"

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
  p.causal = node.attrs.get_bool("causal");
  p.scale = node.attrs.get_double("scale");
  p.dropout = node.attrs.get_double("dropout");
  p.stream = node.attrs.get_int("stream");
  p.any_order = node.has_tag("any_order");
  p.documents = attention_operands(node).documents >= 0;
  return p;
}

}  // namespace

KernelPtr make_attention_kernel(Context& context, const Graph& graph, const Node& node) {
  AttentionProblem problem = attention_problem(graph, node);
  bool hopper = hopper_supports(problem, {context.info.major, context.info.minor});
  if (hopper && hopper_fills(problem, context.info.multiprocessors)) return make_hopper_attention(context, problem);
  if (!problem.documents && cudnn_supports(context, problem, AttentionPass::kForward))
    return make_cudnn_attention(context, problem);
  if (hopper) return make_hopper_attention(context, problem);
  if (KernelPtr kernel = make_blocked_attention(context, problem)) return kernel;
  return make_reference_kernel(context, graph, node);
}

KernelPtr make_attention_grad_kernel(Context& context, const Graph& graph, const Node& node) {
  AttentionProblem problem = attention_problem(graph, node);
  for (size_t i : {1, 3})  // out and dout; autocast gives them the type of qkv
    if (graph.dtype(node.inputs[i]) != problem.dtype) return make_reference_kernel(context, graph, node);
  bool hopper = hopper_supports(problem, {context.info.major, context.info.minor});
  if (hopper && hopper_fills(problem, context.info.multiprocessors))
    return make_hopper_attention_grad(context, problem);
  if (!problem.documents && cudnn_supports(context, problem, AttentionPass::kBackward))
    return make_cudnn_attention_grad(context, problem);
  if (hopper) return make_hopper_attention_grad(context, problem);
  if (KernelPtr kernel = make_blocked_attention_grad(context, problem)) return kernel;
  return make_reference_kernel(context, graph, node);
}

}  // namespace tokamak::cuda
