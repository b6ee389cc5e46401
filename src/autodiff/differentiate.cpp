#include "autodiff/differentiate.h"

#include "base/error.h"
#include "graph/builder.h"
#include "ops/generate.h"
#include "ops/pointwise.h"

#include <map>

namespace tokamak {
namespace {

// Which values depend on one of `wrt`.
std::vector<bool> find_dependent(const Graph& graph, std::span<const ValueId> wrt) {
  std::vector<bool> dependent(size_t(graph.num_values()), false);
  for (ValueId value : wrt) dependent[size_t(value)] = true;
  for (const Node& node : graph.nodes()) {
    bool any = false;
    for (ValueId input : node.inputs) any |= dependent[size_t(input)];
    for (ValueId output : node.outputs) dependent[size_t(output)] = any && is_float(graph.dtype(output));
  }
  return dependent;
}

class Differentiator {
 public:
  // `by_use`: gradients of arguments are not added.
  Differentiator(GraphBuilder& builder, std::span<const ValueId> wrt, bool by_use = false)
      : builder_(builder), by_use_(by_use), dependent_(find_dependent(builder.graph(), wrt)),
        grads_(dependent_.size(), kNoValue) {}

  void run(ValueId output, ValueId gradient) {
    TOKAMAK_CHECK(size_t(builder_.graph().num_values()) == grads_.size(), "values were added since the start");
    size_t forward_nodes = builder_.graph().nodes().size();
    add_gradient(output, gradient);
    for (size_t n = forward_nodes; n-- > 0;) visit(Node(builder_.graph().nodes()[n]));  // a copy: visiting appends
  }

  ValueId gradient(ValueId value) const { return grads_[size_t(value)]; }
  const ValueIds& uses(ValueId argument) { return uses_[argument]; }

 private:
  void visit(const Node& node) {
    ValueIds output_grads;
    bool any = false;
    for (ValueId output : node.outputs) {
      output_grads.push_back(grads_[size_t(output)]);
      any |= grads_[size_t(output)] != kNoValue;
    }
    if (!any || !depends(node)) return;
    if (!node.op->gradient)
      user_error("[{}] has no gradient ({}), but the loss depends on a parameter through it", node.op->name,
                 node.op->no_gradient);
    // Rules of ops with one output may take its gradient for granted; so may all others for their first one.
    if (output_grads[0] == kNoValue) output_grads[0] = zeros_like(node.outputs[0]);
    ValueIds input_grads = node.op->gradient(builder_, node, output_grads);
    TOKAMAK_CHECK(input_grads.size() == node.inputs.size(), "[{}] gives {} gradients for {} inputs", node.op->name,
                  input_grads.size(), node.inputs.size());
    for (size_t i = 0; i < input_grads.size(); ++i)
      if (input_grads[i] != kNoValue && dependent_[size_t(node.inputs[i])])
        add_gradient(node.inputs[i], input_grads[i]);
  }

  bool depends(const Node& node) const {
    for (ValueId input : node.inputs)
      if (dependent_[size_t(input)]) return true;
    return false;
  }

  void add_gradient(ValueId value, ValueId gradient) {
    TOKAMAK_CHECK(builder_.shape(gradient) == builder_.shape(value), "a gradient of {} has shape {}",
                  to_string(builder_.shape(value)), to_string(builder_.shape(gradient)));
    if (by_use_ && builder_.graph().argument_of(value)) return uses_[value].push_back(gradient);
    ValueId& sum = grads_[size_t(value)];
    sum = sum == kNoValue ? gradient : add(builder_, sum, gradient);
  }

  ValueId zeros_like(ValueId value) {
    const ValueType type = builder_.type(value);
    return constant(builder_, 0.0, type.shape, type.dtype);
  }

  GraphBuilder& builder_;
  bool by_use_;
  std::vector<bool> dependent_;
  std::vector<ValueId> grads_;  // by forward value
  std::map<ValueId, ValueIds> uses_;
};

void require_scalar(const GraphBuilder& builder, ValueId loss) {
  if (builder.type(loss) != ValueType{DType::kF32, {}})
    user_error("[differentiate] expected a scalar f32 loss, got {}", to_string(builder.type(loss)));
}

}  // namespace

ValueIds differentiate(GraphBuilder& builder, ValueId loss, std::span<const ValueId> wrt) {
  require_scalar(builder, loss);
  PhaseScope backward(builder, Phase::kBackward);
  return differentiate(builder, loss, constant(builder, 1.0), wrt);
}

std::vector<ValueIds> differentiate_by_use(GraphBuilder& builder, ValueId loss, std::span<const ValueId> wrt) {
  require_scalar(builder, loss);
  PhaseScope backward(builder, Phase::kBackward);
  ValueId one = constant(builder, 1.0);  // before the differentiator, which knows the values that are there
  Differentiator differentiator(builder, wrt, true);
  differentiator.run(loss, one);
  std::vector<ValueIds> uses;
  for (ValueId value : wrt) uses.push_back(differentiator.uses(value));
  return uses;
}

ValueIds differentiate(GraphBuilder& builder, ValueId output, ValueId gradient, std::span<const ValueId> wrt) {
  TOKAMAK_CHECK(builder.type(output) == builder.type(gradient), "a gradient {} of {}",
                to_string(builder.type(gradient)), to_string(builder.type(output)));
  PhaseScope backward(builder, Phase::kBackward);
  Differentiator differentiator(builder, wrt);
  differentiator.run(output, gradient);
  ValueIds grads;
  for (ValueId value : wrt) grads.push_back(differentiator.gradient(value));
  return grads;
}

}  // namespace tokamak
