// What a rank has in memory when the others are lost.
#include "run/rescue.h"

#include "tests/mesh/train_steps.h"
#include "tests/support/resolve_first.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

std::vector<Batch> batches_of(const Session& session, int64_t step) {
  std::vector<Batch> batches;
  for (int64_t i = 0; i < session.micro_batches(); ++i) batches.push_back(batch_of(session.resolved(), step, i));
  return batches;
}

std::vector<std::byte> bytes_of(const TensorStore& store) {
  std::vector<std::byte> all;
  for (const std::string& name : store.names()) {
    if (is_scratch(store.spec(name).role)) continue;
    std::vector<std::byte> bytes(size_t(num_bytes(store.type(name))));
    store.read(name, bytes.data(), int64_t(bytes.size()));
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

// Returns when both are here; the other one may be gone then.
void meet_at_the_end(Communicator& world) {
  try {
    world.barrier();
  } catch (const CommunicationError&) {
    EXPECT_EQ(world.rank(), 0);
  }
}

// Two ranks do a step, and one is gone in the next: the other has the state after the first, byte for byte.
TEST(Rescue, AFailedStepLeavesTheStateOfTheOneBefore) {
  RunConfig config = tiny_mesh_run();
  config.mesh.data = 2;
  config.train.total_batch = 2 * config.train.batch * config.model.context;
  bool looked = false;
  auto body = [&](Communicator& world) {
    MeshRanks ranks(step_mesh(config.mesh), world);
    auto backend = cpu::make_backend();
    set_num_threads(1);
    Session session = make_session(config, cpu::nominal_platform(1), *backend, 0, &ranks);
    session.initialise();
    session.run_step(batches_of(session, 0), 0, 1e-2);
    meet_at_the_end(world);
    if (ranks.rank() == 1) throw std::runtime_error("this rank dies");
    std::vector<std::byte> before = bytes_of(session.store());
    EXPECT_THROW(session.run_step(batches_of(session, 1), 1, 1e-2), CommunicationError);
    EXPECT_FALSE(session.is_torn());
    EXPECT_EQ(bytes_of(session.store()), before);
    looked = true;
  };
  EXPECT_THROW(run_ranks(2, body), std::runtime_error);
  EXPECT_TRUE(looked);
}

TEST(Rescue, OnlyRanksWithoutSharesHaveTheWholeState) {
  auto is_whole = [](const MeshConfig& mesh) {
    RunConfig config = tiny_mesh_run();
    config.mesh = mesh;
    bool whole = true;
    run_ranks(int(step_mesh(mesh).num_ranks()), [&](Communicator& world) {
      MeshRanks ranks(step_mesh(config.mesh), world);
      auto backend = cpu::make_backend();
      set_num_threads(1);
      Session session = make_session(config, cpu::nominal_platform(1), *backend, 0, &ranks);
      if (ranks.rank() == 0) whole = has_whole_state(session.store());
    });
    return whole;
  };
  EXPECT_TRUE(is_whole({.data = 2}));
  EXPECT_TRUE(is_whole({.data = 1, .context = 2}));
  EXPECT_FALSE(is_whole({.data = 2, .zero = 1}));
  EXPECT_FALSE(is_whole({.data = 2, .zero = 3}));
  EXPECT_FALSE(is_whole({.data = 1, .tensor = 2}));
  EXPECT_FALSE(is_whole({.pipe = 2, .data = 1}));
}

}  // namespace
}  // namespace tokamak::test
