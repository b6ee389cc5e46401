#include "backend/cpu/cpu_backend.h"

#include "backend/cpu/group_kernel.h"
#include "backend/cpu/kernels.h"
#include "backend/kernel_table.h"
#include "backend/reference_kernel.h"
#include "base/error.h"
#include "base/large_pages.h"
#include "base/parallel.h"
#include "base/system.h"
#include "ops/adamw.h"
#include "ops/adamw8bit.h"
#include "ops/attention.h"
#include "ops/attention_decode.h"
#include "ops/context_attention.h"
#include "ops/embedding.h"
#include "ops/float8_scales.h"
#include "ops/float8_weights.h"
#include "ops/group.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/multi_add.h"
#include "ops/multi_cast.h"
#include "ops/packed_rotary.h"
#include "ops/reduce.h"
#include "ops/rotary.h"
#include "ops/sample_token.h"

#include <algorithm>
#include <cstring>

namespace tokamak::cpu {
namespace {

using Maker = std::unique_ptr<Kernel> (*)(const Graph&, const Node&);
using Scratch = int64_t (*)(const Graph&, const Node&, int threads);
using Has = bool (*)(const Graph&, const Node&);

struct Row {
  const OpDef* op;
  Maker make;
  Scratch scratch = nullptr;  // null: none
  Has has = nullptr;          // whether there is a kernel for a node of the op; null: for each
};

constexpr Row kKernels[] = {
    {&op::adamw8bit, make_adamw8bit_kernel},
    {&op::attention, make_attention_kernel, attention_scratch, has_attention},
    {&op::attention_decode, make_attention_decode_kernel, nullptr, has_attention_decode},
    {&op::attention_grad, make_attention_grad_kernel, attention_grad_scratch, has_attention_grad},
    {&op::column, make_group_kernel},
    {&op::concat, make_concat_kernel},
    {&op::context_attention, make_attention_kernel, attention_scratch, has_attention},
    {&op::context_attention_grad, make_attention_grad_kernel, attention_grad_scratch, has_attention_grad},
    {&op::embedding, make_embedding_kernel},
    {&op::embedding_grad, make_embedding_grad_kernel},
    {&op::flat, make_group_kernel},
    {&op::float8_scales, make_float8_scales_kernel},
    {&op::float8_weights, make_float8_weights_kernel},
    {&op::matmul, make_matmul_kernel, matmul_scratch, has_matmul},
    {&op::multi_add, make_multi_add_kernel},
    {&op::multi_adamw, make_multi_adamw_kernel},
    {&op::multi_cast, make_multi_cast_kernel},
    {&op::packed_rotary, make_rotary_kernel, nullptr, has_rotary},
    {&op::packed_rotary_grad, make_rotary_grad_kernel, nullptr, has_rotary},
    {&op::pad, make_pad_kernel},
    {&op::rotary_qkv, make_rotary_kernel, nullptr, has_rotary},
    {&op::rotary_qkv_grad, make_rotary_grad_kernel, nullptr, has_rotary},
    {&op::row, make_group_kernel},
    {&op::sample_token, make_sample_token_kernel, nullptr, has_sample_token},
    {&op::slice, make_slice_kernel},
    {&op::sum_squares, make_sum_squares_kernel},
    {&op::transpose, make_transpose_kernel},
    {nullptr, make_reference_kernel, nullptr, [](const Graph&, const Node&) { return false; }},
};

const Row& find_row(const Node& node) { return find_kernel_row(std::span<const Row>(kKernels), node); }

// All threads touch their part first, as they will in the loops that use it: on a machine with several memory nodes it
// lies near them.
class HostMemory : public Memory {
 public:
  explicit HostMemory(int64_t bytes) : pages_(bytes) {
    if (!pages_.data())
      user_error(
          "[memory] expected {:.1f} MiB, the system has not that much; try a smaller --train.batch (--rows "
          "of `generate`) or --compile.memory_budget_gib",
          double(bytes) / double(1 << 20));
    parallel_for(bytes, 1 << 21, [&](int64_t begin, int64_t end, int) { pages_.touch(begin, end); });
  }
  void* data() override { return pages_.data(); }

 private:
  LargePages pages_;
};

class CpuBackend : public Backend {
 public:
  explicit CpuBackend(int sharers) : sharers_(sharers) {}

  std::unique_ptr<Memory> allocate(int64_t bytes) override { return std::make_unique<HostMemory>(bytes); }

  std::unique_ptr<Kernel> compile(const Graph& graph, const Node& node) override {
    return has_kernel(graph, node) ? find_row(node).make(graph, node) : make_reference_kernel(graph, node);
  }

  void copy_in(void* to, const void* from, int64_t bytes) override { copy(to, from, bytes); }
  void copy_out(void* to, const void* from, int64_t bytes) override { copy(to, from, bytes); }
  void copy(void* to, const void* from, int64_t bytes) override {
    if (bytes > 0 && to != from) std::memcpy(to, from, size_t(bytes));  // of nothing either may be null
  }
  int64_t used_bytes() const override { return resident_bytes(); }
  int64_t free_bytes() const override { return available_memory() / sharers_; }

 private:
  int sharers_;
};

}  // namespace

bool has_kernel(const Graph& graph, const Node& node) {
  Has has = find_row(node).has;
  return !has || has(graph, node);
}

int64_t scratch_bytes(const Graph& graph, const Node& node, int threads) {
  Scratch scratch = find_row(node).scratch;
  return scratch && has_kernel(graph, node) ? scratch(graph, node, threads) : 0;
}

std::unique_ptr<Backend> make_backend(int sharers) { return std::make_unique<CpuBackend>(sharers); }

}  // namespace tokamak::cpu
