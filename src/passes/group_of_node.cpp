#include "passes/group_of_node.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/rewriter.h"
#include "ops/generate.h"
#include "ops/group.h"
#include "ops/movement.h"
#include "ops/pointwise.h"

#include <algorithm>

namespace tokamak {
namespace {

// The node's maths as a graph of its own: argument i is operand i.
Graph raw_body(const Graph& graph, const Node& node, const std::vector<bool>& wanted) {
  Graph raw("raw");
  GraphBuilder builder(raw);
  ValueIds inputs, outputs;
  for (ValueId input : node.inputs) inputs.push_back(builder.input("x", graph.type(input)));
  if (node.op->autocast == Autocast::kFull)
    for (ValueId& input : inputs)
      if (is_float(builder.type(input).dtype)) input = cast(builder, input, DType::kF32);
  if (node.op->fusion == Fusion::kComposite)
    outputs = node.op->decompose(builder, node, inputs);
  else
    outputs = builder.add(*node.op, inputs, node.attrs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!wanted[i]) continue;
    TOKAMAK_CHECK(builder.shape(outputs[i]) == graph.shape(node.outputs[i]), "[{}] decomposes into {}, expected {}",
                  node.op->name, to_string(builder.shape(outputs[i])), to_string(graph.shape(node.outputs[i])));
    raw.add_result(std::to_string(i), cast(builder, outputs[i], graph.dtype(node.outputs[i])));
  }
  return raw;
}

// A shape cut in two: dims before `split` are rows, the others columns.
struct Space {
  const OpDef* kind = nullptr;
  Shape shape;
  size_t split = 0;
};

bool is_reduction(const Node& node) { return node.op->fusion == Fusion::kReduction; }

// Kind and split that the reductions ask for; nothing when they do not agree.
std::optional<Space> space_of_reductions(const Graph& raw) {
  std::optional<Space> space;
  for (const Node& node : raw.nodes()) {
    if (!is_reduction(node)) continue;
    const Shape& shape = raw.shape(node.inputs[0]);
    const auto& dims = node.attrs.get_ints("dims");
    if (dims.empty() || dims.back() - dims.front() + 1 != int64_t(dims.size())) return {};
    Space found{&op::row, shape, size_t(dims.front())};
    if (dims.back() + 1 != int64_t(shape.size())) {
      if (dims.front() != 0) return {};
      found = {&op::column, shape, dims.size()};
    }
    if (space && (space->kind != found.kind || space->shape != found.shape || space->split != found.split)) return {};
    space = found;
  }
  return space;
}

class GroupMaker {
 public:
  GroupMaker(const Graph& raw, const Node& node, Space space) : raw_(raw), node_(node), space_(std::move(space)) {
    group_.kind = space_.kind;
    for (size_t d = 0; d < space_.shape.size(); ++d) (d < space_.split ? group_.rows : group_.cols) *= space_.shape[d];
    index_.assign(size_t(raw.num_values()), -1);
  }

  std::optional<GroupBody> run() {
    for (const Node& node : raw_.nodes())
      if (!convert(node)) return {};
    for (const Result& result : raw_.results())
      if (!add_result(result)) return {};
    group_.prune();
    return std::move(group_);
  }

 private:
  // Sets along_rows and along_cols of a value of this shape, read with numpy broadcasting; false when it varies along
  // only some of the rows' or columns' dims.
  bool place(const Shape& shape, GroupValue& value) const {
    size_t rank = space_.shape.size();
    if (shape.size() > rank) return false;
    for (bool rows : {true, false}) {
      size_t begin = rows ? 0 : space_.split, end = rows ? space_.split : rank;
      bool full = true, single = true;
      for (size_t d = begin; d < end; ++d) {
        int64_t size = d + shape.size() < rank ? 1 : shape[d + shape.size() - rank];
        full &= size == space_.shape[d];
        single &= size == 1;
      }
      if (!full && !single) return false;
      (rows ? value.along_rows : value.along_cols) = !single;
    }
    return true;
  }

  // An operand, with the shape with which it is read.
  int read(ValueId value, const Shape& shape) {
    GroupValue placed;
    if (!place(shape, placed)) return -1;
    if (raw_.producer(value) < 0) {
      placed.dtype = raw_.dtype(value);
      placed.outer = node_.inputs[size_t(value)];
      return group_.add(std::move(placed));
    }
    int index = index_[size_t(value)];
    const GroupValue& known = group_.values[size_t(index)];
    return known.along_rows == placed.along_rows && known.along_cols == placed.along_cols ? index : -1;
  }

  bool convert(const Node& node) {
    ValueId output = node.outputs[0];
    int& index = index_[size_t(output)];
    if (node.op == &op::reshape) {  // only adds or removes dims of size 1, or it would not be placed where it is read
      ValueId from = node.inputs[0];
      index = raw_.producer(from) < 0 ? read(from, raw_.shape(output)) : index_[size_t(from)];
      return index >= 0 && same_but_ones(raw_.shape(from), raw_.shape(output));
    }
    if (node.op->fusion != Fusion::kPointwise && !is_reduction(node)) return false;
    GroupValue made;
    made.op = node.op;
    made.dtype = raw_.dtype(output);
    if (node.op == &op::random_uniform) {
      if (raw_.producer(node.inputs[0]) >= 0) return false;
      made.outer = node_.inputs[size_t(node.inputs[0])];
    } else {
      for (ValueId input : node.inputs) made.operands.push_back(read(input, raw_.shape(input)));
    }
    if (std::count(made.operands.begin(), made.operands.end(), -1) > 0) return false;
    if (is_reduction(node)) {
      if (raw_.shape(node.inputs[0]) != space_.shape) return false;
      made.over_rows = space_.kind == &op::column;
      made.along_rows = space_.kind == &op::row && group_.rows > 1;
      made.along_cols = space_.kind == &op::column && group_.cols > 1;
    } else if (!place(raw_.shape(output), made) || !keep_attrs(node, made)) {
      return false;
    }
    index = group_.add(std::move(made));
    return true;
  }

  static bool same_but_ones(Shape a, Shape b) {
    for (Shape* shape : {&a, &b}) shape->erase(std::remove(shape->begin(), shape->end(), 1), shape->end());
    return a == b;
  }

  bool keep_attrs(const Node& node, GroupValue& made) const {
    for (const auto& [name, attr] : node.attrs)
      if (name != "shape") made.attrs.set(name, attr);
    if (node.op != &op::iota) return true;
    // The index along a dim is an index along rows or columns where it is the innermost of the dims that share them;
    // for each index of those outside it, it begins again.
    const Shape& shape = node.attrs.get_ints("shape");
    size_t dim = size_t(node.attrs.get_int("dim")), offset = space_.shape.size() - shape.size();
    bool rows = dim + offset < space_.split, repeats = false;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (d == dim || shape[d] == 1 || (d + offset < space_.split) != rows) continue;
      if (d > dim) return false;
      repeats = true;
    }
    made.attrs.set("dim", int64_t(!rows));
    if (!repeats) return true;
    if (shape[dim] % node.attrs.get_int("period", shape[dim]) != 0) return false;
    made.attrs.set("period", node.attrs.get_int("period", shape[dim]));
    return true;
  }

  bool add_result(const Result& result) {
    int index = index_[size_t(result.value)];
    if (index < 0) return false;  // an operand handed through
    const GroupValue& value = group_.values[size_t(index)];
    bool side = (space_.kind == &op::row && !value.along_cols && group_.size(value) == group_.rows) ||
                (space_.kind == &op::column && value.is_reduction());
    if (!value.op || (!side && !group_.is_full(value))) return false;
    ValueId outer = node_.outputs[size_t(std::stoi(result.name))];
    group_.results.push_back({index, outer, raw_.type(result.value)});
    return true;
  }

  const Graph& raw_;
  const Node& node_;
  Space space_;
  GroupBody group_;
  std::vector<int> index_;  // raw value -> group value
};

// In a column group reductions are results only.
bool columns_end(const GroupBody& group) {
  if (group.kind != &op::column) return true;
  for (const GroupValue& value : group.values)
    for (int operand : value.operands)
      if (group.values[size_t(operand)].is_reduction()) return false;
  return true;
}

}  // namespace

GroupBody group_around(const Node& node) { return group_around(node, read_group(node)); }

GroupBody group_around(const Node& node, const GroupBody& read) {
  GroupBody group{read.kind, read.rows, read.cols, {}, {}};
  std::vector<int> place;  // two inputs may be the same value
  for (GroupValue value : read.values) {
    if (value.outer != kNoValue) value.outer = node.inputs[size_t(value.outer)];
    for (int& operand : value.operands) operand = place[size_t(operand)];
    place.push_back(group.add(std::move(value)));
  }
  for (const GroupResult& result : read.results)
    group.results.push_back({place[size_t(result.value)], node.outputs[size_t(result.outer)], result.type});
  return group;
}

std::optional<GroupBody> group_of_node(const Graph& graph, const Node& node, const std::vector<bool>& wanted) {
  Fusion fusion = node.op->fusion;
  if (fusion == Fusion::kOpaque || fusion == Fusion::kView) return {};
  Graph raw = raw_body(graph, node, wanted);
  if (raw.results().empty()) return {};
  if (std::any_of(raw.nodes().begin(), raw.nodes().end(), is_reduction)) {
    std::optional<Space> space = space_of_reductions(raw);
    if (!space) return {};
    std::optional<GroupBody> group = GroupMaker(raw, node, *space).run();
    return group && columns_end(*group) ? group : std::nullopt;
  }
  const Shape shape = raw.shape(raw.results()[0].value);
  // The last dim alone as columns is what row groups use; other cuts are for broadcasting along several trailing dims.
  std::vector<size_t> splits;
  for (size_t split = shape.size(); split-- > 0;) splits.push_back(split);
  if (shape.empty()) splits.push_back(0);
  for (size_t split : splits)
    if (std::optional<GroupBody> group = GroupMaker(raw, node, {&op::flat, shape, split}).run()) return group;
  return {};
}

}  // namespace tokamak
