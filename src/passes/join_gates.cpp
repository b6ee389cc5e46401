#include "passes/join_gates.h"

#include "ops/packed_gate.h"
#include "ops/pointwise.h"
#include "passes/join_products.h"

#include <algorithm>

namespace tokamak {
namespace {

// One unit, silu(gate) * up, as nodes; those of its gradients are -1 in a graph without a backward pass.
struct Gate {
  ValueId gate = kNoValue, up = kNoValue;
  int silu = -1, unit = -1;
  int up_times_dy = -1, dgate = -1, dup = -1;
  ValueId dy = kNoValue;

  bool has_gradients() const { return dgate >= 0; }
};

class GateFinder {
 public:
  GateFinder(const Graph& graph, const JoinableProducts& products) : graph_(graph), products_(products) {}

  // The unit that node `n` completes.
  std::optional<Gate> find(int n) const {
    Gate gate;
    if (!find_unit(n, gate)) return {};
    return gate;
  }

 private:
  const Node& node(int n) const { return graph_.nodes()[size_t(n)]; }
  std::span<const int> readers(ValueId value) const { return products_.readers(value); }

  bool find_unit(int n, Gate& gate) const {
    if (node(n).op != &op::mul) return false;
    for (size_t i : {0, 1}) {
      int maker = graph_.producer(node(n).inputs[i]);
      if (maker < 0 || node(maker).op != &op::silu) continue;
      gate = {.gate = node(maker).inputs[0], .up = node(n).inputs[1 - i], .silu = maker, .unit = n};
      if (has_types(gate) && find_readers(gate)) return true;
    }
    return false;
  }

  bool has_types(const Gate& gate) const {
    const ValueType& type = graph_.type(node(gate.unit).outputs[0]);
    return graph_.type(gate.gate) == type && graph_.type(gate.up) == type;
  }

  // The one reader of `value` besides `known`; -1: none. False where there are others.
  bool find_other(ValueId value, int known, int& other) const {
    std::span<const int> all = readers(value);
    if (all.empty() || all.size() > 2 || std::ranges::count(all, known) != 1) return false;
    if (all.size() == 2) other = all[0] == known ? all[1] : all[0];
    return true;
  }

  // Nothing but the unit and its gradients reads gate, up and silu(gate).
  bool find_readers(Gate& gate) const {
    bool alone = find_other(gate.gate, gate.silu, gate.dgate) && find_other(gate.up, gate.unit, gate.up_times_dy) &&
                 find_other(node(gate.silu).outputs[0], gate.unit, gate.dup);
    if (!alone) return false;
    if (gate.dgate < 0 && gate.up_times_dy < 0 && gate.dup < 0) return true;
    return gate.dgate >= 0 && gate.up_times_dy >= 0 && gate.dup >= 0 && are_gradients(gate);
  }

  bool are_gradients(Gate& gate) const {
    const Node &dgate = node(gate.dgate), &up_times_dy = node(gate.up_times_dy), &dup = node(gate.dup);
    if (dgate.op != &op::silu_grad || up_times_dy.op != &op::mul || dup.op != &op::mul) return false;
    if (dgate.inputs[0] != gate.gate || dgate.inputs[1] != up_times_dy.outputs[0]) return false;
    if (readers(up_times_dy.outputs[0]).size() != 1) return false;
    gate.dy = other_operand(up_times_dy, gate.up);
    return gate.dy == other_operand(dup, node(gate.silu).outputs[0]) && graph_.type(gate.dy) == graph_.type(gate.gate);
  }
  static ValueId other_operand(const Node& node, ValueId known) {
    return node.inputs[0] == known ? node.inputs[1] : node.inputs[0];
  }

  const Graph& graph_;
  const JoinableProducts& products_;
};

class GateJoiner : public ProductJoiner {
 public:
  GateJoiner(const Graph& graph, const PassContext& context)
      : ProductJoiner(graph, context), kernels_(*context.kernels), finder_(graph, products()) {}

 private:
  void find(int n) override {
    std::optional<Gate> gate = finder_.find(n);
    if (!gate) return;
    std::optional<ForwardProducts> forward = products().forward({gate->gate, gate->up});
    std::optional<GradientProducts> gradients;
    if (gate->has_gradients())
      gradients = products().gradients({node(gate->dgate).outputs[0], node(gate->dup).outputs[0]});
    if (!forward || (gate->has_gradients() && !gradients) || !has_kernels(*gate)) return;
    take(*forward, n);
    if (gradients) take(*gradients, n);
    take(*gate);
  }

  // The gradients are made where the first node of theirs stands: what they read is there.
  void take(const Gate& gate) {
    replaced_.insert(gate.silu);
    if (gate.has_gradients()) {
      std::set<int> nodes{gate.up_times_dy, gate.dgate, gate.dup};
      gradients_[*nodes.begin()] = gate;
      replaced_.insert(std::next(nodes.begin()), nodes.end());
    }
  }
  using ProductJoiner::take;

  // Asked of the nodes that would be made.
  bool has_kernels(const Gate& gate) const {
    Graph made;
    GraphBuilder g(made);
    ValueType type = graph().type(gate.gate);
    ValueId dy = g.input("dy", type);
    type.shape.back() *= 2;
    ValueId packed = g.input("packed", type);
    packed_gate(g, packed);
    if (gate.has_gradients()) packed_gate_grad(g, dy, packed);
    return std::ranges::all_of(made.nodes(), [&](const Node& node) { return kernels_.has_kernel(made, node); });
  }

  bool replace(int n) override {
    if (replaced_.contains(n)) return true;
    if (has_forward(n)) {
      packed_[n] = product(n);
      rewriter().replace(node(n).outputs[0], packed_gate(rewriter().in_place_of(node(n)), packed_.at(n)));
      return true;
    }
    auto found = gradients_.find(n);
    if (found == gradients_.end()) return false;
    const Gate& gate = found->second;
    ValueId dy = rewriter().map(gate.dy);
    set_gradient(gate.unit, packed_gate_grad(rewriter().in_place_of(node(n)), dy, packed_.at(gate.unit)));
    return true;
  }

  const KernelSet& kernels_;
  GateFinder finder_;
  std::map<int, Gate> gradients_;  // by the first node of their gradients
  std::set<int> replaced_;         // other nodes of units
  std::map<int, ValueId> packed_;  // by unit, in the new graph
};

}  // namespace

bool join_gates(Graph& graph, const PassContext& context) { return GateJoiner(graph, context).run(graph); }

}  // namespace tokamak
