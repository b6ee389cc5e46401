#include "ops/group_form.h"

#include "base/error.h"
#include "graph/op_def.h"
#include "ops/generate.h"
#include "ops/group.h"
#include "ops/movement.h"
#include "ops/reduce.h"

#include <algorithm>

namespace tokamak {
namespace {

// Finds the matrix of a group's body, and checks that the body is of the group's form.
class BodyCheck {
 public:
  explicit BodyCheck(const Node& group)
      : kind_(group.op), body_(*group.body), is_read_(size_t(body_.num_values())),
        is_core_(size_t(body_.num_values())) {}

  GroupSpace run() {
    for (const Node& node : body_.nodes())
      for (ValueId input : node.inputs) is_read_[size_t(input)] = true;
    for (const Argument& argument : body_.arguments())
      TOKAMAK_CHECK(is_read_[size_t(argument.value)], "[group] nothing reads the argument '{}'", argument.name);
    collect();
    for (const Node& node : body_.nodes())
      if (node.op != &op::reshape) check(node);
    for (const Result& result : body_.results()) check_result(result.value);
    return space_;
  }

 private:
  // Values that the space is made of: outputs of nodes, and what nodes other than reshape read.
  void collect() {
    for (const Node& node : body_.nodes()) {
      if (node.op == &op::reshape) {
        is_core_[size_t(node.outputs[0])] = body_.producer(node.inputs[0]) < 0;
        continue;
      }
      TOKAMAK_CHECK(node.outputs.size() == 1, "[group] a body node has {} outputs", node.outputs.size());
      is_core_[size_t(node.outputs[0])] = true;
      if (node.op == &op::random_uniform) continue;
      for (ValueId input : node.inputs) is_core_[size_t(input)] = true;
    }
    for (ValueId v = 0; v < body_.num_values(); ++v) {
      if (!is_core_[size_t(v)]) continue;
      const Shape& shape = body_.shape(v);
      TOKAMAK_CHECK(shape.size() == 2, "[group] a body value has the shape {}", to_string(shape));
      space_.rows = std::max(space_.rows, shape[0]);
      space_.cols = std::max(space_.cols, shape[1]);
    }
  }

  bool is_row() const { return kind_ == &op::row; }
  bool fits(ValueId value, bool rows, bool cols) const {
    return body_.shape(value) == Shape{rows ? space_.rows : 1, cols ? space_.cols : 1};
  }

  void check(const Node& node) const {
    ValueId out = node.outputs[0];
    TOKAMAK_CHECK(fits(out, 1, 1) || fits(out, 1, 0) || fits(out, 0, 1) || fits(out, 0, 0),
                  "[group] a value {} does not fit the space ({}, {})", to_string(body_.shape(out)), space_.rows,
                  space_.cols);
    for (ValueId input : node.inputs)
      TOKAMAK_CHECK(!is_reduction(input) || (is_row() && !sums_rows(input)),
                    "[group] a reduction of a {} group is read by its body", kind_->name);
    if (node.op->fusion != Fusion::kReduction) {
      TOKAMAK_CHECK(node.op->fusion == Fusion::kPointwise, "[group] '{}' cannot be part of a group", node.op->name);
      return;
    }
    std::vector<int64_t> dims{is_row()};
    bool along = node.attrs.get_ints("dims") == dims || (is_row() && sums_rows(out));
    TOKAMAK_CHECK(kind_ != &op::flat && along && node.attrs.get_bool("keep"), "[group] a {} group reduces over {}",
                  kind_->name, to_string(Attr(node.attrs.get_ints("dims"))));
  }

  const Node* maker(ValueId value) const {
    int p = body_.producer(value);
    return p < 0 ? nullptr : &body_.nodes()[size_t(p)];
  }
  bool is_reduction(ValueId value) const {
    const Node* node = maker(value);
    return node && node->op->fusion == Fusion::kReduction;
  }
  bool sums_rows(ValueId value) const {
    const Node* node = maker(value);
    return node && node->op == &op::reduce_sum && node->attrs.get_ints("dims") == std::vector<int64_t>{0};
  }

  void check_result(ValueId value) const {
    if (int p = body_.producer(value); p >= 0 && body_.nodes()[size_t(p)].op == &op::reshape)
      if (ValueId from = body_.nodes()[size_t(p)].inputs[0]; is_core_[size_t(from)]) value = from;
    TOKAMAK_CHECK(is_core_[size_t(value)], "[group] a result is not computed by the body");
    bool side = (is_row() && (fits(value, 1, 0) || (fits(value, 0, 1) && sums_rows(value)))) ||
                (kind_ == &op::column && fits(value, 0, 1));
    TOKAMAK_CHECK(side || fits(value, 1, 1), "[group] a {} group has a result {}", kind_->name,
                  to_string(body_.shape(value)));
  }

  const OpDef* kind_;
  const Graph& body_;
  GroupSpace space_;
  std::vector<bool> is_read_;  // by value
  std::vector<bool> is_core_;  // by value: has one of the four shapes
};

}  // namespace

bool is_matrix_group(const Node& node) { return node.op == &op::flat || node.op == &op::row || node.op == &op::column; }

GroupSpace group_space(const Node& group) {
  TOKAMAK_CHECK(is_matrix_group(group) && group.body, "[group] '{}' is no group over a matrix", group.op->name);
  return BodyCheck(group).run();
}

}  // namespace tokamak
