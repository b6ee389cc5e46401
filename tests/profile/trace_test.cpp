#include "profile/trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <map>

#include "backend/cpu/cpu_backend.h"
#include "backend/ranks/inprocess.h"
#include "base/file.h"
#include "base/parallel.h"
#include "config/config.h"
#include "graph/builder.h"
#include "passes/step_mesh.h"
#include "profile/gzip.h"
#include "profile/profile_run.h"
#include "tests/support/expect_error.h"
#include "tests/support/graph_text.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

// A plan of two products on one stream and a collective beside the second.
Plan small_plan() {
  Graph graph = test::parse(R"(graph step {
    input x = %0 : f32[64,64]
    param w = %1 : f32[64,64]
    %2 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[64,64]
    %3 = all_reduce(%2) {axis="data", reduction="sum", size=2} : f32[64,64]
    %4 = matmul(%2, %1) {trans_a=false, trans_b=false} : f32[64,64]
    result a = %3
    result b = %4
  })");
  Target target;
  target.streams = 2;
  return make_plan(std::move(graph), Platform(target));
}

RecordedWork launch(const Plan& plan, int index, double begin, double end) {
  return {.kind = Work::Kind::kLaunch,
          .plan = &plan,
          .index = index,
          .stream = plan.launches[size_t(index)].stream,
          .begin = begin,
          .end = end,
          .asked = begin - 0.5,
          .asked_until = begin - 0.4};
}

// Two steps of it, from 1 s and from 11 s on.
StepProfile two_steps(const Plan& plan) {
  StepProfile profile{.steps = 2, .seconds = 20};
  for (double at : {1.0, 11.0}) {
    profile.works.push_back(
        {.kind = Work::Kind::kRun, .plan = &plan, .begin = at, .end = at + 5, .asked = at, .asked_until = at + 1});
    for (int i = 0; i < 3; ++i) profile.works.push_back(launch(plan, i, at + i, at + i + 1));
    profile.data_waits.push_back({at - 0.25, at});
  }
  profile.workers = {{.worker = 1, .begin = 0.25, .end = 0.75}};
  profile.sensors = {{0.5, {.clock_mhz = 1500, .watts = 300}}};
  return profile;
}

std::vector<nlohmann::json> parsed(const std::vector<std::string>& lines) {
  std::vector<nlohmann::json> events;
  for (const std::string& line : lines) events.push_back(nlohmann::json::parse(line));
  return events;
}

TEST(Trace, HasAThreadForEachStreamAndWhatAKernelIs) {
  Plan plan = small_plan();
  ASSERT_EQ(plan.streams.size(), 2u);
  std::map<int, std::string> threads;
  std::multimap<std::string, nlohmann::json> spans;
  for (const nlohmann::json& event : parsed(trace_events(two_steps(plan), 3, 0.125))) {
    EXPECT_EQ(event["pid"], 3);
    if (event["name"] == "thread_name") threads[event["tid"]] = event["args"]["name"];
    if (event["ph"] == "X") spans.emplace(event["name"], event);
  }
  EXPECT_EQ(threads[1000], "stream compute");
  EXPECT_EQ(threads[1001], "stream communication");
  ASSERT_EQ(spans.count("all_reduce"), 4u) << "on its stream and on the host, in each step";
  for (auto [at, end] = spans.equal_range("all_reduce"); at != end; ++at) {
    const nlohmann::json& event = at->second;
    if (event["cat"] == "asked for") continue;
    EXPECT_EQ(event["cat"], "communication");
    EXPECT_EQ(event["tid"], 1001);
    EXPECT_EQ(event["dur"], 1e6);
    EXPECT_EQ(event["args"]["axis"], "data");
    EXPECT_EQ(event["args"]["sent_bytes"], 64 * 64 * 4);
  }
  EXPECT_EQ(spans.count("wait for data"), 2u);
  ASSERT_EQ(spans.count("make a batch"), 1u);
  EXPECT_EQ(threads[spans.find("make a batch")->second["tid"]], "data worker 1");
  EXPECT_EQ(spans.find("matmul")->second["ts"], 1e6 * (0.5 + 0.125)) << "asked for, in rank 0's time";
}

TEST(Trace, ShowsMemoryAndSensorsOverTime) {
  Plan plan = small_plan();
  std::vector<double> mib, mhz;
  for (const nlohmann::json& event : parsed(trace_events(two_steps(plan), 0, 0))) {
    if (event["ph"] != "C") continue;
    if (event["name"] == "arena") mib.push_back(event["args"]["MiB"]);
    if (event["name"] == "clock") mhz.push_back(event["args"]["MHz"]);
  }
  EXPECT_EQ(mib.size(), 6u);
  EXPECT_EQ(*std::max_element(mib.begin(), mib.end()), double(plan.arena_bytes) / double(1 << 20));
  EXPECT_EQ(mhz, std::vector{1500.0});
}

TEST(Trace, IsBoundedInStepsAndEvents) {
  Plan plan = small_plan();
  for (const nlohmann::json& event : parsed(trace_events(two_steps(plan), 0, 0, {.steps = 1})))
    if (event.contains("ts")) {
      EXPECT_LT(event["ts"], 11e6) << event;
    }
  std::vector<std::string> few = trace_events(two_steps(plan), 0, 0, {.events = 4});
  int timed = 0;
  for (const nlohmann::json& event : parsed(few)) timed += event.contains("ts");
  EXPECT_EQ(timed, 4);
  EXPECT_NE(few[0].find("left out"), std::string::npos) << few[0];
}

TEST(Trace, OfAMeshHasItsRanksAsProcessesOfOneClock) {
  set_num_threads(1);
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 32, .context = 16, .vocab = 61};
  config.train.batch = 4;
  config.compile.precision = Precision::kFp32;
  config.mesh.data = 2;
  ProfileReport report;
  run_ranks(2, [&](Communicator& world) {
    MeshRanks ranks(step_mesh(config.mesh), world);
    auto backend = cpu::make_backend(2);
    ProfileReport mine = profile_run(config, cpu::nominal_platform(1), *backend, &ranks,
                                     {.steps = {.steps = 2, .warmup = 1}, .traces = true});
    if (leads(&ranks)) report = mine;
  });
  set_num_threads(0);
  auto trace = nlohmann::json::parse(format_trace(report.trace, "tokamak profile 'a \"b\"'"));
  EXPECT_EQ(trace["otherData"]["command"], "tokamak profile 'a \"b\"'");
  std::map<int, std::vector<double>> ends;  // of collectives, by rank
  for (const nlohmann::json& event : trace["traceEvents"])
    if (event["ph"] == "X" && event["cat"] == "communication")
      ends[event["pid"]].push_back(event["ts"].get<double>() + event["dur"].get<double>());
  ASSERT_EQ(ends.size(), 2u);
  ASSERT_EQ(ends[0].size(), ends[1].size());
  // A collective ends nowhere before it began everywhere, so that clocks may differ by no more than a step.
  EXPECT_NEAR(ends[0].back(), ends[1].back(), 1e6 * report.ranks[0].seconds);
}

// A viewer drops what happens before 0.
TEST(Trace, BeginsWithTheRankThatBeginsFirst) {
  Plan plan = small_plan();
  std::vector<std::string> events;
  run_ranks(2, [&](Communicator& world) {
    MeshRanks ranks(Mesh{{{"data", 2}}}, world);
    StepProfile profile = two_steps(plan);
    profile.start_seconds = ranks.rank() == 0 ? 100 : 97;
    std::vector<std::string> all = gather_trace(profile, &ranks);
    if (leads(&ranks)) events = all;
  });
  std::map<int, double> first{{0, 1e9}, {1, 1e9}};
  auto trace = nlohmann::json::parse(format_trace(events, ""));
  for (const nlohmann::json& event : trace["traceEvents"])
    if (event.contains("ts")) first[event["pid"]] = std::min<double>(first[event["pid"]], event["ts"]);
  EXPECT_EQ(first[1], 0.25e6) << "a batch that is made";
  EXPECT_EQ(first[0], 3.25e6);
}

TEST(Trace, ShowsWhatTheLoadersThreadsDo) {
  TemporaryFolder folder;
  test::make_tiny_data(folder.path());
  RunConfig config = test::tiny_config(folder.path());
  config.model.vocab = 301;
  config.data.workers = 2;
  auto backend = cpu::make_backend();
  ProfileReport report = profile_run(config, cpu::nominal_platform(), *backend, nullptr,
                                     {.steps = {.steps = 20, .warmup = 1}, .traces = true, .reads_data = true});
  int made = 0;
  auto trace = nlohmann::json::parse(format_trace(report.trace, ""));
  for (const nlohmann::json& event : trace["traceEvents"])
    if (event["name"] == "make a batch") {
      EXPECT_GE(event["tid"], 1110);
      ++made;
    }
  EXPECT_GT(made, 0);
}

// On one stream spans follow one another, or one is within the other: what a viewer needs.
TEST(Trace, SpansOfAThreadNest) {
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 32, .context = 16, .vocab = 61};
  config.compile.precision = Precision::kFp32;
  auto backend = cpu::make_backend();
  ProfileReport report = profile_run(config, cpu::nominal_platform(), *backend, nullptr,
                                     {.steps = {.steps = 2, .warmup = 1}, .traces = true});
  std::map<int, std::vector<std::pair<double, double>>> open;
  auto trace = nlohmann::json::parse(format_trace(report.trace, ""));
  for (const nlohmann::json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    double begin = event["ts"], end = begin + event["dur"].get<double>();
    auto& stack = open[event["tid"]];
    while (!stack.empty() && stack.back().second <= begin + 1e-3) stack.pop_back();
    if (!stack.empty()) {
      EXPECT_LE(end, stack.back().second + 1e-3) << event;
    }
    stack.emplace_back(begin, end);
  }
}

TEST(TraceFile, IsCompressedWhereItsNameSaysSo) {
  TemporaryFolder folder;
  write_trace(folder / "a.json", "[1]");
  EXPECT_EQ(read_file(folder / "a.json"), "[1]");
  if (!has_gzip()) GTEST_SKIP() << "built without zlib";
  write_trace(folder / "a.json.gz", std::string(100'000, ' '));
  std::string packed = read_file(folder / "a.json.gz");
  EXPECT_EQ(packed.substr(0, 2), "\x1f\x8b");
  EXPECT_LT(packed.size(), 1000u);
  check_trace_file("a.json.gz");
}

TEST(TraceFile, RefusesOtherNames) {
  EXPECT_THROW(check_trace_file("trace.html"), UserError);
  check_trace_file("trace.json");
}

}  // namespace
}  // namespace tokamak
