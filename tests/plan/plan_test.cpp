#include "plan/plan.h"

#include "graph/text.h"
#include "ops/all_ops.h"
#include "plan/in_place.h"
#include "plan/storage.h"
#include "tests/plan/random_graph.h"
#include "tests/plan/tagged_memory.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tokamak {
namespace {

Plan plan_of(std::string_view text) { return make_plan(parse_graph(text, find_op), {}); }

void run_on_tags(const Plan& plan) {
  ValueIds roots = find_roots(plan.graph);
  testing::TaggedMemory memory(plan);
  for (const Launch& launch : plan.launches) {
    const Node& node = plan.graph.nodes()[size_t(launch.node)];
    for (ValueId input : node.inputs)
      ASSERT_TRUE(memory.holds(input, roots[size_t(input)])) << "node " << launch.node << " reads %" << input;
    for (ValueId output : node.outputs) memory.write(output, output);
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      ASSERT_TRUE(memory.holds(node.outputs[o], node.outputs[o])) << "outputs of node " << launch.node << " overlap";
      for (size_t i = 0; i < node.inputs.size(); ++i)
        ASSERT_TRUE(!testing::share_bytes(plan, node.outputs[o], node.inputs[i]) ||
                    (may_overwrite(plan.graph, node, int(o), int(i)) &&
                     plan.locations[size_t(node.outputs[o])].offset == plan.locations[size_t(node.inputs[i])].offset))
            << "node " << launch.node;
    }
  }
  testing::expect_end(plan, memory);
}

TEST(Plan, RandomGraphsFindTheirValuesInMemory) {
  int taken_over = 0, in_arguments = 0;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    Plan plan = make_plan(testing::RandomGraph(seed).make(5 + int(seed % 40)), {});
    run_on_tags(plan);
    if (HasFatalFailure()) return;
    for (const Block& block : plan.blocks) taken_over += int(block.values.size()) - 1;
    in_arguments += int(plan.graph.updates().size() - plan.copies.size());
  }
  EXPECT_GT(taken_over, 1000);  // else the test would show nothing
  EXPECT_GT(in_arguments, 1000);
}

TEST(Plan, AViewOfASliceBeginsWithinItsValue) {
  Plan plan = plan_of(R"(graph g {
    param w = %0 : f32[4,16]
    %1 = exp(%0) : f32[4,16]
    %2 = slice_view(%1) {begin=1, dim=0, size=3} : f32[3,16]
    %3 = slice_view(%2) {begin=1, dim=0, size=1} : f32[1,16]
    %4 = slice_view(%0) {begin=3, dim=0, size=1} : f32[1,16]
    %5 = add(%3, %4) : f32[1,16]
    result y = %5
  })");
  EXPECT_EQ(plan.locations[3].offset - plan.locations[1].offset, 2 * 64);
  EXPECT_EQ(plan.locations[4].argument, 0);
  EXPECT_EQ(plan.locations[4].offset, 3 * 64);
  EXPECT_EQ(plan.launches.size(), 2u);
}

// Lifetimes found again from the graph alone: what is alive at one time needs so many bytes at least.
int64_t alive_bytes(const Plan& plan) {
  ValueIds roots = find_roots(plan.graph);
  int end = int(plan.graph.nodes().size());
  int64_t most = 0;
  for (int n = 0; n <= end; ++n) {
    ValueIds alive;
    auto use = [&](ValueId value) {
      ValueId root = roots[size_t(value)];
      if (plan.graph.producer(root) < 0 || plan.graph.producer(root) >= n) return;
      if (plan.locations[size_t(root)].argument != kNoValue) return;
      if (std::find(alive.begin(), alive.end(), root) == alive.end()) alive.push_back(root);
    };
    for (int m = n; m < end; ++m)
      if (plan.graph.nodes()[size_t(m)].op->fusion != Fusion::kView)
        for (ValueId input : plan.graph.nodes()[size_t(m)].inputs) use(input);
    for (const Result& result : plan.graph.results()) use(result.value);
    for (const CopyBack& copy : plan.copies) use(copy.value);
    int64_t bytes = 0;
    for (ValueId value : alive) bytes += num_bytes(plan.graph.type(value));
    most = std::max(most, bytes);
  }
  return most;
}

TEST(Plan, ArenaHoldsAtLeastWhatIsAlive) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Plan plan = make_plan(testing::RandomGraph(seed).make(30), {});
    EXPECT_GE(plan.live_bytes, alive_bytes(plan));
    EXPECT_GE(plan.arena_bytes, plan.live_bytes);
    EXPECT_LE(double(plan.arena_bytes), 1.5 * double(plan.live_bytes));
    for (const Block& block : plan.blocks) EXPECT_EQ(block.offset % kArenaAlignment, 0);
  }
}

TEST(Plan, ChainRunsInOneBlock) {
  Plan plan = plan_of(R"(graph g {
    input x = %0 : f32[64]
    %1 = exp(%0) : f32[64]
    %2 = tanh(%1) : f32[64]
    %3 = neg(%2) : f32[64]
    result y = %3
  })");
  EXPECT_EQ(plan.arena_bytes, 256);
  EXPECT_EQ(plan.input_bytes, 256);
  EXPECT_EQ(plan.locations[0].argument, 0);  // the input is not overwritten
  ASSERT_EQ(plan.blocks.size(), 1u);
  EXPECT_EQ(plan.blocks[0].values, (ValueIds{1, 2, 3}));
}

TEST(Plan, ViewKeepsItsInputAlive) {
  Plan plan = plan_of(R"(graph g {
    input x = %0 : f32[4,16]
    %1 = exp(%0) : f32[4,16]
    %2 = reshape(%1) {shape=[64]} : f32[64]
    %3 = tanh(%1) : f32[4,16]
    %4 = neg(%2) : f32[64]
    result a = %3
    result b = %4
  })");
  EXPECT_EQ(plan.locations[2].offset, plan.locations[1].offset);
  EXPECT_NE(plan.locations[3].offset, plan.locations[1].offset);  // %2 is still read
  EXPECT_EQ(plan.locations[4].offset, plan.locations[1].offset);  // now it may go
  EXPECT_EQ(plan.launches.size(), 3u);                            // the view is no kernel
}

TEST(Plan, UpdatesGoStraightIntoTheirArguments) {
  Plan plan = plan_of(R"(graph g {
    input g = %0 : f32[32]
    input one = %1 : f32[]
    param w = %2 : f32[32]
    state m = %3 : f32[32]
    state v = %4 : f32[32]
    %5 = mul(%2, %0) : f32[32]
    %6, %7, %8 = adamw(%2, %5, %3, %4, %1, %1, %1)
        {beta1=0.9, beta2=0.95, decay=0.1, eps=1e-08} : f32[32], f32[32], f32[32]
    update %2 = %6
    update %3 = %7
    update %4 = %8
  })");
  EXPECT_TRUE(plan.copies.empty());
  EXPECT_EQ(plan.locations[6].argument, 2);
  EXPECT_EQ(plan.locations[7].argument, 3);
  EXPECT_EQ(plan.locations[8].argument, 4);
  EXPECT_EQ(plan.arena_bytes, 128);
  EXPECT_EQ(plan.parameter_bytes, 128);
  EXPECT_EQ(plan.state_bytes, 256);
}

TEST(Plan, UpdateOfWhatIsReadLaterIsCopied) {
  Plan plan = plan_of(R"(graph g {
    param w = %0 : f32[16]
    %1 = exp(%0) : f32[16]
    %2 = neg(%0) : f32[16]
    result old = %2
    update %0 = %1
  })");
  ASSERT_EQ(plan.copies.size(), 1u);
  EXPECT_EQ(plan.copies[0].value, 1);
  EXPECT_EQ(plan.locations[1].argument, kNoValue);
}

TEST(Plan, AnyOpWritesAnUpdateWhoseTargetNobodyReads) {
  Plan plan = plan_of(R"(graph g {
    input x = %0 : f32[4,16]
    state s = %1 : f32[16]
    %2 = neg(%1) : f32[16]
    %3 = reduce_sum(%0) {dims=[0], keep=false} : f32[16]
    result old = %2
    update %1 = %3
  })");
  EXPECT_TRUE(plan.copies.empty());
  EXPECT_EQ(plan.locations[3].argument, 1);
}

TEST(Plan, UpdateThroughAView) {
  Plan plan = plan_of(R"(graph g {
    input x = %0 : f32[4,4]
    state s = %1 : f32[16]
    %2 = exp(%0) : f32[4,4]
    %3 = reshape(%2) {shape=[16]} : f32[16]
    update %1 = %3
  })");
  EXPECT_TRUE(plan.copies.empty());
  EXPECT_EQ(plan.locations[2].argument, 1);
  EXPECT_EQ(plan.arena_bytes, 0);
}

TEST(Plan, SwappedArgumentsAreCopiedFirst) {
  Plan plan = plan_of(R"(graph g {
    state a = %0 : f32[8]
    state b = %1 : f32[8]
    result old = %0
    update %0 = %1
    update %1 = %0
  })");
  run_on_tags(plan);
  EXPECT_EQ(plan.launches.size(), 3u);  // the result, a and b: each copied by a node
}

TEST(Plan, UpdatesThatShareAConstantEachGetTheirOwn) {
  Plan plan = plan_of(R"(graph g {
    state a = %0 : f32[8]
    state b = %1 : f32[8]
    %2 = constant() {dtype="f32", shape=[8], value=0.0} : f32[8]
    update %0 = %2
    update %1 = %2
  })");
  run_on_tags(plan);
  EXPECT_TRUE(plan.copies.empty());
  EXPECT_EQ(plan.launches.size(), 2u);
  EXPECT_EQ(plan.arena_bytes, 0);
}

TEST(Plan, WhatIsReadLaterIsNotOverwritten) {
  Plan plan = plan_of(R"(graph g {
    input x = %0 : f32[16]
    %1 = exp(%0) : f32[16]
    %2 = neg(%1) : f32[16]
    %3 = mul(%1, %2) : f32[16]
    result y = %3
  })");
  EXPECT_NE(plan.locations[2].offset, plan.locations[1].offset);
  EXPECT_EQ(plan.arena_bytes, 128);
}

TEST(Plan, EmptyGraph) {
  Plan plan = plan_of("graph g {\n input x = %0 : f32[2]\n result y = %0\n}");
  EXPECT_EQ(plan.arena_bytes, 0);
  EXPECT_EQ(plan.total_bytes(), 8);
  EXPECT_EQ(plan.seconds, 0);
}

}  // namespace
}  // namespace tokamak
