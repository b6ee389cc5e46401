// A matrix product of one block of rows: of `size` equal blocks of the operand's rows, each a rank's, this rank does
// the one that is `step` behind its own. So a product of rows that ranks gather begins while they are on their way:
//
//   %x = layer_norm(...)                        %x = layer_norm(...)
//   %g = all_gather(%x)                         %0 = row_block(%x, %w, %rank) {size=2, step=0}
//   %y = matmul(%g, %w)                  ->     %g = all_gather(%x)
//                                               %y = row_block(%g, %w, %rank, %0) {size=2, step=1}
//
// and a product whose sums over ranks are divided among them is sent block by block, the rank's own last:
//
//   %y = matmul(%x, %w)                         %1 = row_block(%x, %w, %rank) {alone=true, size=2, step=1}
//   %z = reduce_scatter(%y)              ->     %r = permute(%1) {step=1}
//                                               %0 = row_block(%x, %w, %rank) {alone=true, size=2, step=0}
//                                               %z = add(%0, %r)
//
// The body is the product of one block, a graph of one node, matmul or fused_matmul. Inputs: those of the body, where
// what has the body's type times `size` along the first dim is read at the block's place; the rank's coordinate, i32[],
// an argument of the graph; and, but for step 0 and `alone`, the outputs of the step before, over which the block's
// rows are written. Outputs: the body's, with `size` times as many rows, of which those of later steps are not yet
// there; those of the block `alone`. Passes make it of a sharded step (passes/async_products.h, async_scatters.h).
// Tests: tests/ops/row_block_test.cpp.
#pragma once

#include "graph/graph.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef row_block;
}  // namespace op

/// A node as kernels, prices and measurements see it: of a row_block the product of one block, else the node itself.
struct KernelNode {
  const Graph& graph;
  const Node& node;
};
KernelNode kernel_node(const Graph& graph, const Node& node);

/// Where a row_block's input or output begins, in bytes, on a rank of this coordinate; 0: it is read whole.
struct BlockOffsets {
  std::vector<int64_t> inputs;  // of the body's
  std::vector<int64_t> outputs;
};
BlockOffsets block_offsets(const Graph& graph, const Node& node, int64_t coordinate);

/// Appends step `step` of the product `body`; `operands` are the body's. `before`: the outputs of the step before.
ValueIds row_block(GraphBuilder& g, std::shared_ptr<const Graph> body, ValueIds operands, ValueId coordinate,
                   int64_t size, int64_t step, const ValueIds& before);
/// The rows of that block alone.
ValueIds row_block_alone(GraphBuilder& g, std::shared_ptr<const Graph> body, ValueIds operands, ValueId coordinate,
                         int64_t size, int64_t step);

}  // namespace tokamak
