#include "plan/in_place.h"

#include "plan/storage.h"  // find_roots

namespace tokamak {
namespace {

// Pointwise ops that read an element only to write the one at the same position (random_uniform, say, does not).
bool is_elementwise(const OpDef& op) { return op.fusion == Fusion::kPointwise && op.in_place; }

// A flat group is one loop over elements: an input's element i is read before the output's element i is written, if
//  - only elementwise ops read the input, and none after the output is made (a tile may be written at once),
//  - nothing in the body is larger than the input (else the loop would come by it again).
// Row, column and matmul groups read rows again in later phases, after outputs of earlier ones were written.
bool reads_before_writing(const Graph& body, ValueId output, ValueId input) {
  int64_t size = num_elements(body.shape(input));
  std::vector<ValueId> roots = find_roots(body);
  int written = body.producer(roots[size_t(output)]);
  for (int n = 0; n < int(body.nodes().size()); ++n) {
    const Node& node = body.nodes()[size_t(n)];
    for (ValueId made : node.outputs)
      if (num_elements(body.shape(made)) > size) return false;
    if (node.op->fusion == Fusion::kView) continue;
    for (ValueId read : node.inputs)
      if (roots[size_t(read)] == input && (n > written || !is_elementwise(*node.op))) return false;
  }
  return written >= 0;
}

bool is_flat_group(const Node& node) { return node.body && node.attrs.get_string("kind") == "flat"; }

}  // namespace

bool may_overwrite(const Graph& graph, const Node& node, int output, int input) {
  if (graph.type(node.outputs[size_t(output)]) != graph.type(node.inputs[size_t(input)])) return false;
  if (is_flat_group(node))
    return reads_before_writing(*node.body, node.body->results()[size_t(output)].value,
                                node.body->arguments()[size_t(input)].value);
  if (is_elementwise(*node.op)) return true;  // of any operand, not only the one that in_place names
  return node.op->in_place && node.op->in_place(node, output) == input;
}

}  // namespace tokamak
