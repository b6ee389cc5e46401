// A small model trained on the GPU, for tests that compare runs.
#pragma once

#include <fmt/core.h>
#include <unistd.h>

#include "config/config.h"
#include "run/random_batch.h"
#include "run/session.h"
#include "tests/backend/cuda/gpu_harness.h"
#include "tests/support/resolve_first.h"
#include "tune/tune.h"

namespace tokamak::test {

/// The device, with choices by measurement that hold for the whole test program: bits follow from them.
inline Platform gpu_platform() {
  Platform platform = cuda::measure_platform(gpu_backend(), 0);
  auto file = std::filesystem::temp_directory_path() / fmt::format("tokamak_gpu_measured_{}.json", ::getpid());
  platform.tuning.measurements = file.string();
  return platform;
}

inline RunConfig small_run() {
  RunConfig config;
  config.model = {.layers = 3, .heads = 4, .width = 128, .context = 128, .vocab = 1003};
  config.train.batch = 4;
  config.optimizer.lr = 1e-3;
  return config;
}

/// What a run leaves: every loss and norm, and the bytes of all parameters and states.
struct RunTrace {
  std::vector<double> losses, norms;
  std::map<std::string, std::vector<std::byte>> tensors;
};

inline std::map<std::string, std::vector<std::byte>> read_store(const TensorStore& store) {
  std::map<std::string, std::vector<std::byte>> tensors;
  for (const std::string& name : store.names()) {
    std::vector<std::byte>& bytes = tensors[name];
    bytes.resize(size_t(num_bytes(store.type(name))));
    store.read(name, bytes.data(), int64_t(bytes.size()));
  }
  return tensors;
}

inline RunTrace train_small(const RunConfig& config, int64_t steps = 8) {
  Session session = make_session(config, tune(config, gpu_platform(), gpu_backend()), gpu_backend());
  session.initialise();
  RunTrace trace;
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<Batch> batches;
    for (int64_t i = 0; i < session.micro_batches(); ++i)
      batches.push_back(random_batch(config, uint64_t(step * session.micro_batches() + i)));
    StepResult result = session.run_step(batches, step, config.optimizer.lr);
    trace.losses.push_back(result.loss);
    trace.norms.push_back(result.grad_norm);
  }
  trace.tensors = read_store(session.store());
  return trace;
}

/// Bit for bit, naming what differs first.
inline void expect_same_bits(const RunTrace& a, const RunTrace& b) {
  for (size_t i = 0; i < a.losses.size(); ++i) {
    ASSERT_EQ(a.losses[i], b.losses[i]) << "loss of step " << i;
    ASSERT_EQ(a.norms[i], b.norms[i]) << "norm of step " << i;
  }
  for (const auto& [name, bytes] : a.tensors) {
    ASSERT_TRUE(b.tensors.contains(name)) << name;
    EXPECT_TRUE(bytes == b.tensors.at(name)) << name;
  }
}

}  // namespace tokamak::test
