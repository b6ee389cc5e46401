// A second stream, over all rungs of the ladders: what its plans order, and that it changes no bit.
#include "checkpoint/state_copy.h"
#include "compile/step_compiler.h"
#include "config/config.h"
#include "ladder/rungs.h"
#include "plan/print_plan.h"
#include "plan/stream_order.h"
#include "run/random_batch.h"
#include "run/session.h"
#include "tests/plan/interleaved_run.h"
#include "tests/support/fake_kernels.h"
#include "tests/support/graph_text.h"
#include "tests/support/resolve_first.h"
#include "tests/support/shuffled_device.h"

#include <map>
#include <string>

namespace tokamak::test {
namespace {

struct NamedRun {
  std::string rung;
  RunConfig config;
};

RunConfig tiny(int64_t streams) {
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 16, .context = 8, .vocab = 61};
  config.train.batch = 2;
  config.optimizer.lr = 1e-3;
  config.compile.streams = streams;
  return config;
}

// As the ladder climbs: each rung on top of those before it, and the optional ones on top of the last.
std::vector<NamedRun> climb(std::span<const Rung> rungs, RunConfig config, const Platform& platform) {
  std::vector<NamedRun> runs;
  for (const Rung& rung : rungs) {
    RunConfig trial = config;
    rung.switch_on(trial, compile_step(config, platform).programs[0].plan.arena_bytes);
    runs.push_back({std::string(rung.name), trial});
    if (!rung.optional) config = trial;
  }
  return runs;
}

// Has every kernel that some backend has, and two streams.
Platform full_platform() {
  Target target;
  target.tf32_flops = 2 * target.f32_flops;
  target.chunked_classifier = target.matmul_argument = target.matmul_operand = target.matmul_accumulate = true;
  target.matmul_operand_sums = target.row_column_groups = true;
  target.streams = 2;
  return {target, fake_kernels({.attention_extras = [](const Graph&, const Node&) { return true; }})};
}

Platform cpu_platform() {
  Platform platform = cpu::nominal_platform();
  platform.target.streams = 2;
  return platform;
}

int launches_beside(const Plan& plan) {
  int count = 0;
  for (const Launch& launch : plan.launches) count += launch.stream > 0;
  return count;
}

// What a run leaves: every loss and norm, then the bytes of all parameters and states.
struct Trace {
  std::vector<double> numbers;
  std::map<std::string, std::vector<std::byte>> tensors;
  bool operator==(const Trace&) const = default;
};

Trace train_on(Backend& backend, const RunConfig& config, int64_t steps = 2) {
  Session session = make_session(config, cpu_platform(), backend);
  session.initialise();
  std::vector<Batch> batches;
  for (int64_t i = 0; i < session.micro_batches(); ++i) batches.push_back(random_batch(config, uint64_t(i)));
  Trace trace;
  for (int64_t step = 0; step < steps; ++step) {
    StepResult result = session.run_step(batches, step, config.optimizer.lr);
    trace.numbers.insert(trace.numbers.end(), {result.loss, result.grad_norm});
  }
  for (const std::string& name : session.store().names()) {
    std::vector<std::byte>& bytes = trace.tensors[name];
    bytes.resize(size_t(num_bytes(session.store().type(name))));
    session.store().read(name, bytes.data(), int64_t(bytes.size()));
  }
  return trace;
}

class Streams : public ::testing::TestWithParam<bool> {
 protected:
  std::span<const Rung> rungs() const { return GetParam() ? gpu_rungs() : cpu_rungs(); }
};

TEST_P(Streams, EveryOrderThatThePlanAllowsIsRight) {
  for (const NamedRun& run : climb(rungs(), tiny(2), full_platform())) {
    SCOPED_TRACE(run.rung);
    CompiledStep step = compile_step(run.config, full_platform());
    EXPECT_GE(launches_beside(step.programs[0].plan), 10);
    verify_streams(step.programs[0].plan);
    for (uint32_t order = 0; order < 3; ++order) testing::InterleavedRun(step.programs[0].plan, order).run();
    if (HasFatalFailure()) return;
  }
}

TEST_P(Streams, OnlyGradientsOfParametersGoBeside) {
  for (const NamedRun& run : climb(rungs(), tiny(2), full_platform())) {
    SCOPED_TRACE(run.rung);
    Plan plan = compile_step(run.config, full_platform()).programs[0].plan;
    for (const Launch& launch : plan.launches) {
      const Node& node = plan.graph.nodes()[size_t(launch.node)];
      bool in_chain = node.op->name == "attention_grad" || node.op->name == "classifier";
      EXPECT_TRUE(launch.stream == 0 || (node.phase == Phase::kBackward && !in_chain)) << kernel_label(node);
    }
  }
}

TEST_P(Streams, NoBitChanges) {
  std::unique_ptr<Backend> cpu = cpu::make_backend();
  int beside = 0, swaps = 0;
  std::vector<NamedRun> one = climb(rungs(), tiny(1), cpu_platform()), two = climb(rungs(), tiny(2), cpu_platform());
  for (size_t i = 0; i < one.size(); ++i) {
    SCOPED_TRACE(one[i].rung);
    Trace expected = train_on(*cpu, one[i].config);
    EXPECT_TRUE(train_on(*cpu, two[i].config) == expected) << "in the order of launches";
    ShuffledDevice device(static_cast<uint32_t>(i));
    EXPECT_TRUE(train_on(device, two[i].config) == expected) << "in another order";
    beside += device.kernels_beside, swaps += device.swaps;
  }
  EXPECT_GT(beside, 100);  // else the test would show nothing
  EXPECT_GT(swaps, 100);
}

// How many tensors are not copied as they were when a step had ended, while the device does the next step.
int wrong_copies(ShuffledDevice& device, const RunConfig& config, bool changes_wait) {
  Session session = make_session(config, cpu_platform(), device);
  session.initialise();
  std::unique_ptr<HostCopies> other = device.make_host_copies();
  StateCopy copy(session.store(), device, changes_wait ? session.copies() : *other);
  EXPECT_TRUE(copy.reserve());
  std::vector<StateFile> files = state_files(session.store());
  std::vector<Batch> batches;
  for (int64_t i = 0; i < session.micro_batches(); ++i) batches.push_back(random_batch(config, uint64_t(i)));
  int wrong = 0;
  for (int64_t step = 0; step < 2; ++step) {
    session.run_step(batches, step, config.optimizer.lr);
    std::map<std::string, std::vector<std::byte>> expected;
    for (const StateSlice& slice : copy.slices()) {
      const auto& [name, type] = files[slice.file].tensors[slice.tensor];
      expected[name].resize(size_t(slice.count * dtype_bytes(type.dtype)));
      session.store().read(name, expected[name].data(), int64_t(expected[name].size()));
    }
    copy.begin();
    session.submit_step(batches, step, config.optimizer.lr).wait();
    copy.wait();
    ReadSlice read = copy.reader();
    for (const StateSlice& slice : copy.slices())
      wrong += !std::ranges::equal(read(slice, 0, slice.count), expected[files[slice.file].tensors[slice.tensor].name]);
  }
  return wrong;
}

TEST(CopiesBesideSteps, AreOfTheStateBeforeTheStep) {
  int wrong_without = 0;
  for (int64_t streams : {1, 2})
    for (int64_t micro_batches : {1, 3}) {
      RunConfig config = tiny(streams);
      config.train.total_batch = micro_batches * config.train.batch * config.model.context;
      auto seed = uint32_t(streams);
      ShuffledDevice device(seed), other(seed);
      EXPECT_EQ(wrong_copies(device, config, true), 0) << streams << " streams, " << micro_batches << " micro-batches";
      wrong_without += wrong_copies(other, config, false);
    }
  EXPECT_GT(wrong_without, 0);  // else the test would show nothing
}

INSTANTIATE_TEST_SUITE_P(Ladders, Streams, ::testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "gpu" : "cpu"); });

TEST(StreamsOption, NotMoreThanTheTargetHas) {
  Target target = full_platform().target;
  EXPECT_EQ(resolve(tiny(2), target).compile.streams, 2);
  EXPECT_EQ(resolve(tiny(1), target).compile.streams, 1);
  target.streams = 1;
  EXPECT_EQ(resolve(tiny(2), target).compile.streams, 1);
  EXPECT_EQ(launches_beside(compile_step(tiny(2), target).programs[0].plan), 0);
}

TEST(StreamsOption, IsOff) { EXPECT_EQ(RunConfig().compile.streams, 1); }

// Kernel by kernel, as `explain --measure` does it.
TEST(StreamsOption, TimedLaunchesFollowTheEvents) {
  std::unique_ptr<Backend> cpu = cpu::make_backend();
  ShuffledDevice device(3);
  std::vector<std::vector<double>> losses;
  for (Backend* backend : {cpu.get(), static_cast<Backend*>(&device)}) {
    Session session = make_session(tiny(2), cpu_platform(), *backend);
    session.initialise();
    std::vector<Batch> batches = {random_batch(tiny(2), 0)};
    session.run_step(batches, 0, 1e-3);
    std::vector<double> seconds;
    session.program(0).run_timed(seconds);
    EXPECT_EQ(seconds.size(), session.compiled().programs[0].plan.launches.size());
    losses.push_back({session.program(0).get_scalar("loss"), session.run_step(batches, 2, 1e-3).loss});
  }
  EXPECT_EQ(losses[0], losses[1]);
}

// A state's update on a stream that may reach into the next run, and a result on a third that may not.
Plan reaching_plan() {
  Plan plan = make_plan(parse(R"(graph g {
    input x = %0 : f32[512]
    state s = %1 : f32[512]
    %2 = exp(%0) : f32[512]
    %3 = tanh(%1) : f32[512]
    %4 = mul(%2, %3) : f32[512]
    %5 = add(%1, %4) : f32[512]
    %6 = tanh(%2) : f32[512]
    result y = %6
    update %1 = %5
  })"),
                        {});
  std::vector<PlannedStream> streams{{"compute"}, {.name = "far", .ends_with_run = false}, {"side"}};
  order_streams(plan, {streams, {0, 0, 0, 1, 2}, {}});
  verify_streams(plan);
  return plan;
}

std::vector<float> run_thrice(Backend& backend, Plan plan, bool in_one_go) {
  TensorStore store(backend);
  Program program(std::move(plan), backend, store, {.record = true});
  std::vector<float> out(512), x(512), s(512, 0.25f);
  store.write("s", s.data(), 4 * 512);
  for (int run = 0; run < 3; ++run) {
    std::fill(x.begin(), x.end(), float(run));
    program.set_input("x", x.data(), 4 * 512);
    program.run();
    if (!in_one_go) program.end_streams();
    program.get_result("y", out.data(), 4 * 512);
  }
  program.end_streams();
  store.read("s", s.data(), 4 * 512);
  out.insert(out.end(), s.begin(), s.end());
  return out;
}

// Three streams, one of which is still at work when the next run begins: as the plan says, and no further.
TEST(Program, ObeysWhatMayReachIntoTheNextRun) {
  std::unique_ptr<Backend> cpu = cpu::make_backend();
  std::vector<float> expected = run_thrice(*cpu, reaching_plan(), true);
  int swaps = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    ShuffledDevice device(seed);
    device.may_reach = seed % 2;
    EXPECT_EQ(run_thrice(device, reaching_plan(), seed % 2), expected) << seed;
    swaps += device.swaps;
  }
  EXPECT_GT(swaps, 200);
}

}  // namespace
}  // namespace tokamak::test
