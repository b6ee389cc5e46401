#include "passes/group_core.h"

#include "base/error.h"
#include "graph/builder.h"
#include "ops/generate.h"
#include "ops/group.h"
#include "ops/movement.h"

#include <algorithm>

namespace tokamak {

int GroupCore::num_nodes() const {
  return int(std::count_if(values.begin(), values.end(), [](const CoreValue& v) { return v.op != nullptr; }));
}

std::vector<ValueId> GroupCore::inputs() const {
  std::vector<ValueId> inputs;
  for (const CoreValue& value : values)
    if (!value.op && std::find(inputs.begin(), inputs.end(), value.outer) == inputs.end())
      inputs.push_back(value.outer);
  return inputs;
}

int GroupCore::add(CoreValue value) {
  for (size_t i = 0; i < values.size(); ++i) {
    const CoreValue& v = values[i];
    if (v.op == value.op && v.outer == value.outer && v.operands == value.operands && v.dtype == value.dtype &&
        v.along_rows == value.along_rows && v.along_cols == value.along_cols && v.raw == value.raw &&
        v.attrs == value.attrs)
      return int(i);
  }
  values.push_back(std::move(value));
  return int(values.size()) - 1;
}

void GroupCore::prune() {
  std::vector<int> place(values.size(), -1);
  for (const CoreResult& result : results) place[size_t(result.value)] = 0;
  for (size_t i = values.size(); i-- > 0;)
    if (place[i] == 0)
      for (int operand : values[i].operands) place[size_t(operand)] = 0;
  std::vector<CoreValue> kept;
  for (size_t i = 0; i < values.size(); ++i) {
    if (place[i] < 0) continue;
    for (int& operand : values[i].operands) operand = place[size_t(operand)];
    place[i] = int(kept.size());
    kept.push_back(std::move(values[i]));
  }
  for (CoreResult& result : results) result.value = place[size_t(result.value)];
  values = std::move(kept);
}

std::optional<GroupCore> respace(const GroupCore& core, int64_t rows, int64_t cols, bool along_rows, bool along_cols) {
  if (core.rows == rows && core.cols == cols && along_rows == along_cols) return core;
  int64_t total = core.rows * core.cols;
  if (core.kind != &op::flat || (along_rows ? rows : 1) * (along_cols ? cols : 1) != total) return {};
  GroupCore out = core;
  out.rows = rows;
  out.cols = cols;
  for (CoreValue& value : out.values) {
    int64_t size = core.size(value);
    if (value.raw || size == 1) continue;
    if (size != total) return {};
    bool was_rows = value.along_rows, was_cols = value.along_cols;
    value.along_rows = along_rows && rows > 1;
    value.along_cols = along_cols && cols > 1;
    if (value.op != &op::iota) continue;
    // An index along one side cannot be told after that side was cut in two, nor that along one of two sides in a line.
    bool was_line = was_rows != was_cols && value.attrs.get_int("dim") == int64_t(was_cols);
    if (!was_line || value.along_rows == value.along_cols) return {};
    value.attrs.set("dim", int64_t(value.along_cols));
  }
  return out;
}

namespace {

class BodyMaker {
 public:
  explicit BodyMaker(const GroupCore& core) : core_(core), body_(std::make_shared<Graph>("body")), builder_(*body_) {}

  std::shared_ptr<const Graph> run(const std::vector<ValueType>& input_types) {
    std::vector<ValueId> inputs = core_.inputs();
    TOKAMAK_CHECK(inputs.size() == input_types.size(), "[group] {} inputs and {} types", inputs.size(),
                  input_types.size());
    for (size_t i = 0; i < inputs.size(); ++i)
      arguments_.emplace_back(inputs[i], builder_.input("a" + std::to_string(i), input_types[i]));
    made_.assign(core_.values.size(), kNoValue);
    for (bool edge : {true, false})  // all inputs first, then the work
      for (size_t i = 0; i < core_.values.size(); ++i)
        if (!core_.values[i].op == edge) made_[i] = edge ? enter(core_.values[i]) : compute(core_.values[i]);
    for (size_t i = 0; i < core_.results.size(); ++i) {
      const CoreResult& result = core_.results[i];
      body_->add_result("r" + std::to_string(i), reshape(builder_, made_[size_t(result.value)], result.type.shape));
    }
    return body_;
  }

 private:
  Shape shape_of(const CoreValue& v) const { return {v.along_rows ? core_.rows : 1, v.along_cols ? core_.cols : 1}; }

  ValueId enter(const CoreValue& value) {
    for (auto [outer, argument] : arguments_)
      if (outer == value.outer) return value.raw ? argument : reshape(builder_, argument, shape_of(value));
    TOKAMAK_CHECK(false, "[group] an input has no argument");
  }

  ValueId compute(const CoreValue& value) {
    Attrs attrs = value.attrs;
    if (value.op == &op::constant || value.op == &op::iota || value.op == &op::random_uniform)
      attrs.set("shape", shape_of(value));
    if (value.op->fusion == Fusion::kReduction) {
      attrs.set("dims", std::vector<int64_t>{!sums_rows(core_, value)});
      attrs.set("keep", true);
    }
    std::vector<ValueId> operands;
    for (int operand : value.operands) operands.push_back(made_[size_t(operand)]);
    ValueId made = builder_.add1(*value.op, std::move(operands), std::move(attrs));
    TOKAMAK_CHECK(builder_.type(made) == (ValueType{value.dtype, shape_of(value)}), "[group] '{}' became {}",
                  value.op->name, to_string(builder_.type(made)));
    return made;
  }

  const GroupCore& core_;
  std::shared_ptr<Graph> body_;
  GraphBuilder builder_;
  std::vector<std::pair<ValueId, ValueId>> arguments_;  // outer value, argument of the body
  std::vector<ValueId> made_;                           // by core value
};

}  // namespace

std::shared_ptr<const Graph> make_body(const GroupCore& core, const std::vector<ValueType>& input_types) {
  return BodyMaker(core).run(input_types);
}

GroupCore core_of_group(const Graph& graph, const Node& group) {
  const Graph& body = *group.body;
  GroupSpace space = group_space(group);
  GroupCore core{group.op, space.rows, space.cols, {}, {}};
  std::vector<int> index(size_t(body.num_values()), -1);
  auto outer = [&](ValueId argument) { return group.inputs[size_t(argument)]; };  // arguments are the first values
  auto add = [&](ValueId value, CoreValue made) {
    made.dtype = body.dtype(value);
    if (!made.raw) {
      made.along_rows = body.shape(value)[0] > 1;
      made.along_cols = body.shape(value)[1] > 1;
    }
    index[size_t(value)] = core.add(std::move(made));
  };
  for (const Node& node : body.nodes()) {
    ValueId output = node.outputs[0];
    if (node.op == &op::reshape) {
      ValueId from = node.inputs[0];
      if (body.producer(from) < 0)
        add(output, {.outer = outer(from)});
      else
        index[size_t(output)] = index[size_t(from)];
      continue;
    }
    CoreValue value{.op = node.op, .attrs = {}};
    for (ValueId input : node.inputs) {
      if (index[size_t(input)] < 0) add(input, {.outer = outer(input), .raw = node.op == &op::random_uniform});
      value.operands.push_back(index[size_t(input)]);
    }
    for (const auto& [name, attr] : node.attrs)
      if (name != "shape" && name != "dims" && name != "keep") value.attrs.set(name, attr);
    add(output, std::move(value));
  }
  for (size_t i = 0; i < group.outputs.size(); ++i)
    core.results.push_back({index[size_t(body.results()[i].value)], group.outputs[i], graph.type(group.outputs[i])});
  return core;
}

}  // namespace tokamak
