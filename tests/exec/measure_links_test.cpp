#include "exec/measure_links.h"

#include "backend/cpu/cpu_backend.h"
#include "backend/ranks/inprocess.h"
#include "graph/builder.h"
#include "graph/platform.h"
#include "ops/collective.h"
#include "plan/plan.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tokamak::test {
namespace {

// What the planner says that a collective of so many bytes takes.
double predicted(const Target& target, const MeshAxis& axis, bool gathers, int64_t bytes) {
  Graph graph("g");
  GraphBuilder g(graph);
  int64_t elements = bytes / int64_t(sizeof(float));
  ValueId x = g.input("x", {DType::kF32, {gathers ? elements / axis.size : elements}});
  graph.add_result("y", gathers ? all_gather(g, x, axis, {0}) : all_reduce(g, x, axis, Reduction::kSum));
  return price(graph, graph.nodes()[0], Platform(target)).seconds;
}

TEST(MeasureLinks, WhatWasMeasuredIsPredictedAfterwards) {
  Target target;
  target.memory_bandwidth = 1e12;  // which holds nothing up
  for (int64_t ranks : {2, 4}) {
    MeshAxis axis{"data", ranks};
    LinkSeconds measured{40e-6, 600e-6, 410e-6};
    Target fitted = with_links(target, ranks, measured);
    EXPECT_NEAR(predicted(fitted, axis, false, kSmallMessage), measured.small_reduce, 1e-9);
    EXPECT_NEAR(predicted(fitted, axis, false, kLargeMessage), measured.large_reduce, 1e-9);
    EXPECT_NEAR(predicted(fitted, axis, true, kLargeMessage), measured.large_gather, 1e-9);
    fitted.link_bandwidth = target.link_bandwidth;
    fitted.link_seconds = target.link_seconds;
    fitted.gather_share = target.gather_share;
    EXPECT_EQ(fitted, target) << "nothing else has changed";
  }
}

TEST(MeasureLinks, ASmallMessageThatIsFasterByTheByteHasNoFixedCost) {
  Target target;
  target.memory_bandwidth = 1e12;
  Target fitted = with_links(target, 2, {10e-6, 600e-6, 300e-6});
  EXPECT_EQ(fitted.link_seconds, 0);
  EXPECT_NEAR(predicted(fitted, {"data", 2}, false, kLargeMessage), 600e-6, 1e-9);
}

TEST(MeasureLinks, WhatCannotBeIsLeftAlone) {
  EXPECT_EQ(with_links({}, 2, {1e-3, 1e-3, 1e-3}), Target());
  EXPECT_EQ(with_links({}, 1, {1e-6, 1e-3, 1e-3}), Target());
}

TEST(MeasureLinks, TimesCollectivesBetweenAllRanks) {
  run_ranks(2, [](Communicator& world) {
    std::unique_ptr<Backend> backend = cpu::make_backend();
    LinkSeconds seconds = measure_links(*backend, world);
    for (double s : {seconds.small_reduce, seconds.large_reduce, seconds.large_gather}) EXPECT_GT(s, 0);
    Target fitted = with_links({}, world.size(), seconds);
    EXPECT_TRUE(std::isfinite(fitted.link_bandwidth) && fitted.link_bandwidth > 0);
  });
}

}  // namespace
}  // namespace tokamak::test
