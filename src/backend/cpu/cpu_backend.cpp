#include "backend/cpu/cpu_backend.h"

#include "backend/cpu/kernels.h"
#include "base/error.h"
#include "graph/op_def.h"
#include "ops/ops.h"

#include <cstring>
#include <new>

namespace tokamak::cpu {
namespace {

using Maker = std::unique_ptr<Kernel> (*)(const Graph&, const Node&);

struct Row {
  const OpDef* op;
  Maker make;
};

constexpr Row kKernels[] = {
    {&op::attention, make_attention_kernel},
    {&op::attention_decode, make_attention_decode_kernel},
    {&op::attention_grad, make_attention_grad_kernel},
    {&op::concat, make_concat_kernel},
    {&op::embedding, make_embedding_kernel},
    {&op::embedding_grad, make_embedding_grad_kernel},
    {&op::group, make_any_group_kernel},
    {&op::matmul, make_matmul_kernel},
    {&op::multi_adamw, make_multi_adamw_kernel},
    {&op::pad, make_pad_kernel},
    {&op::slice, make_slice_kernel},
    {&op::sum_squares, make_sum_squares_kernel},
    {&op::transpose, make_transpose_kernel},
};

// Pages are touched at once, so that what is planned is what is taken.
class HostMemory : public Memory {
 public:
  explicit HostMemory(int64_t bytes) : data_(::operator new(size_t(bytes > 0 ? bytes : 1), kAlign)) {
    std::memset(data_, 0, size_t(bytes));
  }
  ~HostMemory() override { ::operator delete(data_, kAlign); }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  void* data() override { return data_; }

 private:
  static constexpr std::align_val_t kAlign{64};
  void* data_;
};

class CpuBackend : public Backend {
 public:
  std::unique_ptr<Memory> allocate(int64_t bytes) override { return std::make_unique<HostMemory>(bytes); }

  std::unique_ptr<Kernel> compile(const Graph& graph, const Node& node) override {
    for (const Row& row : kKernels)
      if (row.op == node.op) return row.make(graph, node);
    return make_reference_kernel(graph, node);
  }

  void copy_in(void* to, const void* from, int64_t bytes) override { copy(to, from, bytes); }
  void copy_out(void* to, const void* from, int64_t bytes) override { copy(to, from, bytes); }
  void copy(void* to, const void* from, int64_t bytes) override {
    if (to != from) std::memcpy(to, from, size_t(bytes));
  }
};

}  // namespace

std::unique_ptr<Backend> make_backend() { return std::make_unique<CpuBackend>(); }

}  // namespace tokamak::cpu
