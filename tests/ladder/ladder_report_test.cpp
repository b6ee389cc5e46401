#include "ladder/ladder_report.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ladder/mesh_table.h"
#include "pages/html.h"
#include "pages/ladder_html.h"

#include <algorithm>
#include <sstream>

namespace tokamak {
namespace {

RungResult rung(std::string name, double ms) {
  RungResult r;
  r.name = std::move(name);
  r.precision = Precision::kBf16;
  r.ms = ms;
  r.predicted_ms = ms * 1.1;
  r.tokens_per_second = 65536 / ms * 1e3;
  r.speedup_step = 1.25;
  r.speedup_total = 12.5;
  r.mfu = 0.571;
  r.mfu_causal = 0.533;
  r.peak = peak_of({.name = "NVIDIA H200"}, Precision::kBf16);
  r.planned_bytes = int64_t(24) << 30;
  r.used_bytes = int64_t(25) << 30;
  r.first_step_ms = 1500;
  return r;
}

LadderReport example() {
  LadderReport report;
  report.target.name = "NVIDIA H200";
  report.versions = "driver 580, cuBLASLt 13.1 & <more>";
  report.command = "tokamak ladder '--train.out=a b'";
  report.date = "2026-01-02 03:04 UTC";
  report.config.train.batch = 64;
  report.epoch_tokens = 9'000'000'000;
  report.rungs = {rung("+ BF16 autocast", 144.5), rung("+ <fused> optimizer", 99.25), rung("weight tying off", 101),
                  rung("fp32, op by op", 1)};
  report.rungs[2].optional = true;
  report.rungs[2].kept = false;
  report.rungs[3].kept = false;
  report.rungs[3].failure = "does not fit (needs 151.20 GiB, 139.00 GiB are free)";
  return report;
}

// On four ranks: one that ran, one that does not fit the model.
LadderReport with_meshes() {
  LadderReport report = example();
  MeshResult data{.rung = {"data 4, ZeRO 3", {.data = 4, .zero = 3}}, .ranks = 4, .sequences = 256};
  data.run = rung("data 4, ZeRO 3", 100);
  data.run.speedup_total = 3.9;
  data.predicted_exposed_ms = 1.25;
  data.exposed_ms = 1.5;
  MeshResult tensor{.rung = {"tensor 4", {.data = 1, .tensor = 4}}, .ranks = 4, .sequences = 256, .run = {}};
  tensor.run.name = "tensor 4";
  tensor.run.failure = "[mesh.tensor] expected a divisor of model.heads = 6, got 4";
  report.meshes = {data, tensor};
  return report;
}

int count(std::string_view text, std::string_view piece) {
  int n = 0;
  for (size_t at = text.find(piece); at != std::string_view::npos; at = text.find(piece, at + 1)) ++n;
  return n;
}

TEST(LadderReport, JsonHoldsEverything) {
  auto json = nlohmann::json::parse(ladder_json(example()));
  EXPECT_EQ(json["machine"]["name"], "NVIDIA H200");
  EXPECT_EQ(json["machine"]["versions"], "driver 580, cuBLASLt 13.1 & <more>");
  EXPECT_EQ(json["command"], "tokamak ladder '--train.out=a b'");
  EXPECT_EQ(json["date"], "2026-01-02 03:04 UTC");
  EXPECT_EQ(json["config"]["train"]["batch"], 64);
  EXPECT_EQ(json["model"]["flops_per_token"], 855'166'464);
  ASSERT_EQ(json["rungs"].size(), 4u);
  const auto& top = json["rungs"][1];
  EXPECT_EQ(top["ms"], 99.25);
  EXPECT_NEAR(top["prediction_error"].get<double>(), 0.1, 1e-9);
  EXPECT_EQ(top["mfu"], 0.571);
  EXPECT_EQ(top["mfu_causal"], 0.533);
  EXPECT_EQ(top["peak"], "989 TFLOP/s (H200 datasheet, bf16 dense)");
  for (const char* key : {"predicted_ms", "tokens_per_second", "speedup_over_previous", "speedup_over_first",
                          "planned_bytes", "used_bytes", "first_step_ms", "micro_batches", "peak_flops"})
    EXPECT_GT(top[key].get<double>(), 0) << key;
  EXPECT_DOUBLE_EQ(top["tokens_in_five_minutes"].get<double>(), 300 * top["tokens_per_second"].get<double>());
  EXPECT_DOUBLE_EQ(top["epoch_hours"].get<double>(), 9e9 / top["tokens_per_second"].get<double>() / 3600);
  EXPECT_TRUE(json["rungs"][2]["optional"].get<bool>());
  EXPECT_FALSE(json["rungs"][3].contains("ms"));
  EXPECT_EQ(json["rungs"][3]["failure"], example().rungs[3].failure);
}

TEST(LadderReport, TheTableFitsATerminal) {
  RungResult wide = rung("recompute (memory budget)", 12345.67);
  wide.optional = true;
  wide.kept = false;
  wide.predicted_ms = 99999.5;
  wide.planned_bytes = wide.used_bytes = int64_t(140000) << 20;
  wide.first_step_ms = 123456;
  RungResult slower = wide;
  slower.optional = false;
  slower.repeats = {12345.67, 13456.78, 12000};
  slower.repeats_before = {12345.67, 11111.11, 12222.22};
  RungResult unlucky = wide;
  unlucky.failure = std::string(500, 'x');
  std::istringstream lines(fmt::format("{}\n{}\n{}\n{}", format_ladder_header(), format_rung(wide), format_rung(slower),
                                       format_rung(unlucky)));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << line;
  EXPECT_NE(format_rung(slower).find("3 times in turns with the rung before: 12345.67 (12000.00 to 13456.78), that one "
                                     "12222.22 (11111.11 to 12345.67) ms"),
            std::string::npos)
      << format_rung(slower);
  EXPECT_NE(format_rung(wide).find("aside"), std::string::npos);
  EXPECT_NE(format_rung(slower).find("slower"), std::string::npos);
}

TEST(LadderReport, WhatALoadUsedIsALineBelow) {
  RungResult loaded = rung("the top, after 10 s of it", 100);
  EXPECT_EQ(format_rung(loaded).find("mJ"), std::string::npos);
  loaded.tokens_per_second = 650e3;
  loaded.joules_per_token = 1.0625e-3;
  EXPECT_TRUE(format_rung(loaded).ends_with("\n  1.062 mJ a token, 691 W")) << format_rung(loaded);
  LadderReport report = example();
  report.rungs = {loaded};
  EXPECT_EQ(nlohmann::json::parse(ladder_json(report))["rungs"][0]["joules_per_token"], 1.0625e-3);
}

TEST(LadderReport, TheLegendExplainsOnlyWhatIsThere) {
  std::string text = format_ladder_legend(example().rungs);
  EXPECT_NE(text.find("989 TFLOP/s"), std::string::npos);
  EXPECT_NE(text.find("aside:"), std::string::npos);
  EXPECT_EQ(text.find("slower:"), std::string::npos);
  EXPECT_EQ(count(text, "peak:"), 1) << "each once";
  EXPECT_EQ(text.find("more than 100%"), std::string::npos);
  LadderReport beyond = example();
  beyond.rungs[0].mfu = 1.1;
  EXPECT_NE(format_ladder_legend(beyond.rungs).find("more than 100%:"), std::string::npos);
}

TEST(LadderReport, AMeshIsComparedWithOneRank) {
  auto json = nlohmann::json::parse(ladder_json(with_meshes()));
  ASSERT_EQ(json["meshes"].size(), 2u);
  const auto& data = json["meshes"][0];
  EXPECT_EQ(data["speedup_over_one"], 3.9);
  EXPECT_DOUBLE_EQ(data["efficiency"].get<double>(), 3.9 / 4);
  EXPECT_EQ(data["predicted_exposed_ms"], 1.25);
  EXPECT_EQ(data["exposed_ms"], 1.5);
  EXPECT_EQ(data["sequences"], 256);
  EXPECT_EQ(data["zero"], 3);
  EXPECT_FALSE(data.contains("kept"));
  EXPECT_EQ(json["meshes"][1]["failure"], with_meshes().meshes[1].run.failure);
  EXPECT_FALSE(json["meshes"][1].contains("planned_bytes"));
  EXPECT_FALSE(nlohmann::json::parse(ladder_json(example())).contains("meshes"));
}

TEST(LadderReport, WithoutARunOfOneRankNothingIsCompared) {
  MeshResult mesh = with_meshes().meshes[0];
  mesh.run.speedup_total = 0;
  EXPECT_EQ(format_speedup(mesh), "-");
  EXPECT_EQ(format_efficiency(mesh), "-");
}

TEST(LadderReport, WhatWasNotMeasuredIsNotShown) {
  MeshResult mesh = with_meshes().meshes[0];
  mesh.exposed_ms.reset();
  EXPECT_EQ(format_exposed(mesh), "-");
  LadderReport report = with_meshes();
  report.meshes = {mesh};
  EXPECT_FALSE(nlohmann::json::parse(ladder_json(report))["meshes"][0].contains("exposed_ms"));
}

TEST(LadderReport, TheTableOfMeshesFitsATerminal) {
  MeshResult wide = with_meshes().meshes[0];
  wide.run.ms = 12345.67;
  wide.run.predicted_ms = 99999.5;
  wide.run.tokens_per_second = 12345678;
  wide.run.planned_bytes = wide.run.used_bytes = int64_t(140000) << 20;
  wide.exposed_ms = wide.predicted_exposed_ms = 9999.99;
  EXPECT_LE(format_mesh_header().size(), 120u);
  EXPECT_LE(format_mesh_result(wide).size(), 120u) << format_mesh_result(wide);
  EXPECT_NE(format_mesh_result(with_meshes().meshes[1]).find("skipped: [mesh.tensor]"), std::string::npos);
}

TEST(LadderHtml, MeshesHaveAChartAndATableOfTheirOwn) {
  std::string html = ladder_html(with_meshes()), without = ladder_html(example());
  EXPECT_EQ(count(html, "<table>"), 2);
  EXPECT_EQ(count(without, "<table>"), 1);
  EXPECT_EQ(count(html, "<i class=\"measured\" style"), 2 + 2) << "the best rung of one rank, and a mesh";
  EXPECT_NE(html.find("one rank: + &lt;fused&gt; optimizer"), std::string::npos);
  EXPECT_NE(html.find("<td data-column=\"efficiency\">97.5%</td>"), std::string::npos);
  EXPECT_NE(html.find("expected a divisor of model.heads = 6"), std::string::npos);
}

TEST(LadderHtml, OpensWithoutNetworkOrScript) {
  std::string html = ladder_html(example());
  for (const char* piece : {"http:", "https:", "<script", "<link", "<img", "url(", "@import"})
    EXPECT_EQ(html.find(piece), std::string::npos) << piece;
}

TEST(LadderHtml, OneBarForEveryRungThatRan) {
  std::string html = ladder_html(example());
  EXPECT_EQ(count(html, "<i class=\"measured\" style"), 2);
  EXPECT_EQ(count(html, "<i class=\"measured aside\" style"), 1);
  EXPECT_EQ(count(html, "<i class=\"predicted\" style"), 3);
  EXPECT_EQ(count(html, "<tr"), 5) << "a head and four rungs";
  EXPECT_NE(html.find("does not fit (needs 151.20 GiB"), std::string::npos);
}

// The longest bar takes the whole width, here the prediction of the fast one.
TEST(LadderHtml, BarsAreAsLongAsTheirRate) {
  RungResult slow = rung("slow", 200), fast = rung("fast", 100);
  fast.predicted_ms = 50;
  std::string chart = ladder_chart({slow, fast});
  EXPECT_NE(chart.find("<i class=\"measured\" style=\"width:25.00%\""), std::string::npos) << chart;
  EXPECT_NE(chart.find("<i class=\"measured\" style=\"width:50.00%\""), std::string::npos);
  EXPECT_NE(chart.find("<i class=\"predicted\" style=\"width:100.00%\""), std::string::npos);
}

// Behind a bar a number would stand at the end of whichever is the longer, and seem to belong to it.
TEST(LadderHtml, NoLetterStandsBetweenTheBars) {
  std::string chart = ladder_chart({rung("slow", 200)});
  size_t bars = chart.find("<span class=\"bars\">"), end = chart.find("</span>", bars);
  ASSERT_NE(end, std::string::npos) << chart;
  bool in_tag = false;
  for (char c : chart.substr(bars, end - bars)) {
    EXPECT_TRUE(in_tag || c == '<') << chart;
    in_tag = c != '>';
  }
  EXPECT_TRUE(std::string_view(chart).substr(end).starts_with("</span><span class=\"rate\">328k, 12.50x</span>"));
}

// Seen in a browser at 320 to 1280 px. What would make it wide: letters in a drawing, a least width, text that may not
// be broken.
TEST(LadderHtml, NothingNeedsToBeScrolledSideways) {
  LadderReport report = example();
  report.command = std::string(500, 'x');
  std::string html = ladder_html(report);
  for (const char* piece : {"<svg", "overflow-x", "white-space: pre;"})
    EXPECT_EQ(html.find(piece), std::string::npos) << piece;
  for (const char* piece : {"width=device-width", "overflow-wrap: anywhere", "white-space: pre-wrap"})
    EXPECT_NE(html.find(piece), std::string::npos) << piece;
}

// Where the table becomes blocks its head is not shown.
TEST(LadderHtml, EveryNumberHasItsColumnsName) {
  std::string html = ladder_html(example());
  for (const char* name : {"ms", "predicted", "tokens/s", "MFU causal", "used MiB", "first step"}) {
    EXPECT_EQ(count(html, std::string("<td data-column=\"") + name + "\">"), 3) << name;
    EXPECT_EQ(count(html, std::string("<th>") + name + "</th>"), 1) << name;
  }
  EXPECT_EQ(count(html, "<td data-column"), 3 * 12) << "rungs that ran, by columns";
}

TEST(LadderHtml, TextIsEscaped) {
  EXPECT_EQ(escape_html("a<b & \"c\" > 'd'"), "a&lt;b &amp; &quot;c&quot; &gt; &#39;d&#39;");
  std::string html = ladder_html(example());
  EXPECT_EQ(html.find("<fused>"), std::string::npos);
  EXPECT_EQ(html.find("<more>"), std::string::npos);
  EXPECT_NE(html.find("+ &lt;fused&gt; optimizer"), std::string::npos);
}

TEST(LadderHtml, NothingMeasuredIsStillAPage) {
  LadderReport report = example();
  report.rungs = {report.rungs[3]};
  std::string html = ladder_html(report);
  EXPECT_EQ(count(html, "<i class=\"measured\" style"), 0);
  EXPECT_EQ(html.find("nan"), std::string::npos);
  EXPECT_EQ(html.find("inf"), std::string::npos);
}

}  // namespace
}  // namespace tokamak
