#include "passes/pad_vocab.h"

#include "base/divide.h"
#include "graph/rewriter.h"
#include "ops/argmax.h"
#include "ops/cross_entropy.h"
#include "ops/embedding.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "passes/seed_cuts.h"
#include "passes/step_mesh.h"

#include <algorithm>
#include <numeric>

namespace tokamak {
namespace {

struct VocabFinder {
  const Graph& graph;
  Users users{graph};
  std::vector<bool> escaping = find_escaping(graph);

  const Node& user(ValueId value, size_t i) const { return graph.nodes()[size_t(users[size_t(value)][i])]; }

  // The logits end in one cross_entropy over all their columns, with nothing but reshapes of the rows before it; beside
  // it argmax may look at the same columns.
  bool only_for_loss(ValueId logits, int64_t classes) const {
    const auto& readers = users[size_t(logits)];
    if (escaping[size_t(logits)] || readers.empty() || graph.shape(logits).back() != classes) return false;
    if (const Node& next = user(logits, 0); next.op == &op::reshape && readers.size() == 1)
      return only_for_loss(next.outputs[0], classes);
    int64_t losses = 0;
    for (size_t i = 0; i < readers.size(); ++i) {
      const Node& next = user(logits, i);
      bool is_loss = next.op == &op::cross_entropy;
      losses += is_loss;
      if ((!is_loss && next.op != &op::argmax) || next.attrs.get_int("classes") != classes) return false;
    }
    return losses == 1;
  }

  bool is_looked_up(const Argument& argument) const {
    const auto& readers = users[size_t(argument.value)];
    return argument.spec.role == Role::kEmbedding && !escaping[size_t(argument.value)] &&
           std::all_of(readers.begin(), readers.end(),
                       [&](int n) { return graph.nodes()[size_t(n)].op == &op::embedding; });
  }

  // The matmul that makes logits with this weight, when the weight can be padded; else null.
  const Node* head(const Argument& argument) const {
    ValueId weight = argument.value;
    if (argument.kind != Argument::Kind::kParameter || graph.shape(weight).size() != 2 || escaping[size_t(weight)])
      return nullptr;
    const Node* found = nullptr;
    for (size_t i = 0; i < users[size_t(weight)].size(); ++i) {
      const Node& node = user(weight, i);
      if (node.op == &op::embedding && node.inputs[0] == weight) continue;
      bool classifier = node.op == &op::matmul && node.inputs[1] == weight && node.inputs[0] != weight &&
                        node.attrs.get_bool("trans_b") && only_for_loss(node.outputs[0], graph.shape(weight)[0]);
      if (!classifier || found) return nullptr;
      found = &node;
    }
    return found;
  }
};

}  // namespace

bool pad_vocab(Graph& graph, const PassContext& context) {
  VocabFinder finder{graph};
  std::map<ValueId, ArgumentForm> padded;
  std::vector<bool> is_logits(size_t(graph.num_values()), false);
  for (const Argument& argument : graph.arguments()) {
    const Node* head = finder.head(argument);
    if (!head && !finder.is_looked_up(argument)) continue;
    ValueType type = graph.type(argument.value);
    int64_t multiple = context.mesh.size(kTensorAxis);
    if (head) multiple = std::lcm(multiple, context.target.vocab_multiple);
    if (head) multiple = std::lcm(multiple, rows_multiple(graph, argument, context));
    if (type.shape[0] % multiple == 0) continue;
    type.shape[0] = round_up(type.shape[0], multiple);
    padded[argument.value] = with_type(argument, type);
    if (head) is_logits[size_t(head->outputs[0])] = true;
  }
  if (padded.empty()) return false;
  Rewriter rewriter(graph, padded);
  for (const Node& node : graph.nodes()) {
    if (node.op != &op::reshape || !is_logits[size_t(node.inputs[0])]) {
      rewriter.copy(node);
      continue;
    }
    Node wide = node;
    Shape shape = graph.shape(node.outputs[0]);
    shape.back() = rewriter.graph().shape(rewriter.map(node.inputs[0])).back();
    wide.attrs.set("shape", shape);
    rewriter.copy(wide);
    is_logits[size_t(node.outputs[0])] = true;
  }
  graph = rewriter.finish();
  return true;
}

}  // namespace tokamak
