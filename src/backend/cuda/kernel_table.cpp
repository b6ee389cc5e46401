// The table of kernels: what makes the kernel of an op, what scratch memory it takes, and what of it is compiled ahead.
#include "backend/kernel_table.h"

#include "backend/cuda/kernels.h"
#include "ops/adamw.h"
#include "ops/adamw8bit.h"
#include "ops/attention.h"
#include "ops/attention_decode.h"
#include "ops/classifier.h"
#include "ops/context_attention.h"
#include "ops/embedding.h"
#include "ops/float8_scales.h"
#include "ops/float8_weights.h"
#include "ops/group.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/multi_add.h"
#include "ops/multi_cast.h"
#include "ops/packed_gate.h"
#include "ops/packed_rotary.h"
#include "ops/reduce.h"
#include "ops/rotary.h"
#include "ops/sample_token.h"

namespace tokamak::cuda {
namespace {

using Maker = KernelPtr (*)(Context&, const Graph&, const Node&);
using Scratch = int64_t (*)(const DeviceInfo&, const Graph&, const Node&);
using Has = bool (*)(const DeviceInfo&, const Graph&, const Node&);
using Ahead = void (*)(Context&, const Graph&, const Node&);

struct Row {
  const OpDef* op;
  Maker make;
  Scratch scratch = nullptr;  // null: none
  Ahead ahead = nullptr;      // null: nothing
  Has has = nullptr;          // whether there is a kernel for a node of the op; null: for each
};

// Where the kernel is only device code, which is compiled in the background from the moment that it is made.
void by_making(Context& context, const Graph& graph, const Node& node) { make_kernel(context, graph, node); }

constexpr Row kKernels[] = {
    {&op::adamw8bit, make_adamw8bit_kernel, nullptr, by_making},
    {&op::attention, make_attention_kernel, nullptr, compile_attention_ahead, has_attention},
    {&op::attention_decode, make_attention_decode_kernel, attention_decode_scratch, by_making},
    {&op::attention_grad, make_attention_grad_kernel, attention_grad_scratch, compile_attention_ahead, has_attention},
    {&op::classifier, make_classifier_kernel, classifier_scratch, compile_classifier_ahead},
    {&op::column, make_group_kernel, group_scratch, by_making},
    {&op::concat, make_concat_kernel, nullptr, by_making},
    {&op::context_attention, make_attention_kernel, nullptr, compile_attention_ahead, has_context_attention},
    {&op::context_attention_grad, make_attention_grad_kernel, attention_grad_scratch, compile_attention_ahead,
     has_context_attention},
    {&op::embedding, make_embedding_kernel, nullptr, by_making},
    {&op::embedding_grad, make_embedding_grad_kernel, embedding_grad_scratch, by_making},
    {&op::flat, make_group_kernel, nullptr, by_making},
    {&op::float8_scales, make_float8_scales_kernel, nullptr, compile_float8_scales_ahead},
    {&op::float8_weights, make_float8_weights_kernel, float8_weights_scratch, compile_float8_weights_ahead,
     has_float8_weights},
    {&op::fused_matmul, make_matmul_kernel, matmul_scratch, compile_matmul_ahead, has_matmul},
    {&op::matmul, make_matmul_kernel, matmul_scratch, compile_matmul_ahead, has_matmul},
    {&op::multi_add, make_multi_add_kernel, nullptr, compile_multi_add_ahead},
    {&op::multi_adamw, make_multi_adamw_kernel, nullptr, compile_multi_adamw_ahead},
    {&op::multi_cast, make_multi_cast_kernel, nullptr, compile_multi_cast_ahead},
    {&op::packed_gate, make_packed_gate_kernel, nullptr, by_making},
    {&op::packed_gate_grad, make_packed_gate_kernel, nullptr, by_making},
    {&op::packed_rotary, make_rotary_kernel, nullptr, by_making},
    {&op::packed_rotary_grad, make_rotary_kernel, nullptr, by_making},
    {&op::pad, make_pad_kernel, nullptr, by_making},
    {&op::rotary_qkv, make_rotary_kernel, nullptr, by_making},
    {&op::rotary_qkv_grad, make_rotary_kernel, nullptr, by_making},
    {&op::row, make_group_kernel, group_scratch, by_making},
    {&op::sample_token, make_sample_token_kernel, nullptr, by_making, has_sample_token},
    {&op::slice, make_slice_kernel, nullptr, by_making},
    {&op::sum_squares, make_sum_squares_kernel, sum_squares_scratch, compile_sum_squares_ahead},
    {&op::transpose, make_transpose_kernel, nullptr, by_making},
    {nullptr, make_reference_kernel, nullptr, nullptr,
     [](const DeviceInfo&, const Graph&, const Node&) { return false; }},
};

const Row& find_row(const Node& node) { return find_kernel_row(std::span<const Row>(kKernels), node); }

}  // namespace

KernelPtr make_kernel(Context& context, const Graph& graph, const Node& node) {
  return find_row(node).make(context, graph, node);
}

void compile_ahead(Context& context, const Graph& graph, const Node& node) {
  if (Ahead ahead = find_row(node).ahead) ahead(context, graph, node);
}

bool has_kernel(const DeviceInfo& info, const Graph& graph, const Node& node) {
  Has has = find_row(node).has;
  return !has || has(info, graph, node);
}

int64_t scratch_bytes(const DeviceInfo& info, const Graph& graph, const Node& node) {
  Scratch scratch = find_row(node).scratch;
  return scratch ? scratch(info, graph, node) : 0;
}

}  // namespace tokamak::cuda
