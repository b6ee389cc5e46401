// The digest in a step's result: the same on every mesh that computes the same bits, and another after a flipped bit.
#include "tests/mesh/train_steps.h"

#include <gtest/gtest.h>

#include <bit>

namespace tokamak::test {
namespace {

using Digests = std::vector<std::optional<uint64_t>>;

RunConfig tiny(int64_t every = 1) {
  RunConfig config = tiny_mesh_run();
  config.train.batch = 16;
  config.train.digest_every = every;
  config.mesh.slots = 8;
  return config;
}

/// Of four steps; before the third a bit of a parameter is flipped on the rank that leads, where `flips`.
Digests digests_of(const RunConfig& config, const MeshRanks* ranks, bool flips = false) {
  auto backend = cpu::make_backend();
  set_num_threads(1);
  Session session = make_session(config, cpu::nominal_platform(1), *backend, 0, ranks);
  session.initialise();
  Digests digests;
  for (int64_t step = 0; step < 4; ++step) {
    if (flips && step == 2) *static_cast<uint32_t*>(session.store().data("h.1.mlp.c_fc.weight")) ^= 1;
    std::vector<Batch> batches;
    for (int64_t i = 0; i < session.micro_batches(); ++i) batches.push_back(batch_of(session.resolved(), step, i));
    digests.push_back(session.run_step(batches, step, 1e-2).digest);
  }
  return digests;
}

Digests digests_on_mesh(const RunConfig& config) {
  Mesh mesh = step_mesh(config.mesh);
  if (mesh.num_ranks() == 1) return digests_of(config, nullptr);
  Digests first;
  run_ranks(int(mesh.num_ranks()), [&](Communicator& world) {
    MeshRanks ranks(mesh, world);
    Digests mine = digests_of(config, &ranks);
    if (ranks.rank() == 0) first = mine;
  });
  return first;
}

TEST(Digest, IsTheSameOnAnyNumberOfRanks) {
  RunConfig config = tiny();
  Digests expected = digests_on_mesh(config);
  for (const auto& digest : expected) EXPECT_TRUE(digest);
  for (int64_t data : {2, 4})
    for (int64_t zero : {0, 1, 2, 3}) {
      config.mesh.data = data;
      config.mesh.zero = zero;
      EXPECT_EQ(digests_on_mesh(config), expected) << data << " ranks, zero " << zero;
    }
}

TEST(Digest, IsTheSameBesideOtherAxes) {
  RunConfig config = tiny();
  config.mesh = {.data = 1, .context = 2, .tensor = 2, .slots = 4};
  Digests expected = digests_on_mesh(config);
  config.mesh.data = 2;
  for (int64_t zero : {0, 3}) {
    config.mesh.zero = zero;
    EXPECT_EQ(digests_on_mesh(config), expected) << "zero " << zero;
  }
}

TEST(Digest, IsTheSameOfAPipeline) {
  RunConfig config = tiny();
  config.mesh = {.pipe = 2, .data = 1, .slots = 4};
  Digests expected = digests_on_mesh(config);
  config.mesh.data = 2;
  EXPECT_EQ(digests_on_mesh(config), expected);
}

TEST(Digest, ComesEverySoManySteps) {
  RunConfig config = tiny(3);
  Digests every = digests_on_mesh(tiny()), some = digests_on_mesh(config);
  EXPECT_EQ(some, (Digests{{}, {}, every[2], {}}));
  config.train.digest_every = 0;
  EXPECT_EQ(digests_on_mesh(config), Digests(4));
}

// The least bit of one weight.
TEST(Digest, IsAnotherAfterAFlippedBit) {
  Digests good = digests_of(tiny(), nullptr), bad = digests_of(tiny(), nullptr, true);
  EXPECT_EQ(bad[1], good[1]);
  EXPECT_NE(bad[2], good[2]);
  EXPECT_NE(bad[3], good[3]);
}

}  // namespace
}  // namespace tokamak::test
