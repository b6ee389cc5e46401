// A few training steps on ranks that are threads, and what they give.
#pragma once

#include "backend/cpu/cpu_backend.h"
#include "backend/ranks/inprocess.h"
#include "base/parallel.h"
#include "base/random.h"
#include "data/document_starts.h"
#include "passes/step_mesh.h"
#include "run/session.h"
#include "tests/support/resolve_first.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

namespace tokamak::test {

inline RunConfig tiny_mesh_run() {
  RunConfig config;
  config.model = {.layers = 2, .heads = 4, .width = 32, .context = 16, .vocab = 61};
  config.train.batch = 8;
  config.train.seed = 5;
  config.compile.precision = Precision::kFp32;
  config.threads = 1;
  return config;
}

/// Of llama with what its relatives have as options.
inline ModelConfig tiny_llama(ModelConfig model) {
  model.family = "llama";
  model.kv_heads = 2;
  model.hidden = 48;
  model.window = 9;
  model.qk_norm = true;
  model.head_width = 6;
  return model;
}

/// Of modern, what a pipeline can have, too.
inline ModelConfig tiny_modern(ModelConfig model) {
  model.family = "modern";
  model.kv_heads = 2;
  model.tie_weights = false;
  model.qk_norm = model.embedding_norm = true;
  model.softcap = 4;
  model.value_embeddings = 2;
  model.window = 9;
  model.window_pattern = "LS";
  model.window_warmup_steps = 2;
  return model;
}

/// What a run is compiled for. In FP8 a machine that computes it as fast as it likes: no kernel here does, the ops'
/// references are run.
inline Platform mesh_platform(const RunConfig& config) {
  Platform platform = cpu::nominal_platform(1);
  if (config.compile.precision != Precision::kFp8) return platform;
  platform.target.bf16_flops = 1e9;
  platform.target.fp8_flops = 2e9;
  platform.target.memory_bandwidth = 1e12;
  platform.target.launch_seconds = 0;
  return platform;
}

/// Micro-batch `index` of a step's random sequences, which are the same however they are divided.
inline Batch batch_of(const ResolvedRun& run, int64_t step, int64_t index) {
  const RunConfig& config = run.asked;
  Batch batch;
  int64_t size = run.batch * config.model.context;
  for (int64_t i = index * size; i < (index + 1) * size; ++i) {
    auto random = philox4x32(uint64_t(step), uint64_t(i));
    batch.tokens.push_back(int32_t(random[0] % uint32_t(config.model.vocab)));
    batch.targets.push_back(int32_t(random[1] % uint32_t(config.model.vocab)));
    if (!config.data.mask_documents) continue;
    bool ends = random[2] % 5 == 0;
    if (ends) batch.targets.back() = kNoTarget;
    int64_t at = i % config.model.context;
    batch.documents.push_back(at == 0 || ends ? int32_t(at) : batch.documents.back());
  }
  return batch;
}

/// Losses and norms of the steps, losses of one more without training, and all parameters and states.
struct Outcome {
  std::vector<double> losses, norms, evaluated;
  std::map<std::string, std::vector<float>> tensors;
};

/// Losses of a step's batches, as many at once as may be; those of the first one alone are the same.
inline std::vector<double> evaluate_step(Session& session, int64_t step) {
  std::vector<Batch> batches;
  for (int64_t i = 0; i < session.micro_batches(); ++i) batches.push_back(batch_of(session.resolved(), step, i));
  std::vector<double> all;
  int64_t at_once = batches_at_once(session.resolved());
  for (int64_t i = 0; i < session.micro_batches(); i += at_once) {
    std::vector<double> losses = session.evaluate(std::span(batches).subspan(size_t(i), size_t(at_once)));
    all.insert(all.end(), losses.begin(), losses.end());
  }
  std::vector<double> first = session.evaluate(std::span(batches).first(1));
  EXPECT_TRUE(std::equal(first.begin(), first.end(), all.begin()));
  return all;
}

/// What a checkpoint has of a session's tensors, as elements of type T; on the rank that leads, others have zeros. All
/// ranks call it.
template <typename T>
std::map<std::string, std::vector<T>> tensors_of(const TensorStore& store) {
  std::map<std::string, std::vector<T>> tensors;
  for (const std::string& name : store.names()) {
    if (is_scratch(store.spec(name).role)) continue;
    int64_t bytes = num_bytes({store.type(name).dtype, store.spec(name).global});
    std::vector<T>& values = tensors[name];
    values.resize(size_t(bytes) / sizeof(T));
    store.read_whole(name, values.data());
  }
  return tensors;
}

inline Outcome train_steps(const RunConfig& config, const MeshRanks* ranks, const Platform& platform) {
  auto backend = cpu::make_backend();
  set_num_threads(1);  // ranks share the cores
  Session session = make_session(config, platform, *backend, 0, ranks);
  session.initialise();
  Outcome outcome;
  constexpr int64_t kSteps = 3;
  for (int64_t step = 0; step < kSteps; ++step) {
    std::vector<Batch> batches;
    for (int64_t i = 0; i < session.micro_batches(); ++i) batches.push_back(batch_of(session.resolved(), step, i));
    StepResult result = session.run_step(batches, step, 1e-2);
    outcome.losses.push_back(result.loss);
    outcome.norms.push_back(result.grad_norm);
  }
  outcome.evaluated = evaluate_step(session, kSteps);
  outcome.tensors = tensors_of<float>(session.store());
  return outcome;
}

inline Outcome train_steps(const RunConfig& config, const MeshRanks* ranks) {
  return train_steps(config, ranks, mesh_platform(config));
}

/// The names of what differs in a bit.
inline std::string differing(const Outcome& a, const Outcome& b) {
  std::string names;
  if (a.losses != b.losses) names += "losses; ";
  if (a.norms != b.norms) names += "norms; ";
  if (a.evaluated != b.evaluated) names += "evaluated losses; ";
  if (a.tensors.size() != b.tensors.size()) names += "what there is; ";
  for (const auto& [name, values] : a.tensors)
    if (!b.tensors.contains(name) ||
        std::memcmp(values.data(), b.tensors.at(name).data(), values.size() * sizeof(float)) != 0)
      names += name + "; ";
  return names;
}

/// The same losses and tensors within rounding.
inline void expect_close(const Outcome& expected, const Outcome& got, const std::string& what) {
  ASSERT_EQ(got.tensors.size(), expected.tensors.size()) << what;
  for (size_t i = 0; i < expected.losses.size(); ++i) EXPECT_NEAR(got.losses[i], expected.losses[i], 1e-4) << what;
  for (const auto& [name, values] : expected.tensors) {
    const std::vector<float>& others = got.tensors.at(name);
    ASSERT_EQ(others.size(), values.size()) << what << " " << name;
    double worst = 0;
    for (size_t i = 0; i < values.size(); ++i) worst = std::max<double>(worst, std::fabs(values[i] - others[i]));
    EXPECT_LT(worst, 1e-4) << what << " " << name;
  }
}

inline double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

/// Calls body(session) on each rank of the configuration's mesh.
template <typename Body>
void on_mesh(const RunConfig& config, const Body& body) {
  auto work = [&](const MeshRanks* ranks) {
    auto backend = cpu::make_backend();
    set_num_threads(1);
    Session session = make_session(config, mesh_platform(config), *backend, 0, ranks);
    body(session);
  };
  Mesh mesh = step_mesh(config.mesh);
  if (mesh.num_ranks() == 1) return work(nullptr);
  run_ranks(int(mesh.num_ranks()), [&](Communicator& world) {
    MeshRanks ranks(mesh, world);
    work(&ranks);
  });
}

/// A step on the batches of that number.
inline void run_a_step(Session& session, int64_t step) {
  std::vector<Batch> batches;
  for (int64_t i = 0; i < session.micro_batches(); ++i) batches.push_back(batch_of(session.resolved(), step, i));
  session.run_step(batches, step, 1e-2);
}

/// With tables that are large enough to be divided among those that write them, and padded.
inline RunConfig run_with_large_tables(const MeshConfig& mesh) {
  RunConfig config = tiny_mesh_run();
  config.model.width = 64;
  config.model.vocab = 611;
  config.mesh = mesh;
  return config;
}

/// On the mesh of the configuration; what rank 0 has.
inline Outcome train_on_mesh(const RunConfig& config) {
  Mesh mesh = step_mesh(config.mesh);
  if (mesh.num_ranks() == 1) return train_steps(config, nullptr);
  Outcome first;
  run_ranks(int(mesh.num_ranks()), [&](Communicator& world) {
    MeshRanks ranks(mesh, world);
    Outcome outcome = train_steps(config, &ranks);
    if (ranks.rank() == 0) first = std::move(outcome);
  });
  return first;
}

}  // namespace tokamak::test
