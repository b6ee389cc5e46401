#include "checkpoint/averaged_weights.h"

#include "tests/support/expect_error.h"
#include "tests/support/host_store.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using test::HostStore;

CheckpointState state_of(int64_t step) { return {.step = step, .config_json = "{}"}; }

// A run's store whose states ema.<name> are 0.5, after so many updates.
void average(HostStore& run, float updates) {
  for (const ParameterInfo& info : run.parameters) {
    std::vector<float> values(size_t(num_elements(info.shape)), 0.5f);
    run.add_state("ema." + info.name, {DType::kF32, info.shape});
    run.store.write("ema." + info.name, values.data(), int64_t(values.size() * 4));
  }
  run.store.write("step", &updates, 4);
}

TEST(AveragedWeights, AreLoadedInPlaceOfTheLast) {
  TemporaryFolder out;
  HostStore run, last, averaged;
  run.fill(1);
  average(run, 3);
  fs::path path = save_checkpoint(out.path(), state_of(3), run.store, 2);
  load_parameters(with_weights(open_checkpoint(path, nullptr), kLastWeights), last.store);
  load_parameters(with_weights(open_checkpoint(path, nullptr), kAveragedWeights), averaged.store);
  for (const ParameterInfo& info : run.parameters) {
    EXPECT_EQ(last.read(info.name), run.read(info.name));
    std::vector<float> values(size_t(num_elements(info.shape)));
    averaged.store.read(info.name, values.data(), int64_t(values.size() * 4));
    EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](float x) { return x == 0.5f; })) << info.name;
  }
}

TEST(AveragedWeights, AreRefusedWhereThereAreNone) {
  TemporaryFolder out;
  HostStore run;
  run.fill(1);
  fs::path path = save_checkpoint(out.path(), state_of(3), run.store, 2);
  expect_user_error([&] { with_weights(open_checkpoint(path, nullptr), kAveragedWeights); },
                    {"[weights] expected a mean of the weights over steps", "optimizer.ema = 0", "--optimizer.ema="});
  average(run, 0);
  path = save_checkpoint(out.path(), state_of(4), run.store, 2);
  expect_user_error([&] { with_weights(open_checkpoint(path, nullptr), kAveragedWeights); }, {"one of no update"});
}

}  // namespace
}  // namespace tokamak
