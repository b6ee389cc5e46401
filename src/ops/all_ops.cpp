#include "ops/all_ops.h"

#include "ops/adamw.h"
#include "ops/attention.h"
#include "ops/classifier.h"
#include "ops/cross_entropy.h"
#include "ops/dropout.h"
#include "ops/embedding.h"
#include "ops/generate.h"
#include "ops/group.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/multi_cast.h"
#include "ops/norm.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"

namespace tokamak {

std::span<const OpDef* const> all_ops() {
  static constexpr const OpDef* kOps[] = {
      &op::adamw,
      &op::add,
      &op::attention,
      &op::attention_decode,
      &op::attention_grad,
      &op::cast,
      &op::classifier,
      &op::concat,
      &op::constant,
      &op::cross_entropy,
      &op::cross_entropy_grad,
      &op::div,
      &op::dropout,
      &op::embedding,
      &op::embedding_grad,
      &op::equal,
      &op::exp,
      &op::gelu,
      &op::gelu_grad,
      &op::group,
      &op::iota,
      &op::layer_norm,
      &op::layer_norm_grad,
      &op::layer_norm_grad_params,
      &op::less,
      &op::log,
      &op::matmul,
      &op::maximum,
      &op::minimum,
      &op::mul,
      &op::multi_adamw,
      &op::multi_cast,
      &op::neg,
      &op::pad,
      &op::pow,
      &op::random_uniform,
      &op::reduce_max,
      &op::reduce_sum,
      &op::reshape,
      &op::rsqrt,
      &op::select,
      &op::slice,
      &op::softmax,
      &op::softmax_grad,
      &op::sqrt,
      &op::sub,
      &op::sum_squares,
      &op::tanh,
      &op::transpose,
  };
  return kOps;
}

const OpDef* find_op(std::string_view name) {
  for (const OpDef* op : all_ops())
    if (op->name == name) return op;
  return nullptr;
}

}  // namespace tokamak
