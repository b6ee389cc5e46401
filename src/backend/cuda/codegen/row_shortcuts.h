// Values of a row that need not be computed element by element.
#pragma once

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/codegen/row_plan.h"

#include <map>

namespace tokamak::cuda {

struct RowShortcuts {
  struct Pick {
    int argument = 0, place = 0;  // values: what is read, and the column
  };
  /// The sum over a row of "x where the column is t, else 0" is x[t], once x lies in shared memory.
  std::map<int, Pick> picks;
  /// A maximum over a row of bf16 -> the argument: its elements stay packed where no column is masked.
  std::map<int, int> packed_max;
  /// Comparisons of the column with a value of the row -> that value. Only one vector of the row can hold a 1. For rows
  /// that are not in registers.
  std::map<int, int> one_hot;
};

RowShortcuts find_shortcuts(const GroupBody& body, const Expression& expression, const RowPlan& plan);

}  // namespace tokamak::cuda
