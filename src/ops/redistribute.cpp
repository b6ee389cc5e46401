#include "ops/redistribute.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/sharding_rules.h"

#include <sstream>

namespace tokamak {
namespace {

constexpr AttrDef kAttrs[] = {{"axes", false}, {"dim", false}};

ValueTypes infer(const NodeSpec& spec) {
  int64_t rank = int64_t(spec.inputs[0].shape.size()), dim = spec.attrs.get_int("dim", 0);
  if (bool(spec.attrs.find("axes")) != bool(spec.attrs.find("dim")))
    user_error("[redistribute] expected axes with a dim, or neither");
  if (spec.attrs.find("dim") && (dim < 0 || dim >= rank))
    user_error("[redistribute] expected a dim below {}, got {}", rank, dim);
  return {spec.inputs[0]};
}

void reference(const Node&, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  out[0].data = in[0]->data;
}

Cost no_cost(const NodeSpec&, std::span<const ValueType>) { return {}; }

}  // namespace

namespace op {
constinit const OpDef redistribute = {.name = "redistribute",
                                      .attrs = kAttrs,
                                      .infer = infer,
                                      .no_gradient = "an update says where its values should lie",
                                      .reference = reference,
                                      .cost = no_cost,
                                      .fusion = Fusion::kView,
                                      .sharding = {.rule = linear_rule}};
}  // namespace op

ValueId redistribute(GraphBuilder& g, ValueId x, const std::string& axes, int64_t dim) {
  return g.add1(op::redistribute, {x}, {{"axes", axes}, {"dim", dim}});
}
ValueId redistribute(GraphBuilder& g, ValueId x) { return g.add1(op::redistribute, {x}); }

Redistribution redistribution_of(const Node& node) {
  Redistribution asked;
  if (!node.attrs.find("axes")) return asked;
  asked.dim = node.attrs.get_int("dim");
  std::istringstream words(node.attrs.get_string("axes"));
  for (std::string axis; words >> axis;) asked.axes.push_back(axis);
  return asked;
}

}  // namespace tokamak
