#include "ops/work_class.h"

#include "graph/op_def.h"
#include "ops/argmax.h"
#include "ops/attention.h"
#include "ops/attention_decode.h"
#include "ops/collective.h"
#include "ops/context_attention.h"
#include "ops/cross_entropy.h"
#include "ops/group.h"
#include "ops/movement.h"
#include "ops/norm.h"
#include "ops/rms_norm.h"
#include "ops/row_block.h"

#include <algorithm>

namespace tokamak {
namespace {

template <typename... Ops>
bool is_one_of(const Node& node, const Ops&... ops) {
  return ((node.op == &ops) || ...);
}

bool reduces(const Node& node) {
  if (node.body) return std::any_of(node.body->nodes().begin(), node.body->nodes().end(), reduces);
  return node.op->fusion == Fusion::kReduction ||
         is_one_of(node, op::softmax, op::softmax_grad, op::layer_norm, op::layer_norm_grad, op::layer_norm_grad_params,
                   op::rms_norm, op::rms_norm_grad, op::rms_norm_grad_gain, op::cross_entropy, op::cross_entropy_grad,
                   op::argmax);
}

}  // namespace

std::string_view to_string(WorkClass work) {
  switch (work) {
    case WorkClass::kMatmul: return "matmul";
    case WorkClass::kAttention: return "attention";
    case WorkClass::kNormalisation: return "normalisation";
    case WorkClass::kElementwise: return "element-wise";
    case WorkClass::kOptimizer: return "optimizer";
    case WorkClass::kCommunication: return "communication";
    case WorkClass::kCopy: return "copies";
  }
  return "";
}

WorkClass work_class(const Node& node) {
  if (node.op->together) return WorkClass::kCommunication;
  if (node.phase == Phase::kUpdate) return WorkClass::kOptimizer;
  if (is_one_of(node, op::attention, op::attention_grad, op::attention_decode, op::context_attention,
                op::context_attention_grad))
    return WorkClass::kAttention;
  if (node.op->autocast == Autocast::kLow || is_one_of(node, op::fused_matmul, op::row_block))
    return WorkClass::kMatmul;
  if (is_one_of(node, op::transpose, op::slice, op::pad, op::concat, op::part)) return WorkClass::kCopy;
  return reduces(node) ? WorkClass::kNormalisation : WorkClass::kElementwise;
}

}  // namespace tokamak
