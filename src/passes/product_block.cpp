#include "passes/product_block.h"

#include "cost/price.h"
#include "graph/mesh.h"
#include "ops/group.h"
#include "ops/matmul.h"
#include "ops/movement.h"

namespace tokamak {
namespace {

constexpr int64_t kLeastRows = 128;     // of a block
constexpr double kLeastLaunches = 5;    // that a block takes
constexpr int64_t kAlignedBytes = 256;  // at which every block begins, as kernels expect of tensors

bool is_divisible(const ValueType& whole, int64_t size) {
  return !whole.shape.empty() && whole.shape[0] % size == 0 && num_bytes(whole) / size % kAlignedBytes == 0;
}

ValueType one_of(ValueType type, int64_t size) {
  type.shape[0] /= size;
  return type;
}

bool has_rows(const MatmulForm& form, int input) {
  return input == form.a || input == form.operand || input == form.addend;
}

}  // namespace

std::shared_ptr<const Graph> product_block(const Graph& graph, const Node& product, int64_t size,
                                           const Target& target) {
  if (product.op != &op::matmul && product.op != &op::fused_matmul) return nullptr;
  MatmulForm form = read_matmul(graph, product);
  if (form.batch != 1 || form.trans_a || form.a < 0 || form.sums >= 0 || form.prologue) return nullptr;
  if (form.m / size < kLeastRows) return nullptr;
  if (price(graph, product, target).seconds < kLeastLaunches * target.launch_seconds * double(size)) return nullptr;
  auto block = std::make_shared<Graph>("block");
  GraphBuilder g(*block);
  ValueTypes types;
  ValueIds inputs;
  for (size_t i = 0; i < product.inputs.size(); ++i) {
    const ValueType& whole = graph.type(product.inputs[i]);
    bool divides = has_rows(form, int(i));
    if (divides && !is_divisible(whole, size)) return nullptr;
    types.push_back(divides ? one_of(whole, size) : whole);
    inputs.push_back(g.input("a" + std::to_string(i), types.back()));
  }
  ValueIds made = g.add(*product.op, inputs, product.attrs, product.body ? make_body(form, types) : nullptr);
  for (size_t i = 0; i < made.size(); ++i) {
    const ValueType& whole = graph.type(product.outputs[i]);
    if (!is_divisible(whole, size) || g.type(made[i]) != one_of(whole, size)) return nullptr;
    block->add_result("r" + std::to_string(i), made[i]);
  }
  return block;
}

ValueId rank_coordinate(GraphBuilder& g, const std::string& axis) {
  std::string name = coordinate_input(axis);
  ValueId known = g.graph().find_argument(name);
  return known != kNoValue ? known : g.input(std::move(name), {DType::kI32, {}});
}

ValueId behind_reshapes(const Graph& graph, ValueId value) {
  for (int maker = graph.producer(value); maker >= 0; maker = graph.producer(value)) {
    const Node& node = graph.nodes()[size_t(maker)];
    if (node.op != &op::reshape) break;
    value = node.inputs[0];
  }
  return value;
}

}  // namespace tokamak
