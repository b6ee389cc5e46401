#include "base/error.h"
#include "graph/rewriter.h"
#include "ops/pointwise.h"
#include "passes/pass.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace tokamak {
namespace {

const char* kGraph = R"(graph g {
  input x = %0 : f32[2,3]
  %1 = neg(%0) : f32[2,3]
  %2 = exp(%0) : f32[2,3]
  result y = %1
})";

const PassReport& report_of(const std::vector<PassReport>& reports, std::string_view name) {
  return *std::find_if(reports.begin(), reports.end(), [&](const PassReport& r) { return r.name == name; });
}

TEST(Runner, ReportsWhatChangedAndTellsTheObserver) {
  Graph graph = test::parse(kGraph);
  std::vector<std::string> seen;
  auto reports = run_passes(graph, PassStage::kStep, {}, [&](const Pass& pass, const Graph& after) {
    seen.emplace_back(pass.name);
    EXPECT_FALSE(after.nodes().empty());
  });
  const PassReport& report = report_of(reports, "form_groups");
  EXPECT_TRUE(report.changed);
  EXPECT_FALSE(report.skipped);
  auto has = [&](const std::string& op, int count) {
    return std::count(report.op_changes.begin(), report.op_changes.end(), std::pair{op, count}) == 1;
  };
  EXPECT_TRUE(has("neg", -1));
  EXPECT_TRUE(has("flat", 1));
  EXPECT_TRUE(has("group.neg", 1));
  EXPECT_NE(std::find(seen.begin(), seen.end(), "form_groups"), seen.end());
}

TEST(Runner, SkipsWhatIsDisabledByName) {
  Graph graph = test::parse(kGraph);
  PassContext context;
  for (const Pass& pass : pipeline()) context.options.disable_passes.emplace_back(pass.name);
  std::string before = print(graph);
  for (const PassReport& report : run_passes(graph, PassStage::kStep, context))
    EXPECT_TRUE(report.skipped) << report.name;
  EXPECT_EQ(print(graph), before);
}

// Of a run before they became one pass.
TEST(Runner, TakesNamesOfEarlierVersions) {
  PassContext context;
  EXPECT_TRUE(is_enabled(context, "overlap"));
  context.options.disable_passes = {"overlap_tensor"};
  EXPECT_FALSE(is_enabled(context, "overlap"));
  EXPECT_TRUE(is_enabled(context, "bucket"));
  EXPECT_NO_THROW(check_disabled_names(context.options.disable_passes));
}

TEST(Runner, RefusesUnknownNamesAndSuggestsTheNearest) {
  Graph graph = test::parse(kGraph);
  PassContext context;
  context.options.disable_passes = {"form_gruops"};
  try {
    run_passes(graph, PassStage::kStep, context);
    FAIL() << "expected a UserError";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("form_groups"), std::string::npos) << error.what();
  }
}

// What the error of a pass with these insides says.
std::string error_of(bool (*run)(Graph&, const PassContext&)) {
  Graph graph = test::parse(kGraph);
  try {
    run_pass({"clumsy", PassStage::kRewrite, Numerics::kExact, Effects::kKept, nullptr, run, ""}, graph, {});
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

void expect_both(const std::string& text, const std::string& a, const std::string& b) {
  EXPECT_NE(text.find(a), std::string::npos) << text;
  EXPECT_NE(text.find(b), std::string::npos) << text;
}

TEST(RunPass, NamesThePassAndTheNodeOfAnError) {
  std::string no_such_shape = error_of([](Graph& graph, const PassContext&) {
    GraphBuilder g(graph);
    add(g, 0, g.input("z", {DType::kF32, {4}}));
    return true;
  });
  expect_both(no_such_shape, "[pass clumsy] [add]", "(in add(%0, %3))");
  std::string not_rewritten = error_of([](Graph& graph, const PassContext&) {
    Rewriter rewriter(graph);
    rewriter.copy(graph.nodes()[1]);
    graph = rewriter.finish();
    return true;
  });
  expect_both(not_rewritten, "[pass clumsy]", "value %1 = neg(%0) has not been rewritten yet");
  std::string wrong_type = error_of([](Graph& graph, const PassContext&) {
    graph.add_node({.op = &op::exp, .inputs = {0}}, {{DType::kBF16, {2, 3}}});
    return true;
  });
  expect_both(wrong_type, "[pass clumsy]", "(in %3 = exp(%0))");
}

TEST(RunPass, NamesThePassOfErrorsOfTheLibrary) {
  std::string text = error_of([](Graph&, const PassContext&) { return std::vector<int>().at(0) == 1; });
  expect_both(text, "[pass clumsy]", "vector");
}

TEST(Pipeline, NamesAndSummariesAreGiven) {
  for (const Pass& pass : pipeline()) {
    EXPECT_FALSE(pass.name.empty());
    EXPECT_FALSE(pass.summary.empty()) << pass.name;
    EXPECT_TRUE(pass.enabled && pass.run) << pass.name;
  }
}

}  // namespace
}  // namespace tokamak
