#include "autodiff/newton_schulz.h"

#include "graph/builder.h"
#include "ops/generate.h"
#include "ops/matmul.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"

namespace tokamak {
namespace {

constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
constexpr int kSteps = 5;
constexpr double kLeastNorm = 1e-7;  // a gradient of zeros gives zeros

}  // namespace

ValueId orthogonalized(GraphBuilder& g, ValueId matrix, bool sums_columns) {
  int64_t rows = g.shape(matrix)[0], columns = g.shape(matrix)[1];
  bool left = rows == columns ? sums_columns : rows < columns;
  ValueId x = div(g, matrix, maximum(g, sqrt(g, sum_squares(g, {matrix})), constant(g, kLeastNorm)));
  for (int step = 0; step < kSteps; ++step) {
    ValueId gram = matmul(g, x, x, !left, left);
    ValueId squared = matmul(g, gram, gram);
    ValueId polynomial = add(g, mul(g, gram, constant(g, kB)), mul(g, squared, constant(g, kC)));
    ValueId product = left ? matmul(g, polynomial, x) : matmul(g, x, polynomial);
    x = add(g, mul(g, x, constant(g, kA)), product);
  }
  return x;
}

}  // namespace tokamak
