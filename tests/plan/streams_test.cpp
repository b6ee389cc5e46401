#include "plan/streams.h"

#include "graph/text.h"
#include "ops/all_ops.h"
#include "plan/plan.h"
#include "plan/print_plan.h"
#include "tests/support/note_op.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// Two layers y = tanh(x) w: dw and db of each are handed to the update, and dx goes on.
constexpr const char* kLayers = R"(graph g {
  input dy = %0 : f32[64,64]
  input x = %1 : f32[64,64]
  param w = %2 : f32[64,64]
  param b = %3 : f32[64]
  %4 = exp(%0) : f32[64,64]
  %5 = matmul(%1, %4) {trans_a=true, trans_b=false} #backward : f32[64,64]
  %6 = matmul(%4, %2) {trans_a=false, trans_b=true} #backward : f32[64,64]
  %7 = reduce_sum(%6) {dims=[0], keep=false} #backward : f32[64]
  %8 = neg(%7) #backward : f32[64]
  %9 = tanh(%6) #backward : f32[64,64]
  %10 = tanh(%9) #backward : f32[64,64]
  %11 = mul(%10, %9) #backward : f32[64,64]
  %12 = matmul(%1, %11) {trans_a=true, trans_b=false} #backward : f32[64,64]
  %13 = sub(%2, %5) #update : f32[64,64]
  %14 = sub(%13, %12) #update : f32[64,64]
  %15 = sub(%3, %8) #update : f32[64]
  update %2 = %14
  update %3 = %15
})";

Plan plan_of(std::string_view text, int streams = 2) { return make_plan(parse_graph(text, find_op), {}, streams); }

std::vector<int> nodes_beside(const Plan& plan) {
  std::vector<int> nodes;
  for (const Launch& launch : plan.launches)
    if (launch.stream == 1) nodes.push_back(launch.node);
  return nodes;
}

int last_of_block(const Plan& plan, ValueId value) {
  for (const Block& block : plan.blocks)
    if (std::find(block.values.begin(), block.values.end(), value) != block.values.end()) return block.last;
  ADD_FAILURE() << "%" << value << " has no block";
  return -1;
}

// A target on which only launches take time: one second each.
Target equal_launches() {
  Target target;
  target.f32_flops = target.pointwise_flops = target.memory_bandwidth = 1e30;
  target.launch_seconds = 1;
  return target;
}

TEST(Streams, WhatOnlyTheUpdateReadsGoesBeside) {
  // dw, db with what is made of it, dw of the last layer with what leads to it alone; not dx.
  EXPECT_EQ(nodes_beside(plan_of(kLayers)), (std::vector<int>{1, 3, 4, 7, 8}));
}

TEST(Streams, EffectsStayWithTheOthers) {
  std::string text = kLayers;
  text.replace(text.find("neg(%7)"), 7, "note(%7) {id=1, on=\"a\"}");
  Plan plan = make_plan(test::parse_with_notes(text), {}, 2);
  EXPECT_EQ(nodes_beside(plan), (std::vector<int>{1, 7, 8})) << "nor what leads to it";
}

TEST(Streams, OneStreamIsThePlanAsItWas) {
  Plan one = plan_of(kLayers, 1);
  EXPECT_TRUE(nodes_beside(one).empty());
  EXPECT_EQ(print_plan(one).find("stream"), std::string::npos);
  EXPECT_EQ(print_plan(one).find("after"), std::string::npos);
}

TEST(Streams, NothingGoesBesideWithoutABackwardPass) {
  Plan plan = plan_of(R"(graph g {
    input x = %0 : f32[16]
    %1 = exp(%0) : f32[16]
    %2 = neg(%0) : f32[16]
    result a = %1
    result b = %2
  })");
  EXPECT_TRUE(nodes_beside(plan).empty());
}

// What is made of two things of the backward pass does not take both of them with it.
TEST(Streams, TheChainOfGradientsStays) {
  Plan plan = plan_of(R"(graph g {
    input x = %0 : f32[16]
    state s = %1 : f32[16]
    %2 = exp(%0) #backward : f32[16]
    %3 = neg(%2) #backward : f32[16]
    %4 = mul(%2, %3) #backward : f32[16]
    update %1 = %4
  })");
  EXPECT_EQ(nodes_beside(plan), (std::vector<int>{2}));
}

TEST(Streams, ReadThroughAViewIsRead) {
  Plan plan = plan_of(R"(graph g {
    input x = %0 : f32[4,4]
    state s = %1 : f32[16]
    %2 = exp(%0) #backward : f32[4,4]
    %3 = reshape(%2) {shape=[16]} #backward : f32[16]
    %4 = neg(%3) #backward : f32[16]
    %5 = mul(%4, %3) #backward : f32[16]
    update %1 = %5
  })");
  EXPECT_EQ(nodes_beside(plan), (std::vector<int>{3}));
}

// dw (node 1) takes a second, and so does each launch of the other stream: its operand stays for one of them.
TEST(Streams, OperandsStayUntilTheOtherStreamHasDoneAsMuch) {
  Plan plan = make_plan(parse_graph(kLayers, find_op), equal_launches(), 2);
  EXPECT_EQ(last_of_block(plan, 4), 2);
  // db (3) begins when node 2 is over and takes as long as node 5, neg (4) after it as long as node 6. What comes last
  // is done when the update (9, 10) reads it.
  StreamAssignment assignment = assign_streams(plan.graph, plan.launches, {.side = true});
  EXPECT_EQ(assignment.done, (std::vector<int>{0, 2, 2, 5, 6, 5, 6, 9, 10, 9, 10, 11}));
}

// tanh (5) would write over dx (%6), but db (3) may still read it then.
TEST(Streams, NothingIsWrittenOverWhatMayBeReadBeside) {
  Plan one = make_plan(parse_graph(kLayers, find_op), equal_launches(), 1);
  Plan two = make_plan(parse_graph(kLayers, find_op), equal_launches(), 2);
  EXPECT_EQ(one.locations[9].offset, one.locations[6].offset);
  EXPECT_NE(two.locations[9].offset, two.locations[6].offset);
}

TEST(Streams, AreNamedAndEndWithTheRun) {
  Plan one = plan_of(kLayers, 1), two = plan_of(kLayers, 2);
  ASSERT_EQ(one.streams.size(), 1u);
  ASSERT_EQ(two.streams.size(), 2u);
  EXPECT_EQ(two.streams[0].name, "compute");
  EXPECT_EQ(two.streams[1].name, "side");
  EXPECT_TRUE(two.streams[1].ends_with_run);
}

// Two streams share the device: what runs beside is not free.
TEST(Streams, OverlapIsNoPredictedGain) {
  double one = plan_of(kLayers, 1).seconds;
  EXPECT_NEAR(plan_of(kLayers, 2).seconds, one, 1e-12 * one);
}

}  // namespace
}  // namespace tokamak
