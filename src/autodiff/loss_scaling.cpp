#include "autodiff/loss_scaling.h"

#include "graph/builder.h"
#include "ops/generate.h"
#include "ops/pointwise.h"

namespace tokamak {
namespace {

constexpr double kLargestScale = 4294967296.0;

ValueId scalar_state(GraphBuilder& g, const char* name) {
  ValueId known = g.graph().find_argument(name);
  return known == kNoValue ? g.state(name, {DType::kF32, {}}, Role::kLossScaling) : known;
}

}  // namespace

ValueId loss_scale(GraphBuilder& g) { return scalar_state(g, kLossScale); }

ValueId scaled_loss(GraphBuilder& g, ValueId loss) { return mul(g, loss, loss_scale(g)); }

// Both sides of each select are finite.
void append_next_scale(GraphBuilder& g, ValueId good, const LossScaling& scaling) {
  ValueId scale = loss_scale(g), good_steps = scalar_state(g, kGoodSteps), skipped = scalar_state(g, kSkippedSteps);
  ValueId zero = constant(g, 0), one = constant(g, 1);
  ValueId count = add(g, good_steps, one), goes_on = less(g, count, constant(g, scaling.growth_interval));
  ValueId doubled = minimum(g, mul(g, scale, constant(g, 2)), constant(g, kLargestScale));
  ValueId skipped_now = select(g, good, skipped, add(g, skipped, one));
  ValueId halved = mul(g, scale, constant(g, 0.5));
  g.graph().add_update(scale, select(g, good, select(g, goes_on, scale, doubled), halved));
  g.graph().add_update(good_steps, select(g, good, select(g, goes_on, count, zero), zero));
  g.graph().add_update(skipped, skipped_now);
  g.graph().add_result("loss_scale", scale);
  g.graph().add_result("skipped", skipped_now);
}

}  // namespace tokamak
