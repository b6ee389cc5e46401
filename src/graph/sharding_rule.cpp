#include "graph/sharding_rule.h"

namespace tokamak {

FactorCut find_factor(const ShardingRule& rule, const DimFactors& dim, int64_t blocks, int64_t size) {
  int64_t before = 1;
  for (int f : dim) {
    int64_t length = rule.factors[size_t(f)].size;
    if (blocks % before == 0 && length % (blocks / before * size) == 0) return {f, blocks / before};
    before *= length;
  }
  return {};
}

FactorPlace place_of(const ShardingRule& rule, const OperandFactors& operand, int factor) {
  for (size_t d = 0; d < operand.size(); ++d) {
    int64_t before = 1;
    for (int f : operand[d]) {
      if (f == factor) return {int64_t(d), before};
      before *= rule.factors[size_t(f)].size;
    }
  }
  return {};
}

}  // namespace tokamak
