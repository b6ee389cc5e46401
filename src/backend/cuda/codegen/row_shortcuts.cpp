#include "backend/cuda/codegen/row_shortcuts.h"

#include "ops/generate.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"

namespace tokamak::cuda {
namespace {

class Finder {
 public:
  Finder(const GroupBody& body, const Expression& expression, const RowPlan& plan)
      : body_(body), expression_(expression), plan_(plan) {}

  RowShortcuts run() {
    for (int v = 0; v < int(body_.values.size()); ++v) {
      find_one_hot(v);
      find_pick(v);
      find_packed_max(v);
    }
    if (plan_.keep == RowPlan::Keep::kRegisters) found_.one_hot.clear();
    return std::move(found_);
  }

 private:
  const GroupValue& value(int v) const { return body_.values[size_t(v)]; }

  bool is_column(int v) const {
    return value(v).is(op::iota) && value(v).along_cols && value(v).attrs.get_int("dim") == 1 &&
           !value(v).attrs.find("period");
  }
  bool is_of_row(int v) const { return expression_.level(v) == Level::kRow || expression_.level(v) == Level::kScalar; }

  void find_one_hot(int v) {
    if (!value(v).is(op::equal)) return;
    int a = value(v).operands[0], b = value(v).operands[1];
    if (is_column(a) && is_of_row(b)) found_.one_hot[v] = b;
    if (is_column(b) && is_of_row(a)) found_.one_hot[v] = a;
  }

  // What the value is a copy of: as f32, and where no column is masked.
  int source(int v) const {
    while (true) {
      if (value(v).is(op::cast) && value(v).dtype == DType::kF32)
        v = value(v).operands[0];
      else if (value(v).is(op::select) && expression_.is_column_limit(value(value(v).operands[0])))
        v = value(v).operands[1];
      else
        return v;
    }
  }

  void find_pick(int v) {
    if (plan_.keep != RowPlan::Keep::kShared || !value(v).is(op::reduce_sum) || !value(v).reduces_cols()) return;
    const GroupValue& chosen = value(value(v).operands[0]);
    if (!chosen.is(op::select) || !found_.one_hot.count(chosen.operands[0])) return;
    int from = chosen.operands[1], place = found_.one_hot.at(chosen.operands[0]);
    while (value(from).is(op::cast) && value(from).dtype == DType::kF32) from = value(from).operands[0];
    const GroupValue& other = value(chosen.operands[2]);
    if (is_row_operand(body_, value(from)) && other.is(op::constant) && other.attrs.get_double("value") == 0)
      found_.picks[v] = {from, place};
  }

  void find_packed_max(int v) {
    if (!value(v).is(op::reduce_max) || !value(v).reduces_cols() || plan_.vector < 2) return;
    int from = source(value(v).operands[0]);
    if (is_row_operand(body_, value(from)) && value(from).dtype == DType::kBF16) found_.packed_max[v] = from;
  }

  const GroupBody& body_;
  const Expression& expression_;
  const RowPlan& plan_;
  RowShortcuts found_;
};

}  // namespace

RowShortcuts find_shortcuts(const GroupBody& body, const Expression& expression, const RowPlan& plan) {
  return Finder(body, expression, plan).run();
}

}  // namespace tokamak::cuda
