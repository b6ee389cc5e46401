#include "graph/text.h"

#include "base/error.h"
#include "graph/builder.h"
#include "ops/generate.h"
#include "tests/support/expect_error.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace tokamak::test {
namespace {

constexpr std::string_view kStep = R"(graph step {
  input tokens = %0 : i32[2,8]
  param wte.weight = %1 {global=[11,4], role="embedding"} : f32[16,4]
  state adam.m = %2 {global=[11,4], of="wte.weight", role="moment"} : f32[16,4]
  %3 = embedding(%1, %0) : f32[2,8,4]
  %4 = reduce_sum(%3) {dims=[0,1], keep=false} #backward : f32[4]
  %5, %6, %7 = layer_norm(%3, %4) {eps=1e-05} #keep_whole #recompute #update : f32[2,8,4], f32[2,8,1], f32[2,8,1]
  %8 = reduce_sum(%5) {dims=[0,1,2], keep=false} : f32[]
  %9 = add(%1, %2) : f32[16,4]
  result loss = %8
  result mean = %6
  update %1 = %9
}
)";

constexpr std::string_view kGroup = R"(graph main {
  input x = %0 : bf16[2,3]
  %1, %2 = row(%0) #recompute : f32[2,3], f32[2,1] {
    graph body {
      input a = %0 : bf16[2,3]
      %1 = cast(%0) {to="f32"} : f32[2,3]
      %2 = reduce_max(%1) {dims=[1], keep=true} : f32[2,1]
      %3 = sub(%1, %2) : f32[2,3]
      result r0 = %3
      result r1 = %2
    }
  }
  %3 = exp(%1) : f32[2,3]
  result y = %3
  result top = %2
}
)";

void expect_parse_error(std::string_view text, std::initializer_list<std::string> pieces) {
  expect_user_error([&] { parse(text); }, pieces);
}

TEST(GraphText, PrintsWhatItParsed) {
  EXPECT_EQ(print(parse(kStep)), kStep);
  EXPECT_EQ(print(parse(kGroup)), kGroup);
  EXPECT_EQ(print(parse("graph empty {\n}\n")), "graph empty {\n}\n");
}

TEST(GraphText, NumbersAreNamesOnly) {
  Graph graph = parse("graph g { input x = %7 : f32[2] %40 = neg(%7) : f32[2] %3 = exp(%40) : f32[2] result y = %3 }");
  EXPECT_EQ(
      print(graph),
      "graph g {\n  input x = %0 : f32[2]\n  %1 = neg(%0) : f32[2]\n  %2 = exp(%1) : f32[2]\n  result y = %2\n}\n");
}

TEST(GraphText, KeepsKindsPhasesDecisionsAndUpdates) {
  Graph graph = parse(kStep);
  EXPECT_EQ(graph.arguments()[0].kind, Argument::Kind::kInput);
  EXPECT_EQ(graph.arguments()[1].kind, Argument::Kind::kParameter);
  EXPECT_EQ(graph.arguments()[2].kind, Argument::Kind::kState);
  const Node &plain = graph.nodes()[0], &backward = graph.nodes()[1], &update = graph.nodes()[2];
  EXPECT_EQ(plain.phase, Phase::kForward);
  EXPECT_EQ(backward.phase, Phase::kBackward);
  EXPECT_EQ(update.phase, Phase::kUpdate);
  EXPECT_TRUE(update.keep_whole && update.recompute && !backward.keep_whole && !backward.recompute);
  ASSERT_EQ(graph.updates().size(), 1u);
  EXPECT_EQ(graph.updates()[0].target, graph.find_argument("wte.weight"));
}

TEST(GraphText, DoublesKeepTheirBits) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (double value : {0.0, 1.0, -2.0, 0.1, 1.0 / 3, 1e300, 5e-324, 1e20, -kInf, kInf}) {
    Graph graph;
    GraphBuilder g(graph);
    graph.add_result("y", constant(g, value));
    EXPECT_EQ(parse(print(graph)).nodes()[0].attrs.get_double("value"), value) << print(graph);
  }
}

// A record with attributes of every type.
constexpr AttrDef kManyAttrs[] = {{"b"}, {"d"}, {"i"}, {"list"}, {"s"}, {"t"}};
constinit const OpDef kMany = {
    .name = "many", .min_inputs = 0, .max_inputs = 0, .attrs = kManyAttrs, .infer = [](const NodeSpec&) {
      return ValueTypes{{DType::kF32, {}}};
    }};

TEST(GraphText, EveryTypeOfAttributeSurvives) {
  Graph graph("g");
  GraphBuilder g(graph);
  Attrs attrs{{"b", true},
              {"d", 3.0},
              {"i", int64_t(-3)},
              {"list", std::vector<int64_t>{}},
              {"s", std::string("a \"b\" \\ {%1}")},
              {"t", std::string()}};
  graph.add_result("y", g.add1(kMany, {}, attrs));
  auto lookup = [](std::string_view name) { return name == "many" ? &kMany : nullptr; };
  Graph back = parse_graph(print(graph), lookup);
  EXPECT_EQ(back.nodes()[0].attrs, attrs) << print(graph);
  EXPECT_EQ(print(back), print(graph));
}

TEST(GraphText, ErrorsNameTheLine) {
  expect_parse_error("graph g {\n  input x = %0 : f32[2]\n  %1 = nag(%0) : f32[2]\n}\n",
                     {"[graph text] line 3: expected the name of an op, got 'nag'"});
  expect_parse_error("graph g {\n  input x = %0 : f32[2]\n  %1 = neg(%4) : f32[2]\n}\n",
                     {"line 3: expected a value defined above, got '%4'"});
  expect_parse_error("graph g {\n  input x = %0 : f32[2]\n  input y = %0 : f32[2]\n}\n",
                     {"line 3: expected a value not defined yet, got '%0'"});
  expect_parse_error("graph g {\n  input x = %0 : f32[2]\n  %1 = neg(%0) : f32[3]\n}\n",
                     {"line 3: expected output 0 of neg to be f32[2], got 'f32[3]'"});
  expect_parse_error("graph g {\n  input x = %0 : f32[2]\n  %1, %2 = neg(%0) : f32[2], f32[2]\n}\n",
                     {"line 3: expected 1 outputs of neg, got '2'"});
  expect_parse_error("graph g {\n  input x = %0 : f32[2]\n  %1 = neg(%0) : f32[2], f32[2]\n}\n",
                     {"line 3: expected 1 types after neg, got '2'"});
  expect_parse_error("graph g {\n  input x = %0 : f32[2]\n  %1 = neg(%0, %0) : f32[2]\n}\n",
                     {"line 3: [neg] expected 1 to 1 inputs, got 2"});
  expect_parse_error("graph g {\n  imput x = %0 : f32[2]\n}\n",
                     {"line 2: expected input, param, state", "got 'imput'"});
  expect_parse_error("graph g {\n  input x = %0 : f32[2,]\n}\n", {"line 2: expected a word"});
  expect_parse_error("graph g {\n  input x = %0 : f32[two]\n}\n", {"line 2: expected an integer, got 'two'"});
  expect_parse_error("graph g {\n  input x : f32[2]\n}\n", {"line 2: expected '=', got ': f32[2]'"});
  expect_parse_error("graph g {\n  param w = %0 {role=\"wte\"} : f32[2]\n}\n",
                     {"line 2: expected role=", "of=", "global=", "got 'role=\"wte\"'"});
  expect_parse_error("graph g {\n  param w = %0 {global=2} : f32[2]\n}\n", {"line 2", "got 'global=2'"});
}

TEST(GraphText, RefusesTextThatIsNoGraph) {
  expect_parse_error("", {"line 1: expected 'graph'"});
  expect_parse_error("graph g {\n", {"line 2"});
  expect_parse_error("graph g {\n}\nmore", {"line 3: expected the end of the text, got 'more'"});
  expect_parse_error("graph g {\n  input x = %0 : f64[2]\n}\n",
                     {"expected f32, bf16, f16, i32, u8, f8e4m3 or f8e5m2, got 'f64'"});
  expect_parse_error("graph g {\n  %0 = constant() {dtype=\"f32, shape=[], value=1.0} : f32[]\n}\n",
                     {"a closing quote"});
  expect_parse_error("graph g {\n  %0 = constant() {dtype=\"f32\\", {"a closing quote"});
}

TEST(GraphText, PrintsOneNode) {
  Graph graph = parse(kStep);
  EXPECT_EQ(print(graph, graph.nodes()[1]), "%4 = reduce_sum(%3) {dims=[0,1], keep=false} #backward : f32[4]");
}

}  // namespace
}  // namespace tokamak::test
