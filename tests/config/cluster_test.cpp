#include "config/cluster.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/expect_error.h"

namespace tokamak {
namespace {

constexpr const char* kMine = R"(
name = "mine"
gpus_per_node = 4
nodes = 1
node_power = {value = 3000, source = "the meter at the wall"}

[gpu]
model = "a100-80gb"
memory_bytes = {value = 80e9, source = "a guess of mine"}

[within]
bandwidth = {value = 200e9, source = "nccl-tests"}
latency = {value = 20e-6, source = "nccl-tests"}
)";

std::string without(std::string text, const std::string& line) {
  size_t at = text.find(line);
  EXPECT_NE(at, text.npos) << line;
  return text.erase(at, text.find('\n', at) - at);
}

TEST(Cluster, ThoseThatTheProgramCarriesCanBeRead) {
  std::vector<std::string> names = cluster_names();
  for (const char* name : {"colab-a100", "dgx-a100", "dgx-h100", "h200", "leonardo", "rtx-4090"})
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  for (const std::string& name : names) {
    ClusterConfig cluster = read_cluster(name);
    EXPECT_FALSE(cluster.summary.empty()) << name;
    // A GPU is not said to take less than the whole machine does for it.
    EXPECT_GE(cluster.node_power.value, cluster.gpu.power.value * double(cluster.gpus_per_node)) << name;
  }
}

TEST(Cluster, FiguresBesideAModelReplaceItsOwn) {
  ClusterConfig cluster = parse_cluster(kMine, "mine.toml");
  EXPECT_EQ(cluster.gpus_per_node, 4);
  EXPECT_EQ(cluster.gpu.name, "A100-SXM4-80GB");
  EXPECT_EQ(cluster.gpu.half_flops.value, 312e12);
  EXPECT_EQ(cluster.gpu.memory_bytes.value, 80e9);
  EXPECT_EQ(cluster.gpu.memory_bytes.source, "a guess of mine");
  EXPECT_FALSE(cluster.price.is_known());
}

TEST(Cluster, AFigureWithoutASourceIsRefused) {
  std::string text = kMine;
  text.replace(text.find(", source = \"the meter"), std::string(", source = \"the meter at the wall\"").size(), "");
  expect_user_error([&] { parse_cluster(text, "mine.toml"); },
                    {"[mine.toml: node_power] expected where the figure comes from", "source = "});
}

TEST(Cluster, WhatAPlanNeedsIsRequired) {
  expect_user_error([&] { parse_cluster(without(kMine, "latency"), "mine.toml"); }, {"[mine.toml: within.latency]"});
  expect_user_error([&] { parse_cluster(without(kMine, "nodes"), "mine.toml"); }, {"[mine.toml: between.bandwidth]"});
  expect_user_error([&] { parse_cluster(without(kMine, "model"), "mine.toml"); }, {"[mine.toml: gpu.half_flops]"});
  expect_user_error([&] { read_cluster("h20"); }, {"[cluster] expected", "did you mean 'h200'"});
}

TEST(Cluster, APowerOfANodeIsInWatts) {
  std::string text = kMine;
  text.replace(text.find("value = 3000"), std::string("value = 3000").size(), "value = 3");
  expect_user_error([&] { parse_cluster(text, "mine.toml"); }, {"[mine.toml: node_power] expected watts", "got 3;"});
}

TEST(Cluster, AFigureInAnotherUnitIsRefused) {
  auto with = [](std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  };
  expect_user_error([&] { parse_cluster(with(kMine, "20e-6", "20"), "mine.toml"); },
                    {"[mine.toml: within.latency] expected seconds, 1e-09 to 1, got 20"});
  expect_user_error([&] { parse_cluster(with(kMine, "200e9", "200"), "mine.toml"); },
                    {"[mine.toml: within.bandwidth] expected bytes/s", "got 200"});
  std::string sums = with(kMine, "[within]\n", "[within]\nsums = {value = 275, source = \"GB/s\"}\n");
  expect_user_error([&] { parse_cluster(sums, "mine.toml"); },
                    {"[mine.toml: within.sums] expected bytes/s", "got 275"});
}

TEST(Cluster, FailuresCanBeSaidInSeconds) {
  auto with = [](const std::string& line) { return kMine + ("\n[failures]\n" + line); };
  ClusterConfig cluster = parse_cluster(with("mtbf = {value = 1e8, source = \"our logs\"}"), "mine.toml");
  EXPECT_EQ(cluster.failures.mtbf.value, 1e8);
  EXPECT_FALSE(cluster.failures.restart.is_known());
  expect_user_error([&] { parse_cluster(with("mtbf = {value = 5.8, source = \"years\"}"), "mine.toml"); },
                    {"[mine.toml: failures.mtbf] expected seconds, 10000 to 1e+12, got 5.8"});
  expect_user_error([&] { parse_cluster(with("restart = {value = 600}"), "mine.toml"); },
                    {"[mine.toml: failures.restart] expected where the figure comes from"});
  expect_user_error([&] { parse_cluster(with("storage = {value = 100, source = \"GB/s\"}"), "mine.toml"); },
                    {"[mine.toml: failures.storage] expected bytes/s", "got 100"});
  expect_user_error([&] { parse_cluster(with("spares = 2"), "mine.toml"); },
                    {"[mine.toml: failures.repair] expected a figure above 0, got none"});
  cluster = parse_cluster(with("spares = 2\nrepair = {value = 86400, source = \"ours\"}"), "mine.toml");
  EXPECT_EQ(cluster.failures.spares, 2);
}

TEST(Cluster, AFabricCanBeSaid) {
  ClusterConfig meta = read_cluster("meta-24k");
  EXPECT_EQ(meta.fabric.pod_nodes.value, 384);
  EXPECT_FALSE(meta.fabric.rails);
  EXPECT_TRUE(read_cluster("dgx-h100").fabric.rails);
  auto with = [](const std::string& line) { return kMine + ("\n[fabric]\n" + line); };
  expect_user_error([&] { parse_cluster(with("switch_latency = {value = 330, source = \"ns\"}"), "mine.toml"); },
                    {"[mine.toml: fabric.switch_latency] expected seconds, 1e-09 to 0.001, got 330"});
  expect_user_error([&] { parse_cluster(with("oversubscription = {value = 0.14, source = \"1:7\"}"), "mine.toml"); },
                    {"[mine.toml: fabric.oversubscription] expected a factor, 1 to 1000, got 0.14"});
  EXPECT_TRUE(parse_cluster(with("pat = true"), "mine.toml").fabric.pat);
}

TEST(Cluster, GpusComeInWholeNodesOrInAPartOfOne) {
  ClusterConfig cluster = read_cluster("dgx-a100");
  for (int64_t gpus : {1, 3, 8, 16, 3072}) require_gpus(cluster, gpus);
  expect_user_error([&] { require_gpus(cluster, 12); }, {"[gpus] expected whole nodes of 8", "8 would fit"});
  expect_user_error([&] { require_gpus(cluster, 3080); }, {"[gpus] expected 1 to 3072", "got 3080"});
  expect_user_error([&] { require_gpus(cluster, 0); }, {"got 0"});
}

}  // namespace
}  // namespace tokamak
