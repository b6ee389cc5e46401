// Nodes of attention, over all of a sequence or over a rank's rows, their gradients, and attention_decode.
#include "backend/cpu/attention.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/simd.h"  // Bf16
#include "backend/cpu/tiled_attention.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/random.h"
#include "graph/op_def.h"
#include "ops/attention_decode.h"
#include "ops/context_attention.h"
#include "ops/generate.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace tokamak::cpu {
namespace {

using Inputs = std::span<const void* const>;
using Outputs = std::span<void* const>;

bool over_context(const Node& node) {
  return node.op == &op::context_attention || node.op == &op::context_attention_grad;
}

AttentionShape shape_of(const Graph& graph, const Node& node) {
  NodeSpec spec = spec_of(graph, node);
  AttentionDims d = node.op == &op::attention_decode ? attention_decode_dims(spec) : attention_dims(spec);
  AttentionShape shape;
  shape.batch = d.B;
  shape.time = d.T;
  shape.heads = d.H;
  shape.head_dim = d.D;
  shape.causal = node.attrs.get_bool("causal", true);
  shape.scale = float(node.attrs.get_double("scale"));
  if (over_context(node)) shape.ranks = zigzag_of(spec).ranks;
  return shape;
}

// The shape of a run: which rank it is comes in as data.
AttentionShape shape_now(AttentionShape shape, const Node& node, Inputs in) {
  if (over_context(node)) shape.coordinate = *static_cast<const int32_t*>(in[2]);
  return shape;
}

// rng: (seed, step), and behind them what ops/element_place.h says.
AttentionDropout dropout_of(const Node& node, const void* rng) {
  AttentionDropout dropout;
  dropout.p = float(node.attrs.get_double("dropout"));
  if (dropout.p == 0) return dropout;
  const auto* words = static_cast<const int32_t*>(rng);
  dropout.key = step_key(words[0], words[1]);
  dropout.random_stream = uint64_t(node.attrs.get_int(kRandomStream));
  dropout.place = ElementPlace(node.attrs, words);
  return dropout;
}

// Of bf16 with products of bf16, where the CPU has units for them.
template <typename T>
const TileUnits* units_for(const AttentionShape& shape) {
  return kDTypeOf<T> == DType::kBF16 && has_tiled_attention(shape) ? tile_units() : nullptr;
}

// Of bf16 for either kind of products: a plan holds for any CPU.
int64_t forward_bytes(const AttentionShape& shape, DType dtype, int threads) {
  size_t bytes = attention_workspace_bytes(shape, threads);
  if (dtype == DType::kBF16) bytes = std::max(bytes, tiled_attention_workspace_bytes(shape, threads));
  return int64_t(bytes);
}
int64_t backward_bytes(const AttentionShape& shape, DType dtype, int threads) {
  size_t bytes = attention_grad_workspace_bytes(shape, threads);
  if (dtype == DType::kBF16) bytes = std::max(bytes, tiled_attention_grad_workspace_bytes(shape, threads));
  return int64_t(bytes);
}

template <typename... Operands>
void run_attention(const TileUnits* units, Operands... operands) {
  if constexpr ((std::is_same_v<Operands, Bf16*> || ...))
    if (units) return tiled_attention(*units, operands...);
  attention(operands...);
}
template <typename... Operands>
void run_attention_grad(const TileUnits* units, Operands... operands) {
  if constexpr ((std::is_same_v<Operands, Bf16*> || ...))
    if (units) return tiled_attention_grad(*units, operands...);
  attention_grad(operands...);
}

const int32_t* documents_of(const void* operand) { return static_cast<const int32_t*>(operand); }

template <typename T>
class AttentionKernel : public Kernel {
 public:
  AttentionKernel(const Graph& graph, const Node& node)
      : node_(node), shape_(shape_of(graph, node)), units_(units_for<T>(shape_)) {}

  int64_t workspace_bytes() const override { return forward_bytes(shape_, kDTypeOf<T>, num_threads()); }
  void use_workspace(void* memory) override { workspace_ = memory; }

  void run(Inputs in, Outputs out) override {
    AttentionOperands at = attention_operands(node_);
    run_attention(units_, shape_now(shape_, node_, in), dropout_of(node_, operand(in, at.rng)),
                  documents_of(operand(in, at.documents)), static_cast<const T*>(in[0]), static_cast<T*>(out[0]),
                  static_cast<float*>(out[1]), workspace_,
                  over_context(node_) ? static_cast<const T*>(in[1]) : nullptr);
  }

 private:
  Node node_;
  AttentionShape shape_;
  const TileUnits* units_;  // null: products of f32
  void* workspace_ = nullptr;
};

template <typename T>
class AttentionGradKernel : public Kernel {
 public:
  AttentionGradKernel(const Graph& graph, const Node& node)
      : node_(node), shape_(shape_of(graph, node)), units_(units_for<T>(shape_)) {}

  int64_t workspace_bytes() const override { return backward_bytes(shape_, kDTypeOf<T>, num_threads()); }
  void use_workspace(void* memory) override { workspace_ = memory; }

  void run(Inputs in, Outputs out) override {
    AttentionOperands at = attention_operands(node_);
    bool gathered = over_context(node_);
    Inputs from = in.subspan(gathered ? 3 : 1);  // out, lse, dout
    run_attention_grad(units_, shape_now(shape_, node_, in), dropout_of(node_, operand(in, at.rng)),
                       documents_of(operand(in, at.documents)), static_cast<const T*>(in[0]),
                       static_cast<const T*>(from[0]), static_cast<const float*>(from[1]),
                       static_cast<const T*>(from[2]), static_cast<T*>(out[0]), workspace_,
                       gathered ? static_cast<const T*>(in[1]) : nullptr, gathered ? static_cast<T*>(out[1]) : nullptr);
  }

 private:
  Node node_;
  AttentionShape shape_;
  const TileUnits* units_;  // null: products of f32
  void* workspace_ = nullptr;
};

template <typename T>
class AttentionDecodeKernel : public Kernel {
 public:
  AttentionDecodeKernel(const Graph& graph, const Node& node)
      : shape_(shape_of(graph, node)), capacity_(graph.shape(node.inputs[1])[1]),
        window_(attention_decode_window(node.attrs)), cache_bytes_(size_t(num_bytes(graph.type(node.inputs[1])))) {}

  void run(Inputs in, Outputs out) override {
    if (out[1] != in[1]) std::memcpy(out[1], in[1], cache_bytes_);
    attention_decode(shape_, static_cast<const int32_t*>(in[2]), capacity_, static_cast<const T*>(in[0]),
                     static_cast<T*>(out[1]), static_cast<T*>(out[0]), window_);
  }

 private:
  AttentionShape shape_;
  int64_t capacity_, window_;
  size_t cache_bytes_;
};

template <template <typename> typename KernelOf>
std::unique_ptr<Kernel> make(const Graph& graph, const Node& node) {
  DType dtype = graph.dtype(node.inputs[0]);
  if (dtype == DType::kF32) return std::make_unique<KernelOf<float>>(graph, node);
  return std::make_unique<KernelOf<Bf16>>(graph, node);
}

}  // namespace

bool has_attention(const Graph& graph, const Node& node) {
  DType dtype = graph.dtype(node.inputs[0]);
  return (dtype == DType::kF32 || dtype == DType::kBF16) && !node.attrs.get_bool("float8", false);
}
bool has_attention_grad(const Graph& graph, const Node& node) {
  return has_attention(graph, node) && !node.attrs.get_bool("sums", false);
}

bool has_attention_decode(const Graph& graph, const Node& node) {
  return has_attention(graph, node) && graph.dtype(node.inputs[0]) == graph.dtype(node.inputs[1]);
}

std::unique_ptr<Kernel> make_attention_kernel(const Graph& graph, const Node& node) {
  return make<AttentionKernel>(graph, node);
}
std::unique_ptr<Kernel> make_attention_grad_kernel(const Graph& graph, const Node& node) {
  return make<AttentionGradKernel>(graph, node);
}
std::unique_ptr<Kernel> make_attention_decode_kernel(const Graph& graph, const Node& node) {
  return make<AttentionDecodeKernel>(graph, node);
}

int64_t attention_scratch(const Graph& graph, const Node& node, int threads) {
  return forward_bytes(shape_of(graph, node), graph.dtype(node.inputs[0]), threads);
}
int64_t attention_grad_scratch(const Graph& graph, const Node& node, int threads) {
  return backward_bytes(shape_of(graph, node), graph.dtype(node.inputs[0]), threads);
}

}  // namespace tokamak::cpu
