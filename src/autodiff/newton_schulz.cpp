#include "autodiff/newton_schulz.h"

#include "graph/builder.h"
#include "ops/generate.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"

#include <algorithm>

namespace tokamak {
namespace {

constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
constexpr int kSteps = 5;
constexpr double kLeastNorm = 1e-7;  // a gradient of zeros gives zeros

}  // namespace

ValueId orthogonalized(GraphBuilder& g, ValueId matrices) {
  int64_t count = g.shape(matrices)[0], rows = g.shape(matrices)[1], columns = g.shape(matrices)[2];
  bool left = rows < columns;
  ValueId norms = reshape(g, sqrt(g, sum_squares_of_pieces(g, {matrices}, count)), {count, 1, 1});
  ValueId x = div(g, matrices, maximum(g, norms, constant(g, kLeastNorm)));
  int64_t side = std::min(rows, columns);
  ValueId identity = equal(g, iota(g, {1, side, side}, 1), iota(g, {1, side, side}, 2));
  for (int step = 0; step < kSteps; ++step) {
    ValueId gram = matmul(g, x, x, !left, left);
    ValueId squared = matmul(g, gram, gram);
    ValueId rest = add(g, mul(g, gram, constant(g, kB)), mul(g, squared, constant(g, kC)));
    ValueId polynomial = add(g, rest, mul(g, identity, constant(g, kA)));
    x = left ? matmul(g, polynomial, x) : matmul(g, x, polynomial);
  }
  return x;
}

}  // namespace tokamak
