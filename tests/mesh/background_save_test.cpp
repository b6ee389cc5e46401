// States that are written while what they were copied from changes.
#include "run/background_saver.h"

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/verify.h"
#include "tests/mesh/train_steps.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>

namespace tokamak::test {
namespace {

namespace fs = std::filesystem;

// Calls body(session, backend) on each rank of the mesh, or on the only one.
template <typename Body>
void on_ranks(const MeshConfig& on, const Body& body) {
  RunConfig config = tiny_mesh_run();
  config.mesh = on;
  auto work = [&](const MeshRanks* ranks) {
    auto backend = cpu::make_backend();
    set_num_threads(1);
    Session session = make_session(config, cpu::nominal_platform(1), *backend, 0, ranks);
    session.initialise();
    body(session, *backend);
  };
  Mesh mesh = step_mesh(on);
  if (mesh.num_ranks() == 1) return work(nullptr);
  run_ranks(int(mesh.num_ranks()), [&](Communicator& world) {
    MeshRanks ranks(mesh, world);
    work(&ranks);
  });
}

void step(Session& session, int64_t number) {
  std::vector<Batch> batches;
  for (int64_t i = 0; i < session.micro_batches(); ++i) batches.push_back(batch_of(session.resolved(), number, i));
  session.run_step(batches, number, 1e-2);
}

bool begin(BackgroundSaver& saver, const fs::path& out, const CheckpointState& state, const KeepRule& keep) {
  saver.copy();
  EXPECT_TRUE(saver.is_open());
  return saver.write(out, state, keep);
}

std::string text_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

const MeshConfig kMeshes[] = {
    {.data = 1}, {.data = 2}, {.data = 2, .zero = 3}, {.data = 1, .tensor = 2}, {.pipe = 2, .data = 1}};

TEST(BackgroundSave, IsOfTheStateWhenItBegan) {
  for (const MeshConfig& mesh : kMeshes) {
    TemporaryFolder out;
    on_ranks(mesh, [&](Session& session, Backend& backend) {
      const TensorStore& store = session.store();
      BackgroundSaver saver(session, backend);
      saver.reserve();
      EXPECT_EQ(saver.lacks_memory(), "");
      for (int64_t number = 1; number <= 3; ++number) {
        step(session, number);
        fs::path gathered = out / std::to_string(number);
        fs::create_directories(gathered);
        if (store.leads())
          gather_files(gathered, store);
        else
          join_saving(store);
        EXPECT_TRUE(begin(saver, out.path(), {.step = number, .config_json = "{}"}, 5));
        EXPECT_TRUE(saver.is_open());
        step(session, 10 + number);
        step(session, 20 + number);
        EXPECT_GT(saver.take(), 0);
        EXPECT_FALSE(saver.is_open());
      }
    });
    for (int number = 1; number <= 3; ++number) {
      fs::path checkpoint = out / "checkpoints" / ("step_0000000" + std::to_string(number));
      verify_checkpoint(checkpoint);
      for (const char* name : {kModelFile, kOptimizerFile})
        EXPECT_TRUE(text_of(checkpoint / name) == text_of(out / std::to_string(number) / name))
            << name << " of data " << mesh.data << ", tensor " << mesh.tensor << ", pipe " << mesh.pipe << ", zero "
            << mesh.zero;
    }
  }
}

// Each rank has its part of what all have.
TEST(BackgroundSave, CopiesAreDividedAmongRanks) {
  int64_t alone = 0;
  on_ranks({.data = 1}, [&](Session& session, Backend& backend) {
    alone = BackgroundSaver(session, backend).copy_bytes();
    EXPECT_GT(alone, 0);
  });
  std::atomic<int64_t> together = 0;
  on_ranks({.data = 2}, [&](Session& session, Backend& backend) {
    int64_t mine = BackgroundSaver(session, backend).copy_bytes();
    together += mine;
    EXPECT_LT(mine, alone * 3 / 4);
  });
  EXPECT_NEAR(double(together), double(alone), 1.);
}

TEST(BackgroundSave, AnErrorIsToldToAllWhoTakeTheEnd) {
  for (const MeshConfig& mesh : kMeshes) {
    TemporaryFolder out;
    on_ranks(mesh, [&](Session& session, Backend& backend) {
      TensorStore& store = session.store();
      BackgroundSaver saver(session, backend);
      saver.reserve();
      float infinite = std::numeric_limits<float>::infinity();
      if (store.is_here("h.1.attn.c_proj.weight")) store.write("h.1.attn.c_proj.weight", &infinite, sizeof infinite);
      EXPECT_TRUE(begin(saver, out.path(), {.step = 1, .config_json = "{}"}, 5));
      expect_user_error([&] { saver.take(); }, {"step 1 could not be saved", "h.1.attn.c_proj.weight"});
      float zero = 0;
      if (store.is_here("h.1.attn.c_proj.weight")) store.write("h.1.attn.c_proj.weight", &zero, sizeof zero);
      EXPECT_EQ(saver.failure(), "");
      EXPECT_TRUE(begin(saver, out.path(), {.step = 2, .config_json = "{}"}, 5));
      saver.take();
    });
    EXPECT_FALSE(fs::exists(out / "checkpoints/step_00000001"));
    EXPECT_FALSE(fs::exists(out / "checkpoints/step_00000001.tmp"));
    verify_checkpoint(out / "checkpoints/step_00000002");
  }
}

// A rank that ends takes no half of a checkpoint for a whole one.
TEST(BackgroundSave, IsGivenUpWhenARankIsLost) {
  TemporaryFolder out;
  auto body = [&](Session& session, Backend& backend) {
    BackgroundSaver saver(session, backend);
    saver.reserve();
    begin(saver, out.path(), {.step = 1, .config_json = "{}"}, 5);
    EXPECT_NO_THROW(saver.take());
    try {
      begin(saver, out.path(), {.step = 2, .config_json = "{}"}, 5);
      session.store().ranks()->world().abort("a rank is lost");
    } catch (const CommunicationError&) {
      // The other rank was faster.
    }
    saver.abandon();
  };
  on_ranks({.data = 2, .zero = 1}, body);
  std::vector<std::string> warnings;
  std::optional<FoundCheckpoint> found = find_checkpoint(out.path(), &warnings);
  ASSERT_TRUE(found);
  EXPECT_GE(found->state.step, 1);
  EXPECT_TRUE(warnings.empty());
}

// As of the phases of a run, whose states have one size.
TEST(BackgroundSaver, MemoryIsHandedOnToAStateOfTheSameSize) {
  TemporaryFolder folder;
  on_ranks({.data = 1}, [&](Session& session, Backend& backend) {
    CopyMemory memory;
    {
      BackgroundSaver first(session, backend);
      EXPECT_TRUE(first.release_memory().pieces.empty());
      first.reserve();
      EXPECT_EQ(first.lacks_memory(), "");
      memory = first.release_memory();
    }
    EXPECT_FALSE(memory.pieces.empty());
    BackgroundSaver second(session, backend);
    EXPECT_FALSE(second.use_memory({}));
    EXPECT_TRUE(second.use_memory(std::move(memory)));
    EXPECT_EQ(second.lacks_memory(), "");
    step(session, 0);
    EXPECT_TRUE(begin(second, folder.path(), {.step = 1, .config_json = "{}"}, {1}));
    second.take();
    EXPECT_NO_THROW(verify_checkpoint(checkpoints_folder(folder.path()) / checkpoint_name(1)));
  });
}

}  // namespace
}  // namespace tokamak::test
