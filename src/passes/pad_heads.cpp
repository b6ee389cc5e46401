#include "passes/pad_heads.h"

#include "base/divide.h"
#include "graph/rewriter.h"
#include "ops/attention.h"
#include "ops/movement.h"
#include "passes/step_mesh.h"

#include <map>
#include <optional>

namespace tokamak {
namespace {

// With its units padded; nothing where the ranks divide them.
std::optional<ArgumentForm> padded_form(const Graph& graph, const Argument& argument, int64_t ranks) {
  std::optional<int64_t> dim = dim_of_units(argument.spec);
  if (!dim) return std::nullopt;
  const ArgumentSpec& spec = argument.spec;
  ArgumentForm form = with_type(argument, graph.type(argument.value));
  int64_t blocks = *dim + 1 == int64_t(form.type.shape.size()) ? spec.blocks : 1;
  int64_t& size = form.type.shape[size_t(*dim)];
  int64_t units = size / blocks / spec.unit, padded = padded_units(units, spec.unit, ranks);
  if (units == padded) return std::nullopt;
  size = blocks * padded * spec.unit;
  if (spec.role == Role::kCache)
    form.spec.global = form.type.shape;  // no file has it
  else
    form.spec.padding = {.dim = *dim, .parts = blocks};
  return form;
}

// The shape that a reshape to `to` gives where its input has become larger along one dim: what is made of that dim, or
// of several the first, is larger.
Shape reshaped(const Shape& from, const Shape& larger, Shape to) {
  size_t changed = 0, dim = 0;
  while (from[changed] == larger[changed]) ++changed;
  while (dim < changed && to[dim] == from[dim]) ++dim;
  int64_t before = 1;  // elements of what comes before it, as far as both have other dims
  for (size_t d = dim; d < changed; ++d) before *= from[d];
  for (int64_t elements = 1; elements < before; ++dim) elements *= to[dim];
  to[dim] = to[dim] * num_elements(larger) / num_elements(from);
  return to;
}

class HeadPadder {
 public:
  HeadPadder(const Graph& graph, std::map<ValueId, ArgumentForm> padded) : graph_(graph), rewriter_(graph, padded) {}

  Graph run() {
    for (Node node : graph_.nodes()) {
      const Shape &from = graph_.shape(node.inputs.empty() ? node.outputs[0] : node.inputs[0]), &to = now(node, from);
      if (from != to && node.op == &op::attention)
        node.attrs.set("heads", node.attrs.get_int("heads") * to.back() / from.back());
      if (from != to && node.op == &op::reshape)
        node.attrs.set("shape", reshaped(from, to, graph_.shape(node.outputs[0])));
      rewriter_.copy(node);
    }
    return rewriter_.finish();
  }

 private:
  // Of the node's first input in the new graph.
  const Shape& now(const Node& node, const Shape& from) const {
    return node.inputs.empty() ? from : rewriter_.graph().shape(rewriter_.map(node.inputs[0]));
  }

  const Graph& graph_;
  Rewriter rewriter_;
};

}  // namespace

int64_t padded_units(int64_t units, int64_t unit, int64_t ranks) {
  if (units % ranks == 0) return units;
  constexpr int64_t kColumns = 16, kMany = 8 * kColumns;
  return round_up(units, unit == 1 && units / ranks >= kMany ? ranks * kColumns : ranks);
}

bool pad_heads(Graph& graph, const PassContext& context) { return pad_heads(graph, context.mesh.size(kTensorAxis)); }

bool pad_heads(Graph& graph, int64_t ranks) {
  if (ranks == 1) return false;
  std::map<ValueId, ArgumentForm> padded;
  for (const Argument& argument : graph.arguments())
    if (std::optional<ArgumentForm> form = padded_form(graph, argument, ranks))
      padded[argument.value] = *std::move(form);
  if (padded.empty()) return false;
  graph = HeadPadder(graph, std::move(padded)).run();
  return true;
}

}  // namespace tokamak
