#include "graph/reduction.h"

#include "base/error.h"

namespace tokamak {

std::string_view reduction_name(Reduction reduction) { return reduction == Reduction::kMax ? "max" : "sum"; }

Reduction parse_reduction(std::string_view name) {
  for (Reduction reduction : {Reduction::kSum, Reduction::kMax})
    if (reduction_name(reduction) == name) return reduction;
  user_error("[all_reduce] expected the reduction to be sum or max, got '{}'", name);
}

}  // namespace tokamak
