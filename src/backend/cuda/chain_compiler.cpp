#include "backend/cuda/chain_compiler.h"

#include "backend/cuda/blocked_attention.h"
#include "backend/cuda/thin_matmul.h"
#include "ops/attention_decode.h"
#include "ops/group.h"
#include "ops/matmul.h"

namespace tokamak::cuda {
namespace {

bool is_matmul(const Node& node) { return node.op == &op::matmul || node.op == &op::fused_matmul; }

class CudaChainCompiler : public ChainCompiler {
 public:
  explicit CudaChainCompiler(Context& context) : context_(context) {}

  bool can_chain(const Graph& graph, const Node& node) const override { return cuda::can_chain(graph, node); }

  std::unique_ptr<Kernel> compile_link(const Graph& graph, const Node& node, const ChainLink& link) override {
    if (!is_matmul(node)) return make_decode_link(context_, graph, node, link);
    MatmulNode matmul = matmul_node(graph, node);
    return make_thin_matmul(context_, matmul, {.early = reads_weights_early(graph, node, matmul.form), .link = &link});
  }

 private:
  Context& context_;
};

}  // namespace

bool can_chain(const Graph& graph, const Node& node) {
  if (is_matmul(node)) return thin_can_chain(graph, node, matmul_node(graph, node));
  return node.op == &op::attention_decode && decode_can_chain(graph, node);
}

std::unique_ptr<ChainCompiler> make_chain_compiler(Context& context) {
  return std::make_unique<CudaChainCompiler>(context);
}

}  // namespace tokamak::cuda
