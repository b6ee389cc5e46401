#include "ops/group_body.h"

#include "base/error.h"
#include "graph/builder.h"
#include "ops/generate.h"
#include "ops/group_form.h"
#include "ops/movement.h"

#include <algorithm>

namespace tokamak {

int GroupBody::num_nodes() const {
  return int(std::count_if(values.begin(), values.end(), [](const GroupValue& v) { return !v.is_input(); }));
}

ValueIds GroupBody::inputs() const {
  ValueIds inputs;
  for (const GroupValue& value : values)
    if (value.outer != kNoValue && std::find(inputs.begin(), inputs.end(), value.outer) == inputs.end())
      inputs.push_back(value.outer);
  return inputs;
}

int GroupBody::add(GroupValue value) {
  for (size_t i = 0; i < values.size(); ++i) {
    const GroupValue& v = values[i];
    if (v.op == value.op && v.outer == value.outer && v.operands == value.operands && v.dtype == value.dtype &&
        v.along_rows == value.along_rows && v.along_cols == value.along_cols && v.over_rows == value.over_rows &&
        v.attrs == value.attrs)
      return int(i);
  }
  values.push_back(std::move(value));
  return int(values.size()) - 1;
}

void GroupBody::prune() {
  std::vector<int> place(values.size(), -1);
  for (const GroupResult& result : results) place[size_t(result.value)] = 0;
  for (size_t i = values.size(); i-- > 0;)
    if (place[i] == 0)
      for (int operand : values[i].operands) place[size_t(operand)] = 0;
  std::vector<GroupValue> kept;
  for (size_t i = 0; i < values.size(); ++i) {
    if (place[i] < 0) continue;
    for (int& operand : values[i].operands) operand = place[size_t(operand)];
    place[i] = int(kept.size());
    kept.push_back(std::move(values[i]));
  }
  for (GroupResult& result : results) result.value = place[size_t(result.value)];
  values = std::move(kept);
}

Attrs GroupBody::attrs_of(const GroupValue& value) const {
  Attrs attrs = value.attrs;
  if (value.is(op::constant) || value.is(op::iota) || value.is(op::random_uniform)) attrs.set("shape", shape(value));
  if (value.is_reduction()) {
    attrs.set("dims", std::vector<int64_t>{!value.over_rows});
    attrs.set("keep", true);
  }
  return attrs;
}

namespace {

class Reader {
 public:
  explicit Reader(const Node& group)
      : graph_(*group.body), index_(size_t(graph_.num_values()), -1), position_(index_.size(), kNoValue) {
    GroupSpace space = group_space(group);
    out_.kind = group.op;
    out_.rows = space.rows;
    out_.cols = space.cols;
    const auto& arguments = graph_.arguments();
    for (size_t i = 0; i < arguments.size(); ++i) position_[size_t(arguments[i].value)] = ValueId(i);
  }

  GroupBody run() {
    for (const Node& node : graph_.nodes()) read(node);
    const auto& results = graph_.results();
    for (size_t i = 0; i < results.size(); ++i)
      out_.results.push_back({index_[size_t(results[i].value)], ValueId(i), graph_.type(results[i].value)});
    return std::move(out_);
  }

 private:
  void read(const Node& node) {
    ValueId made = node.outputs[0];
    if (node.op == &op::reshape) {  // the edge of an argument or of a result
      ValueId from = node.inputs[0];
      index_[size_t(made)] = graph_.producer(from) < 0 ? add_input(made, from) : index_[size_t(from)];
      return;
    }
    GroupValue value;
    value.op = node.op;
    if (node.op == &op::random_uniform)
      value.outer = position(node.inputs[0]);
    else
      for (ValueId input : node.inputs) value.operands.push_back(operand(input));
    bool reduction = node.op->fusion == Fusion::kReduction;
    value.over_rows = reduction && node.attrs.get_ints("dims") == std::vector<int64_t>{0};
    value.attrs = without_shape(node.attrs);
    index_[size_t(made)] = add(made, std::move(value));
  }

  static Attrs without_shape(const Attrs& attrs) {
    auto is_of_shape = [](const auto& item) {
      return item.first == "shape" || item.first == "dims" || item.first == "keep";
    };
    if (std::none_of(attrs.begin(), attrs.end(), is_of_shape)) return attrs;
    Attrs rest;
    for (const auto& item : attrs)
      if (!is_of_shape(item)) rest.set(item.first, item.second);
    return rest;
  }

  int operand(ValueId input) {
    int& index = index_[size_t(input)];
    if (index < 0) index = add_input(input, input);
    return index;
  }

  // The argument, read with the shape of a value.
  int add_input(ValueId shaped_as, ValueId argument) {
    GroupValue value;
    value.outer = position(argument);
    return add(shaped_as, std::move(value));
  }

  int add(ValueId shaped_as, GroupValue value) {
    value.dtype = graph_.dtype(shaped_as);
    value.along_rows = graph_.shape(shaped_as)[0] > 1;
    value.along_cols = graph_.shape(shaped_as)[1] > 1;
    return out_.add(std::move(value));
  }

  ValueId position(ValueId argument) const { return position_[size_t(argument)]; }

  const Graph& graph_;
  GroupBody out_;
  std::vector<int> index_;         // by value of the graph
  std::vector<ValueId> position_;  // by value of the graph: among its arguments
};

class BodyMaker {
 public:
  explicit BodyMaker(const GroupBody& group)
      : group_(group), inputs_(group.inputs()), body_(std::make_shared<Graph>("body")), g_(*body_) {}

  std::shared_ptr<const Graph> run(const ValueTypes& input_types) {
    TOKAMAK_CHECK(inputs_.size() == input_types.size(), "[group] {} inputs and {} types", inputs_.size(),
                  input_types.size());
    for (size_t i = 0; i < inputs_.size(); ++i) arguments_.push_back(g_.input("a" + std::to_string(i), input_types[i]));
    made_.assign(group_.values.size(), kNoValue);
    for (bool edge : {true, false})  // all inputs first, then the work
      for (size_t i = 0; i < group_.values.size(); ++i)
        if (const GroupValue& value = group_.values[i]; value.is_input() == edge)
          made_[i] = edge ? reshape(g_, argument_of(value), group_.shape(value)) : compute(value);
    for (size_t i = 0; i < group_.results.size(); ++i) {
      const GroupResult& result = group_.results[i];
      body_->add_result("r" + std::to_string(i), reshape(g_, made_[size_t(result.value)], result.type.shape));
    }
    return body_;
  }

 private:
  ValueId argument_of(const GroupValue& value) const {
    return arguments_[size_t(std::find(inputs_.begin(), inputs_.end(), value.outer) - inputs_.begin())];
  }

  ValueId compute(const GroupValue& value) {
    ValueIds operands;
    if (value.outer != kNoValue) operands.push_back(argument_of(value));
    for (int operand : value.operands) operands.push_back(made_[size_t(operand)]);
    ValueId made = g_.add1(*value.op, std::move(operands), group_.attrs_of(value));
    TOKAMAK_CHECK(g_.type(made) == (ValueType{value.dtype, group_.shape(value)}), "[group] '{}' became {}",
                  value.op->name, to_string(g_.type(made)));
    return made;
  }

  const GroupBody& group_;
  const ValueIds inputs_;  // what it reads from outside
  std::shared_ptr<Graph> body_;
  GraphBuilder g_;
  ValueIds arguments_;         // by place among the inputs
  std::vector<ValueId> made_;  // by value of the group
};

}  // namespace

GroupBody read_group(const Node& group) { return Reader(group).run(); }

std::shared_ptr<const Graph> make_body(const GroupBody& group, const ValueTypes& input_types) {
  return BodyMaker(group).run(input_types);
}

}  // namespace tokamak
