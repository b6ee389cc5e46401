#include "graph/argument_spec.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/rewriter.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(Role, HasANameThatFindsIt) {
  for (int i = 0; i <= int(Role::kState); ++i) EXPECT_EQ(find_role(role_name(Role(i))), Role(i)) << i;
  EXPECT_EQ(role_name(Role::kState), "state");  // the last one
  EXPECT_FALSE(find_role("wte"));
}

TEST(Role, SortsParametersAndStates) {
  for (Role role : {Role::kEmbedding, Role::kPosition, Role::kClassifier, Role::kColumn, Role::kRow, Role::kMatrix})
    EXPECT_TRUE(is_parameter(role) && is_matrix(role) && !is_scratch(role)) << role_name(role);
  for (Role role : {Role::kVector, Role::kColumnBias})
    EXPECT_TRUE(is_parameter(role) && !is_matrix(role)) << role_name(role);
  for (Role role : {Role::kData, Role::kMoment, Role::kGradientSum, Role::kLossScaling, Role::kCache, Role::kState})
    EXPECT_FALSE(is_parameter(role) || is_matrix(role)) << role_name(role);
  EXPECT_TRUE(is_scratch(Role::kGradientSum) && is_scratch(Role::kReducedGradient) && is_scratch(Role::kCache));
  EXPECT_FALSE(is_scratch(Role::kMoment) || is_scratch(Role::kLossScaling) || is_scratch(Role::kState));
}

TEST(ArgumentSpec, OnlyRowsArePadded) {
  EXPECT_TRUE(can_store({8, 4}, {5, 4}, {}));
  EXPECT_TRUE(can_store({5}, {5}, {}));
  EXPECT_TRUE(can_store({}, {}, {}));
  EXPECT_FALSE(can_store({4, 4}, {5, 4}, {}));
  EXPECT_FALSE(can_store({5, 8}, {5, 4}, {}));
  EXPECT_FALSE(can_store({5, 1}, {5}, {}));
  EXPECT_TRUE(can_store({5, 8}, {5, 4}, {.dim = 1, .parts = 2}));
  EXPECT_FALSE(can_store({5, 8}, {5, 4}, {.dim = 1, .parts = 3}));
  EXPECT_FALSE(can_store({8, 8}, {5, 4}, {.dim = 1}));
}

TEST(Cuts, HaveATextThatParsesBack) {
  std::vector<Cut> cuts = {
      {"data", 2, 0}, {"tensor", 4, 1, 3}, {"context", 2, 2, 4, true}, {.axis = "slot", .size = 3, .term = true}};
  EXPECT_EQ(print_cuts(cuts), "data:2@0 tensor:4@1x3 context:2@2x4m slot:3+");
  EXPECT_EQ(parse_cuts(print_cuts(cuts)), cuts);
  EXPECT_EQ(parse_cuts(""), std::vector<Cut>{});
  for (const char* text : {"data", "data:", "data:2", "data:2@", ":2@0", "data:2@0x", "data:2@0x1", "data:2@0 ",
                           "a:2@0,b:2@1", "data:two@0", "data:2@0y", "data:2@0m", "data:2@0x3n", "data:+", "data:2@0+"})
    EXPECT_FALSE(parse_cuts(text)) << text;
}

TEST(Cuts, TellAShareFromTheWhole) {
  std::vector<Cut> cuts = {{"data", 2, 0}, {"tensor", 4, 1, 3}};
  EXPECT_EQ(part_shape({6, 24}, cuts), (Shape{3, 6}));
  EXPECT_EQ(whole_shape({3, 6}, cuts), (Shape{6, 24}));
}

TEST(Cuts, AreOfDimsThatTheyDivide) {
  EXPECT_TRUE(can_cut({6, 24}, {{"data", 2, 0}, {"tensor", 4, 1, 3}}));
  EXPECT_FALSE(can_cut({6, 24}, {{"data", 4, 0}}));
  EXPECT_FALSE(can_cut({6, 24}, {{"tensor", 4, 1, 5}})) << "4 divides 24, and so do not 5 blocks of 4";
  EXPECT_FALSE(can_cut({6, 24}, {{"data", 2, 2}}));
  EXPECT_FALSE(can_cut({6, 24}, {{"data", 2, -1}}));
  EXPECT_FALSE(can_cut({6, 24}, {{"data", 2, 0}, {"data", 2, 1}})) << "an axis cuts one dim";
}

TEST(Cuts, AreNoneWhereRanksHaveTerms) {
  std::vector<Cut> cuts = {{.axis = "data", .size = 4, .term = true}, {"tensor", 2, 0}};
  EXPECT_TRUE(can_cut({6}, cuts)) << "4 does not divide 6, and need not";
  EXPECT_EQ(part_shape({6}, cuts), (Shape{3}));
  EXPECT_EQ(whole_shape({3}, cuts), (Shape{6}));
  EXPECT_FALSE(can_cut({8}, {{"data", 4, 0}, {.axis = "data", .size = 4, .term = true}})) << "cut by the same axis";
}

TEST(Cuts, OfOneDimLieWithinEachOther) {
  EXPECT_TRUE(can_cut({16}, {{"data", 2, 0}, {"tensor", 4, 0, 2}}));
  EXPECT_TRUE(can_cut({16}, {{"data", 2, 0, 4}, {"tensor", 4, 0}}));
  EXPECT_FALSE(can_cut({16}, {{"data", 2, 0}, {"tensor", 4, 0}})) << "both begin with the same half";
  EXPECT_FALSE(can_cut({16}, {{"data", 2, 0, 2}, {"tensor", 4, 0}}));
  EXPECT_TRUE(can_cut({16}, {{"data", 2, 0}, {"tensor", 2, 0, 4, true}}));
  EXPECT_TRUE(can_cut({16}, {{"data", 2, 0, 8}, {"tensor", 4, 0, 2, true}}));
  EXPECT_FALSE(can_cut({16}, {{"data", 2, 0}, {"tensor", 4, 0, 2, true}})) << "one of two blocks is no pair";
}

TEST(Cuts, AreMirroredInPairsOfBlocks) {
  EXPECT_TRUE(can_cut({12}, {{"data", 2, 0, 2, true}}));
  EXPECT_FALSE(can_cut({12}, {{"data", 2, 0, 1, true}}));
  EXPECT_FALSE(can_cut({12}, {{"data", 2, 0, 3, true}}));
}

TEST(ArgumentSpec, FollowsFromKindAndDimsWhereNobodySaysMore) {
  Graph graph;
  GraphBuilder g(graph);
  g.input("x", {DType::kF32, {2}});
  g.parameter("w", {DType::kF32, {2, 3}});
  g.parameter("b", {DType::kF32, {3}});
  g.state("s", {DType::kF32, {}});
  std::vector<ArgumentSpec> specs;
  for (const Argument& argument : graph.arguments()) specs.push_back(argument.spec);
  EXPECT_EQ(
      specs,
      (std::vector<ArgumentSpec>{
          {Role::kData, "", {2}}, {Role::kMatrix, "", {2, 3}}, {Role::kVector, "", {3}}, {Role::kState, "", {}}}));
}

TEST(ArgumentSpec, OfAParameterIsThatOfItsStatesAndOutlivesARewrite) {
  Graph graph = test::parse(R"(graph g { param w = %0 {global=[5,2], role="embedding"} : f32[8,2] })");
  GraphBuilder(graph).state_of(graph.find_argument("w"), "adam.m", Role::kMoment);
  Graph same = Rewriter(graph).finish();
  EXPECT_EQ(print(same), R"(graph g {
  param w = %0 {global=[5,2], role="embedding"} : f32[8,2]
  state adam.m.w = %1 {global=[5,2], of="w", role="moment"} : f32[8,2]
}
)");
  ValueId moment = graph.find_argument("adam.m.w");
  EXPECT_THROW(GraphBuilder(graph).state_of(moment, "again", Role::kMoment), InternalError);
}

// A state of another shape has none of the parameter's blocks; one of another type alone has.
TEST(ArgumentSpec, OfAStateOfItsOwnType) {
  Graph graph = test::parse(R"(graph g { param w = %0 {blocks=3, global=[5,6], role="column"} : f32[8,6] })");
  ValueId w = graph.find_argument("w");
  GraphBuilder(graph).state_of(w, "m", Role::kMoment, {DType::kBF16, {8, 6}}, {5, 6});
  GraphBuilder(graph).state_of(w, "rows", Role::kMoment, {DType::kF32, {8}}, {5});
  verify(graph);
  EXPECT_EQ(print(graph), R"(graph g {
  param w = %0 {blocks=3, global=[5,6], role="column"} : f32[8,6]
  state m.w = %1 {blocks=3, global=[5,6], of="w", role="moment"} : bf16[8,6]
  state rows.w = %2 {global=[5], of="w", role="moment"} : f32[8]
}
)");
}

TEST(ArgumentSpec, OfAShareIsPrintedAndVerified) {
  constexpr const char* kText = R"(graph g {
  param w = %0 {blocks=3, cuts="data:2@0 tensor:4@1x3", global=[5,24], role="column"} : f32[3,6]
}
)";
  Graph graph = test::parse(kText);
  EXPECT_EQ(print(graph), kText);
  EXPECT_EQ(graph.arguments()[0].spec.cuts, (std::vector<Cut>{{"data", 2, 0}, {"tensor", 4, 1, 3}}));
  for (const char* cuts : {"data:2@2", "data:2@0 tensor:2@0", "tensor:5@1x4"}) {
    Graph wrong;
    wrong.add_argument(Argument::Kind::kParameter, "w", {DType::kF32, {3, 6}},
                       {Role::kMatrix, "", {5, 24}, 1, *parse_cuts(cuts)});
    EXPECT_THROW(verify(wrong), InternalError) << cuts;
  }
  Graph blocks;
  blocks.add_argument(Argument::Kind::kParameter, "w", {DType::kF32, {5}}, {Role::kVector, "", {5}, 3});
  EXPECT_THROW(verify(blocks), InternalError);
}

TEST(ArgumentSpec, StaysWhenAPassGivesTheStorageAnotherType) {
  Graph graph = test::parse(R"(graph g { param w = %0 {role="embedding"} : f32[5,2] })");
  Graph padded = Rewriter(graph, {{0, with_type(graph.arguments()[0], {DType::kF32, {8, 2}})}}).finish();
  EXPECT_EQ(padded.shape(0), (Shape{8, 2}));
  EXPECT_EQ(padded.arguments()[0].spec, (ArgumentSpec{Role::kEmbedding, "", {5, 2}}));
}

}  // namespace
}  // namespace tokamak
