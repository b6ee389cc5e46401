#include "ops/row_block.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/group.h"
#include "ops/interpret.h"
#include "ops/matmul.h"

#include <algorithm>

namespace tokamak {
namespace {

constexpr AttrDef kAttrs[] = {{"alone", false}, {"size"}, {"step"}};

int64_t size_of(const Attrs& attrs) { return attrs.get_int("size"); }
int64_t step_of(const Attrs& attrs) { return attrs.get_int("step"); }

bool is_alone(const Attrs& attrs) { return attrs.find("alone") && attrs.get_bool("alone"); }
bool goes_on(const Attrs& attrs) { return step_of(attrs) > 0 && !is_alone(attrs); }

ValueType with_all_rows(ValueType type, int64_t size) {
  if (type.shape.empty()) user_error("[row_block] expected a product of rows, got one of {}", to_string(type));
  type.shape[0] *= size;
  return type;
}

void check_inputs(const NodeSpec& spec) {
  const auto& arguments = spec.body->arguments();
  int64_t size = size_of(spec.attrs), step = step_of(spec.attrs);
  if (size < 2 || step < 0 || step >= size)
    user_error("[row_block] expected a step of at least two blocks, got step {} of {}", step, size);
  size_t before = goes_on(spec.attrs) ? spec.body->results().size() : 0, expected = arguments.size() + 1 + before;
  if (spec.inputs.size() != expected)
    user_error("[row_block] expected {} inputs, got {}", expected, spec.inputs.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ValueType &whole = spec.inputs[i], &block = spec.body->type(arguments[i].value);
    if (whole != block && whole != with_all_rows(block, size))
      user_error("[row_block] expected input {} as {} or with {} times its rows, got {}", i, to_string(block), size,
                 to_string(whole));
  }
  const ValueType& coordinate = spec.inputs[arguments.size()];
  if (coordinate != ValueType{DType::kI32, {}})
    user_error("[row_block] expected a coordinate i32[], got {}", to_string(coordinate));
}

ValueTypes infer(const NodeSpec& spec) {
  TOKAMAK_CHECK(spec.body, "a block of rows needs a body");
  check_inputs(spec);
  ValueTypes types;
  for (const Result& result : spec.body->results())
    types.push_back(with_all_rows(spec.body->type(result.value), is_alone(spec.attrs) ? 1 : size_of(spec.attrs)));
  for (size_t i = 0, at = spec.body->arguments().size() + 1; at + i < spec.inputs.size(); ++i)
    if (spec.inputs[at + i] != types[i])
      user_error("[row_block] expected the step before to have given {}, got {}", to_string(types[i]),
                 to_string(spec.inputs[at + i]));
  return types;
}

// Rows of later steps are zeros here.
void reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  const Graph& body = *node.body;
  size_t operands = body.arguments().size();
  auto coordinate = int64_t((*in[operands])[0]);
  if (coordinate < 0 || coordinate >= size_of(node.attrs))
    user_error("[row_block] expected a coordinate below {}, got {}", size_of(node.attrs), coordinate);
  int64_t block = (coordinate + step_of(node.attrs)) % size_of(node.attrs);
  std::vector<HostTensor> arguments;
  for (size_t i = 0; i < operands; ++i) {
    HostTensor argument(body.type(body.arguments()[i].value));
    int64_t begin = in[i]->size() == argument.size() ? 0 : block * argument.size();
    std::copy_n(in[i]->data.begin() + begin, argument.size(), argument.data.begin());
    arguments.push_back(std::move(argument));
  }
  Interpretation made = interpret(body, arguments);
  for (size_t i = 0; i < out.size(); ++i) {
    if (goes_on(node.attrs)) out[i].data = in[operands + 1 + i]->data;
    int64_t begin = is_alone(node.attrs) ? 0 : block * made.results[i].size();
    std::ranges::copy(made.results[i].data, out[i].data.begin() + begin);
  }
}

Cost cost(const NodeSpec& spec, std::span<const ValueType>) { return node_cost(*spec.body, spec.body->nodes()[0]); }

int in_place(const Node& node, int output) {
  return goes_on(node.attrs) ? int(node.body->arguments().size()) + 1 + output : -1;
}

void check_body(const Node& node) {
  const std::vector<Node>& nodes = node.body->nodes();
  bool is_product = nodes.size() == 1 && (nodes[0].op == &op::matmul || nodes[0].op == &op::fused_matmul);
  TOKAMAK_CHECK(is_product, "a block of rows is of one product");
}

}  // namespace

namespace op {
constinit const OpDef row_block = {.name = "row_block",
                                   .min_inputs = 3,
                                   .max_inputs = -1,
                                   .attrs = kAttrs,
                                   .infer = infer,
                                   .no_gradient = "blocks of rows are made after differentiation",
                                   .reference = reference,
                                   .cost = cost,
                                   .autocast = Autocast::kFull,
                                   .in_place = in_place,
                                   .check_body = check_body};
}  // namespace op

KernelNode kernel_node(const Graph& graph, const Node& node) {
  if (node.op != &op::row_block) return {graph, node};
  return {*node.body, node.body->nodes()[0]};
}

BlockOffsets block_offsets(const Graph& graph, const Node& node, int64_t coordinate) {
  const Graph& body = *node.body;
  int64_t block = (coordinate + step_of(node.attrs)) % size_of(node.attrs);
  auto offset = [&](ValueId whole, ValueId part) {
    return graph.type(whole) == body.type(part) ? 0 : block * num_bytes(body.type(part));
  };
  BlockOffsets offsets;
  for (size_t i = 0; i < body.arguments().size(); ++i)
    offsets.inputs.push_back(offset(node.inputs[i], body.arguments()[i].value));
  for (size_t i = 0; i < body.results().size(); ++i)
    offsets.outputs.push_back(offset(node.outputs[i], body.results()[i].value));
  return offsets;
}

ValueIds row_block(GraphBuilder& g, std::shared_ptr<const Graph> body, ValueIds operands, ValueId coordinate,
                   int64_t size, int64_t step, const ValueIds& before) {
  operands.push_back(coordinate);
  operands.insert(operands.end(), before.begin(), before.end());
  return g.add(op::row_block, std::move(operands), {{"size", size}, {"step", step}}, std::move(body));
}

ValueIds row_block_alone(GraphBuilder& g, std::shared_ptr<const Graph> body, ValueIds operands, ValueId coordinate,
                         int64_t size, int64_t step) {
  operands.push_back(coordinate);
  return g.add(op::row_block, std::move(operands), {{"alone", true}, {"size", size}, {"step", step}}, std::move(body));
}

}  // namespace tokamak
