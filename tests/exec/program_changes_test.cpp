// What a program says of writing parameters and states, where it fails between its kernels.
#include "exec/program.h"

#include "backend/cpu/cpu_backend.h"
#include "backend/ranks/inprocess.h"
#include "graph/builder.h"
#include "graph/platform.h"
#include "ops/collective.h"
#include "ops/generate.h"
#include "ops/pointwise.h"
#include "plan/plan.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

const MeshAxis kData{"data", 2};
const ValueType kType{DType::kF32, {4}};

// w and a scratch state are changed, and x is summed over ranks, before that or after it.
Graph graph_of(bool sum_first) {
  Graph graph("changes");
  GraphBuilder g(graph);
  ValueId w = g.parameter("w", kType), x = g.input("x", kType);
  ValueId scratch = g.state("scratch", kType, Role::kGradientSum);
  ValueId sum = sum_first ? all_reduce(g, x, kData, Reduction::kSum) : x;
  graph.add_update(scratch, add(g, scratch, sum));
  ValueId changed = add(g, w, sum);
  graph.add_update(w, changed);
  graph.add_result("y", sum_first ? sum : all_reduce(g, changed, kData, Reduction::kSum));
  return graph;
}

// Of rank 0, before its second run and after it. There rank 1 comes to the sum with another call, so that rank 0 fails
// in it, not before.
std::vector<int64_t> changes_of(bool sum_first) {
  std::vector<int64_t> changes;
  EXPECT_THROW(run_ranks(2,
                         [&](Communicator& world) {
                           MeshRanks ranks(Mesh{{kData}}, world);
                           auto backend = cpu::make_backend();
                           TensorStore store(*backend, &ranks);
                           Program program(make_plan(graph_of(sum_first), {}), *backend, store, {.ranks = &ranks});
                           program.run();
                           if (ranks.rank() == 1) return ranks.along("data").barrier();
                           changes.push_back(program.changes());
                           EXPECT_THROW(program.run(), CommunicationError);
                           changes.push_back(program.changes());
                         }),
               CommunicationError);
  return changes;
}

TEST(ProgramChanges, NothingIsChangedBeforeTheUpdate) { EXPECT_EQ(changes_of(true), (std::vector<int64_t>{1, 1})); }

TEST(ProgramChanges, AnUpdateThatHasBegunIsCounted) { EXPECT_EQ(changes_of(false), (std::vector<int64_t>{1, 2})); }

}  // namespace
}  // namespace tokamak::test
