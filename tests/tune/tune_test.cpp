#include "tune/tune.h"

#include "compile/step_compiler.h"
#include "config/config.h"
#include "exec/measure.h"
#include "graph/builder.h"
#include "ops/matmul.h"
#include "ops/pointwise.h"
#include "tests/support/expect_error.h"
#include "tests/support/fake_kernels.h"
#include "tests/support/priced_device.h"
#include "tests/support/resolve_first.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

namespace tokamak {
namespace {

using test::form_of;
using test::NoKernel;
using test::PricedDevice;

// With epilogues to choose from.
Platform able() {
  Platform platform;
  platform.target.matmul_argument = platform.target.matmul_operand = true;
  return platform;
}

RunConfig tiny() {
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 16, .context = 8, .vocab = 128};
  config.train.batch = 2;
  config.compile.precision = Precision::kFp32;
  return config;
}

// How often each form of matmul is in the step of the platform.
std::map<std::string, int> matmul_forms(const Platform& platform) {
  std::map<std::string, int> forms;
  CompiledStep step = compile_step(tiny(), platform);
  for (const Node& node : step.programs[0].plan.graph.nodes())
    if (std::string form = form_of(node); form.starts_with("matmul")) ++forms[form];
  return forms;
}

std::map<std::string, int> tuned_forms(std::map<std::string, double> seconds) {
  PricedDevice device(std::move(seconds));
  return matmul_forms(tune(tiny(), able(), device));
}

TEST(Tune, KeepsEpiloguesThatCostNothing) {
  auto forms = tuned_forms({});
  EXPECT_EQ(forms["matmul+add+gelu+aux"], 2);
  EXPECT_EQ(forms["matmul+add"], 3 * 2);
  EXPECT_EQ(forms["matmul+gelu_grad"], 2);
}

TEST(Tune, TakesASimplerFormWhereThatIsFaster) {
  auto forms = tuned_forms({{"matmul+add+gelu+aux", 1.0}});
  EXPECT_EQ(forms["matmul+add+gelu+aux"], 0);
  EXPECT_EQ(forms["matmul+add"], 4 * 2);
  EXPECT_EQ(forms["matmul+gelu_grad"], 2);
}

// How many products of a step in fp8 have operands of eight bits, and how many have not.
std::pair<int, int> tuned_products(PricedDevice& device) {
  RunConfig config = tiny();
  config.model.width = 32, config.model.context = 16;
  config.compile.precision = Precision::kFp8;
  Platform platform;
  platform.target.bf16_flops = 1e9, platform.target.fp8_flops = 1.7e9, platform.target.memory_bandwidth = 1e12;
  platform.target.launch_seconds = 0;
  CompiledStep step = compile_step(config, tune(config, platform, device));
  std::pair<int, int> products;
  for (const Node& node : step.programs[0].plan.graph.nodes())
    if (form_of(node).ends_with("matmul")) ++(node.op->name == form_of(node) ? products.second : products.first);
  return products;
}

std::pair<int, int> tuned_products(std::map<std::string, double> seconds) {
  PricedDevice device(std::move(seconds));
  return tuned_products(device);
}

// All kernels take a millisecond, but for those that are said.
TEST(Tune, GivesEightBitsToWhatIsFasterWithAllThatItTakes) {
  auto [eight, sixteen] = tuned_products({{"matmul", 1.0}});
  EXPECT_GE(eight, 2 * 2);
  auto [none, all] = tuned_products({{"eight bits matmul", 1e-3}, {"matmul", 1e-3}});
  EXPECT_EQ(none, 0) << "a cast takes as long as a product";
  EXPECT_GT(all, sixteen);
}

TEST(Tune, TakesThePlainMatmulWhereTheSimplerFormIsNoBetter) {
  auto forms = tuned_forms({{"matmul+add+gelu+aux", 1.0}, {"matmul+add", 2.0}});
  EXPECT_EQ(forms["matmul+add+gelu+aux"], 0);
  EXPECT_EQ(forms["matmul+add"], 0);
  EXPECT_EQ(forms["matmul+gelu_grad"], 2);
  EXPECT_EQ(tuned_forms({{"matmul+gelu_grad", 1.0}})["matmul+gelu_grad"], 0);
}

TEST(Tune, LeavesOutTheSumsOfAGradientFirst) {
  const std::string sums = "matmul+gelu_grad+reduce_sum+aux", alone = "matmul+gelu_grad";
  auto forms_of = [](std::map<std::string, double> seconds) {
    PricedDevice device(std::move(seconds));
    Platform platform = able();
    platform.target.matmul_operand_sums = true;
    return matmul_forms(tune(tiny(), platform, device));
  };
  auto fast = forms_of({}), slow = forms_of({{sums, 1.0}}), slower = forms_of({{sums, 1.0}, {alone, 1.0}});
  EXPECT_EQ(fast[sums], 2);
  EXPECT_EQ(slow[sums], 0);
  EXPECT_EQ(slow[alone], 2);
  EXPECT_EQ(slower[sums] + slower[alone], 0);
}

const std::map<std::string, double> kSlowGelu{{"matmul+gelu_grad", 1.0}};

TEST(Tune, ForChoicesMeasuresOnlyWhatTheyDependOn) {
  PricedDevice some(kSlowGelu), all(kSlowGelu);
  Tuning chosen = tune(tiny(), able(), some, Measure::kChoices).tuning, known = tune(tiny(), able(), all).tuning;
  EXPECT_EQ(chosen.slow_forms, known.slow_forms);
  EXPECT_FALSE(chosen.slow_forms.empty());
  EXPECT_TRUE(some.timed.contains("matmul+gelu_grad") && some.timed.contains("matmul"));
  EXPECT_FALSE(some.timed.contains("attention"));
  EXPECT_TRUE(all.timed.contains("attention"));
  EXPECT_LT(chosen.measured_seconds.size(), known.measured_seconds.size());
  EXPECT_EQ(some.ended, 1);
}

TEST(Tune, HasTheOtherKernelsCompiledMeanwhile) {
  PricedDevice device({});
  tune(tiny(), able(), device);
  EXPECT_TRUE(device.ahead.contains("embedding"));
  EXPECT_TRUE(device.ahead.contains("multi_adamw"));
}

auto first_timing(const PricedDevice& device) {
  return std::find_if(device.events.cbegin(), device.events.cend(),
                      [](const std::string& event) { return event.starts_with("time "); });
}

// Also the one that only a trial has, and before those that are compiled fast.
TEST(Tune, HasProductsCompiledFirst) {
  Platform platform = able();
  platform.target.matmul_operand_sums = true;
  PricedDevice device({});
  tune(tiny(), platform, device);
  auto place = [&](const std::string& event) {
    return std::find(device.events.begin(), device.events.end(), event) - device.events.begin();
  };
  EXPECT_LT(place("ahead matmul+gelu_grad"), first_timing(device) - device.events.begin());
  EXPECT_LT(place("ahead matmul+gelu_grad"), place("ahead embedding"));
  EXPECT_LT(place("ahead attention_grad"), place("ahead embedding"));
  EXPECT_TRUE(device.late.empty()) << *device.late.begin();
}

// The step has one kernel for its scales, and each trial, which needs fewer, another one.
TEST(Tune, HasTrialsOfFormatsCompiledFirst) {
  PricedDevice device({{"matmul", 1.0}});
  tuned_products(device);
  EXPECT_GT(std::count(device.events.cbegin(), first_timing(device), "ahead float8_scales"), 2);
}

// What is begun before there is a device is what is begun there before anything is timed.
TEST(Tune, AsksForTheSameAheadWithoutADevice) {
  Platform platform = able();
  platform.target.matmul_operand_sums = true;
  PricedDevice there({}), before({});
  tune(tiny(), platform, there);
  tune_ahead(resolve(tiny(), platform.target), platform, before);
  EXPECT_EQ(before.events, std::vector<std::string>(there.events.cbegin(), first_timing(there)));
  EXPECT_TRUE(before.ahead.contains("matmul+gelu_grad") && before.ahead.contains("multi_adamw"));
}

TEST(Tune, LooksAtAllProgramsOfAStep) {
  RunConfig parts = tiny();
  parts.train.total_batch = 4 * parts.train.batch * parts.model.context;
  PricedDevice device(kSlowGelu), whole(kSlowGelu);
  Platform tuned = tune(parts, able(), device);
  EXPECT_TRUE(device.ahead.contains("embedding") && device.ahead.contains("multi_adamw"));
  EXPECT_TRUE(device.expected.contains("embedding") && device.expected.contains("multi_adamw"));
  EXPECT_EQ(tuned.tuning.slow_forms, tune(tiny(), able(), whole).tuning.slow_forms);
}

// How long a device searches for an algorithm depends on it.
TEST(Tune, SaysWhatAStepIsMadeOfBeforeItCompilesAnyOfIt) {
  PricedDevice device(kSlowGelu);
  tune(tiny(), able(), device);
  EXPECT_GT(device.compiled, 0);
  EXPECT_EQ(device.unexpected, 0);
  EXPECT_TRUE(device.expected.contains("matmul+gelu_grad") && device.expected.contains("matmul")) << "both forms";
}

TEST(Tune, RemembersChoicesThroughAFile) {
  TemporaryFolder folder;
  Platform platform = able();
  platform.tuning.measurements = (folder / "tuned.json").string();
  PricedDevice first(kSlowGelu), second({}), third({});
  Tuning tuned = tune(tiny(), platform, first).tuning;
  // Neither prices that changed meanwhile nor another bandwidth make another choice.
  platform.target.memory_bandwidth /= 100;
  Tuning again = tune(tiny(), platform, second).tuning;
  EXPECT_EQ(again.slow_forms, tuned.slow_forms);
  EXPECT_EQ(again.measured_seconds, tuned.measured_seconds);
  EXPECT_EQ(second.compiled, 0);
  EXPECT_TRUE(second.expected.contains("matmul")) << "its algorithms may be unknown";
  // Another step is another matter.
  RunConfig other = tiny();
  other.train.batch *= 2;
  platform.target.memory_bandwidth *= 100;
  EXPECT_NE(tune(other, platform, third).tuning.tuned_for, tuned.tuned_for);
  EXPECT_GT(third.compiled, 0);
}

TEST(Tune, ARunKeepsItsChoicesThoughTheCacheIsGone) {
  Platform platform = able();
  platform.tuning.machine = "GPU 1, library 2";
  PricedDevice first(kSlowGelu), second({}), third({});
  Tuning tuned = tune(tiny(), platform, first, Measure::kChoices).tuning;
  std::string kept = run_choices(tuned, first);
  EXPECT_TRUE(adopt_choices(kept, platform.tuning, second));
  EXPECT_EQ(second.adopted, "algorithm 7");
  EXPECT_EQ(tune(tiny(), platform, second, Measure::kChoices, kept).tuning.slow_forms, tuned.slow_forms);
  EXPECT_EQ(second.compiled, 0);
  platform.tuning.machine = "GPU 1, library 3";
  EXPECT_FALSE(adopt_choices(kept, platform.tuning, third));
  EXPECT_EQ(third.adopted, "");
  EXPECT_TRUE(tune(tiny(), platform, third, Measure::kChoices, kept).tuning.slow_forms.empty());
  EXPECT_FALSE(adopt_choices(kept.substr(0, kept.size() / 2), platform.tuning, third));
}

TEST(Tune, ARunKeepsTheChoicesOfOtherSteps) {
  RunConfig later = tiny();
  later.train.batch *= 2;
  Platform platform = able();
  platform.tuning.machine = "GPU 1, library 2";
  PricedDevice first(kSlowGelu), second({}), third({});
  Tuning small = tune(tiny(), platform, first, Measure::kChoices).tuning;
  Tuning large = tune(later, platform, second, Measure::kChoices).tuning;
  std::string kept = add_choices(run_choices(small, first), large, second);
  EXPECT_EQ(tune(tiny(), platform, third, Measure::kChoices, kept).tuning.slow_forms, small.slow_forms);
  EXPECT_EQ(tune(later, platform, third, Measure::kChoices, kept).tuning.slow_forms, large.slow_forms);
  EXPECT_NE(small.slow_forms, large.slow_forms);
  EXPECT_EQ(third.compiled, 0);
  Tuning alien = large;
  alien.machine = "GPU 1, library 3";
  EXPECT_EQ(add_choices(kept, alien, second), run_choices(alien, second)) << "those of another machine are of no use";
}

// Bits are to be the same on any number of data ranks and stages.
TEST(Tune, WithSlotsAMeshMakesNoOtherChoice) {
  RunConfig config = tiny();
  config.train.batch = 4;
  config.mesh.slots = 2;
  auto tuned = [](const RunConfig& run) {
    PricedDevice device(kSlowGelu);
    return tune(run, able(), device).tuning;
  };
  Tuning alone = tuned(config);
  EXPECT_FALSE(alone.slow_forms.empty());
  std::vector<MeshConfig> meshes(4, config.mesh);
  meshes[0].data = 2;
  meshes[1].data = 2, meshes[1].zero = 3;
  meshes[2].pipe = 2;
  meshes[3].pipe = 2, meshes[3].schedule = "zero_bubble";
  for (const MeshConfig& mesh : meshes) {
    config.mesh = mesh;
    Tuning here = tuned(config);
    EXPECT_EQ(here.tuned_for, alone.tuned_for) << mesh.pipe << mesh.schedule;
    EXPECT_EQ(here.slow_forms, alone.slow_forms);
    EXPECT_TRUE(std::any_of(here.measured_seconds.begin(), here.measured_seconds.end(),
                            [](const auto& kernel) { return kernel.first.find("matmul") != std::string::npos; }));
  }
}

// The step must be the same, prices and all.
TEST(Tune, AnotherRankTakesWhatOneHasChosen) {
  Platform platform = able(), other = able();
  platform.tuning.machine = other.tuning.machine = "GPU 1, library 2";
  PricedDevice first(kSlowGelu), second({}), third({});
  Tuning tuned = tune(tiny(), platform, first, Measure::kChoices).tuning;
  std::string chosen = run_choices(tuned, first, true);
  EXPECT_TRUE(take_choices(chosen, other.tuning, second));
  EXPECT_EQ(second.adopted, "algorithm 7");
  EXPECT_EQ(other.tuning.tuned_for, tuned.tuned_for);
  EXPECT_EQ(other.tuning.slow_forms, tuned.slow_forms);
  EXPECT_EQ(other.tuning.measured_seconds, tuned.measured_seconds);
  EXPECT_FALSE(tuned.measured_seconds.empty());
  Tuning alien{.machine = "GPU 1, library 3"};
  EXPECT_FALSE(take_choices(chosen, alien, third));
  EXPECT_EQ(third.adopted, "");
  EXPECT_TRUE(alien.slow_forms.empty());
}

TEST(Tune, RefusesWhatDoesNotFitBeforeItCompilesAnything) {
  Platform platform = able();
  platform.kernels = test::fake_kernels({.scratch_bytes = [](const Graph&, const Node&) { return int64_t(1) << 30; }});
  PricedDevice device({});
  device.free = compile_step(tiny(), platform).total_bytes() - 1;
  expect_user_error([&] { tune(tiny(), platform, device); }, {"[memory]", "scratch memory of kernels 1.00 GiB"});
  EXPECT_EQ(device.compiled, 0);
  EXPECT_TRUE(device.timed.empty() && device.ahead.empty());
  ++device.free;
  EXPECT_NO_THROW(tune(tiny(), platform, device));
}

// A backend that measures nothing to choose a kernel.
class FixedDevice : public PricedDevice {
 public:
  using PricedDevice::PricedDevice;
  KernelTuning* tuning() override { return nullptr; }
};

TEST(Tune, LeavesOtherBackendsAlone) {
  FixedDevice device(kSlowGelu);
  Tuning tuned = tune(tiny(), able(), device).tuning;
  EXPECT_TRUE(tuned.measured_seconds.empty());
  EXPECT_EQ(device.compiled, 0);
  EXPECT_EQ(run_choices(tuned, device), "");
  PricedDevice other(kSlowGelu);
  std::string kept = run_choices(tune(tiny(), able(), other).tuning, other);
  EXPECT_FALSE(adopt_choices(kept, tuned, device));
}

// Keeps what it is given to read, and writes all of its scratch memory first.
class ReadingKernel : public NoKernel {
 public:
  ReadingKernel(std::vector<float>& seen, int& runs) : NoKernel(runs), seen_(seen) {}
  int64_t workspace_bytes() const override { return 1000; }
  void use_workspace(void* at) override { scratch_ = at; }
  void run(std::span<const void* const> in, std::span<void* const> out) override {
    NoKernel::run(in, out);
    std::memset(scratch_, 0, 1000);
    std::memcpy(seen_.data(), in[0], seen_.size() * sizeof(float));
    std::memcpy(out[0], in[0], seen_.size() * sizeof(float));
  }

 private:
  std::vector<float>& seen_;
  void* scratch_ = nullptr;
};

class ReadingDevice : public PricedDevice {
 public:
  ReadingDevice() : PricedDevice(std::map<std::string, double>()) {}
  std::unique_ptr<Kernel> compile(const Graph&, const Node&) override {
    return std::make_unique<ReadingKernel>(seen, runs_);
  }
  std::vector<float> seen = std::vector<float>(300'000);
};

TEST(NodeMeter, GivesKernelsRandomOperandsAndScratchMemory) {
  Graph graph("one");
  GraphBuilder g(graph);
  graph.add_result("r", gelu(g, g.input("x", {DType::kF32, {300'000}})));
  ReadingDevice device;
  NodeMeter meter(device);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(meter.seconds(graph, graph.nodes()[0]), 1e-3);
  double sum = 0, square = 0;
  for (float v : device.seen) sum += v, square += double(v) * v;
  EXPECT_NEAR(sum / 300'000, 0, 0.01);
  EXPECT_NEAR(square / 300'000, 1.0 / 3, 0.01);
}

// Whose host takes 30 us to have a kernel begin where none runs, and whose marks of time take 3 us.
class QueuingDevice : public PricedDevice {
 public:
  explicit QueuingDevice(double kernel) : PricedDevice({}), kernel_(kernel) {}
  double time(const std::function<void()>& work) override {
    bool is_idle = std::exchange(runs_, 0) == 0;
    work();
    return std::exchange(runs_, 0) * kernel_ + 3e-6 + (is_idle ? 30e-6 : 0);
  }

 private:
  double kernel_;
};

TEST(NodeMeter, HidesLaunchesAsStepsDo) {
  Graph graph("one");
  GraphBuilder g(graph);
  graph.add_result("r", gelu(g, g.input("x", {DType::kF32, {100}})));
  for (double kernel : {8e-6, 1e-4, 1e-2}) {
    QueuingDevice device(kernel);
    EXPECT_NEAR(NodeMeter(device).seconds(graph, graph.nodes()[0]) / kernel, 1, 0.03);
  }
}

}  // namespace
}  // namespace tokamak
