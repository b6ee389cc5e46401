#include "backend/cuda/codegen/precision.h"

#include "ops/pointwise.h"
#include "ops/reduce.h"

namespace tokamak::cuda {
namespace {

class Uses {
 public:
  explicit Uses(const GroupBody& body) : body_(body), users_(body.values.size()), low_(body.values.size()) {
    for (size_t v = 0; v < body.values.size(); ++v)
      for (int operand : body.values[v].operands) users_[size_t(operand)].push_back(int(v));
    for (size_t v = body.values.size(); v-- > 0;) low_[v] = uses_are_low(int(v), false);
  }

  bool is_coarse(int v) const { return value(v).is(op::exp) && uses_are_low(v, subtracts_max(value(v).operands[0])); }

 private:
  const GroupValue& value(int v) const { return body_.values[size_t(v)]; }

  bool subtracts_max(int v) const {
    if (!value(v).is(op::sub)) return false;
    const GroupValue& top = value(value(v).operands[1]);
    return top.is(op::reduce_max) && top.reduces_cols() && top.operands[0] == value(v).operands[0];
  }

  // Whether every use ends in numbers of 16 bits; or in a sum over the row, where `sums` says that this is as good.
  bool uses_are_low(int v, bool sums) const {
    for (const GroupResult& result : body_.results)
      if (result.value == v && dtype_bytes(result.type.dtype) != 2) return false;
    for (int u : users_[size_t(v)])
      if (!(dtype_bytes(value(u).dtype) == 2 || (passes_on(u, v) && low_[size_t(u)]) ||
            (sums && value(u).is(op::reduce_sum) && value(u).reduces_cols())))
        return false;
    return true;
  }

  bool passes_on(int user, int v) const {
    const GroupValue& u = value(user);
    if (u.is(op::select)) return u.operands[0] != v;
    return u.is(op::add) || u.is(op::sub) || u.is(op::mul) || (u.is(op::cast) && u.dtype == DType::kF32);
  }

  const GroupBody& body_;
  std::vector<std::vector<int>> users_;
  std::vector<bool> low_;
};

}  // namespace

std::vector<bool> coarse_exponentials(const GroupBody& body) {
  Uses uses(body);
  std::vector<bool> coarse;
  for (size_t v = 0; v < body.values.size(); ++v) coarse.push_back(uses.is_coarse(int(v)));
  return coarse;
}

}  // namespace tokamak::cuda
