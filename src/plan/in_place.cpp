#include "plan/in_place.h"

#include "graph/op_def.h"
#include "ops/group.h"
#include "ops/group_body.h"
#include "ops/matmul_form.h"

#include <algorithm>

namespace tokamak {
namespace {

// Pointwise ops that read an element only to write the one at the same position (random_uniform, say, does not).
bool is_elementwise(const OpDef& op) { return op.fusion == Fusion::kPointwise && op.in_place; }

// A flat group is one loop over elements: an input's element i is read before the output's element i is written, if
// only elementwise ops read the input, and none after the output is made (a tile may be written at once). Of the type
// of an output it is as large as the matrix, so the loop does not come by it again.
// Row and column groups read rows again in later phases, after outputs of earlier ones were written.
bool reads_before_writing(const GroupBody& group, int output, int input) {
  int written = group.results[size_t(output)].value;
  for (int v = 0; v < int(group.values.size()); ++v) {
    const GroupValue& value = group.values[size_t(v)];
    if (value.outer == input && !value.is_input()) return false;
    for (int operand : value.operands)
      if (group.values[size_t(operand)].outer == input && (v > written || !is_elementwise(*value.op))) return false;
  }
  return !group.values[size_t(written)].is_input();
}

// Every block of a matmul computes the prologue by itself.
bool reads(const std::optional<MatmulPrologue>& prologue, int input) {
  return prologue && std::find(prologue->inputs.begin(), prologue->inputs.end(), input) != prologue->inputs.end();
}

}  // namespace

bool may_overwrite(const Graph& graph, const Node& node, int output, int input) {
  if (graph.type(node.outputs[size_t(output)]) != graph.type(node.inputs[size_t(input)])) return false;
  if (node.op == &op::flat) return reads_before_writing(read_group(node), output, input);
  if (node.op == &op::fused_matmul) {  // reads an element of the addend where it writes the sum
    MatmulForm form = read_matmul(graph, node);
    return output == form.y && form.addend == input && form.a != input && form.b != input &&
           !reads(form.prologue, input);
  }
  if (is_elementwise(*node.op)) return true;  // of any operand, not only the one that in_place names
  return node.op->in_place && node.op->in_place(node, output) == input;
}

}  // namespace tokamak
