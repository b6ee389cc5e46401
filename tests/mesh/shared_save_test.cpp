// Checkpoints that all ranks write at once: the files are those that one rank would have written.
#include "checkpoint/shared_save.h"

#include "base/parallel.h"
#include "checkpoint/checkpoint.h"
#include "tests/mesh/train_steps.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>

namespace tokamak::test {
namespace {

namespace fs = std::filesystem;

CheckpointState state_of(int64_t step) { return {.step = step, .config_json = "{}"}; }

RunConfig run_on(const MeshConfig& mesh) {
  RunConfig config = run_with_large_tables(mesh);
  config.optimizer.ema = 0.5;
  return config;
}

// Calls body(session) on each rank after a step.
template <typename Body>
void on_ranks(const RunConfig& config, const Body& body) {
  on_mesh(config, [&](Session& session) {
    session.initialise();
    run_a_step(session, 0);
    body(session);
  });
}

std::string text_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void flip_bit(const fs::path& file, int64_t at) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(at);
  char byte = char(stream.get() ^ 4);
  stream.seekp(at);
  stream.put(byte);
}

const MeshConfig kMeshes[] = {{.data = 2},
                              {.data = 3, .zero = 1},
                              {.data = 2, .zero = 2},
                              {.data = 2, .zero = 3},
                              {.data = 1, .tensor = 2},
                              {.data = 2, .tensor = 2, .zero = 3},
                              {.pipe = 2, .data = 1},
                              {.pipe = 2, .data = 2, .zero = 1}};

TEST(SharedSave, FilesAreThoseThatOneRankWrites) {
  for (const MeshConfig& mesh : kMeshes) {
    RunConfig config = run_on(mesh);
    config.train.batch = 12;
    TemporaryFolder out;
    on_ranks(config, [&](Session& session) {
      EXPECT_TRUE(save_in_slices(out.path(), state_of(7), session.store(), 2));
      if (session.store().leads())
        gather_files(out.path(), session.store());
      else
        join_saving(session.store());
    });
    fs::path checkpoint = out / "checkpoints/step_00000007";
    for (const char* name : {kModelFile, kOptimizerFile})
      EXPECT_TRUE(text_of(checkpoint / name) == text_of(out / name))
          << name << " of data " << mesh.data << ", tensor " << mesh.tensor << ", pipe " << mesh.pipe << ", zero "
          << mesh.zero;
    EXPECT_NO_THROW(verify_checkpoint(checkpoint));
    EXPECT_EQ(fs::read_symlink(out / "checkpoints/latest"), "step_00000007");
    EXPECT_FALSE(fs::exists(checkpoint / "writing"));
  }
}

TEST(SharedSave, EveryFlippedBitIsFound) {
  TemporaryFolder out;
  on_ranks(run_on({.data = 2, .zero = 2}),
           [&](Session& session) { save_in_slices(out.path(), state_of(7), session.store(), 2); });
  fs::path checkpoint = out / "checkpoints/step_00000007";
  verify_checkpoint(checkpoint);
  for (const char* name : {kModelFile, kOptimizerFile}) {
    std::string whole = text_of(checkpoint / name);
    auto size = int64_t(whole.size());
    for (int64_t at = 0; at < size; at += at < 64 ? 7 : size / 23) {
      flip_bit(checkpoint / name, at);
      expect_user_error([&] { verify_checkpoint(checkpoint); }, {name});
      flip_bit(checkpoint / name, at);
    }
    fs::resize_file(checkpoint / name, uintmax_t(size - 1));
    expect_user_error([&] { verify_checkpoint(checkpoint); }, {name});
    std::ofstream(checkpoint / name, std::ios::binary) << whole;
    verify_checkpoint(checkpoint);
  }
}

// A tensor of several pieces, of which each thread adds up its own.
TEST(SharedSave, ALargeTensorIsComparedByAllThreads) {
  TemporaryFolder out;
  RunConfig config = run_on({.data = 2, .zero = 2});
  config.model.vocab = 65'000;
  on_ranks(config, [&](Session& session) { save_in_slices(out.path(), state_of(7), session.store(), 2); });
  fs::path checkpoint = out / "checkpoints/step_00000007";
  auto size = int64_t(fs::file_size(checkpoint / kModelFile));
  ASSERT_GT(size, int64_t(4) << 20);
  for (int threads : {1, 3}) {
    set_num_threads(threads);
    verify_checkpoint(checkpoint);
    for (int64_t at : {size / 7, size / 2, size - 1}) {
      flip_bit(checkpoint / kModelFile, at);
      expect_user_error([&] { verify_checkpoint(checkpoint); }, {kModelFile});
      flip_bit(checkpoint / kModelFile, at);
    }
  }
  set_num_threads(0);
}

// As on another machine, whose folder of that name is its own.
TEST(SharedSave, WhereARankSeesAnotherFolderOneWritesAll) {
  TemporaryFolder out, other;
  fs::create_directories(other / "checkpoints/step_00000007.tmp");
  on_ranks(run_on({.data = 2, .zero = 3}), [&](Session& session) {
    const fs::path& mine = session.store().leads() ? out.path() : other.path();
    EXPECT_FALSE(save_in_slices(mine, state_of(7), session.store(), 2));
    if (session.store().leads()) EXPECT_TRUE(fs::is_empty(out / "checkpoints"));
    session.store().ranks()->world().exchange("");
    save_checkpoint(mine, state_of(7), session.store(), 2);
  });
  verify_checkpoint(out / "checkpoints/step_00000007");
  EXPECT_TRUE(fs::is_empty(other / "checkpoints/step_00000007.tmp"));
}

TEST(SharedSave, AnErrorOfOneRankIsThatOfAll) {
  TemporaryFolder out;
  std::atomic<int> told = 0;
  on_ranks(run_on({.data = 2, .zero = 3}), [&](Session& session) {
    TensorStore& store = session.store();
    save_in_slices(out.path(), state_of(7), store, 2);
    if (!store.leads()) {
      float infinite = std::numeric_limits<float>::infinity();
      store.write("h.1.attn.c_proj.weight", &infinite, sizeof infinite);
    }
    expect_user_error([&] { save_in_slices(out.path(), state_of(8), store, 2); },
                      {"step 8 could not be saved", "Rank 1: ", "h.1.attn.c_proj.weight", "diverged"});
    ++told;
  });
  EXPECT_EQ(told, 2);
  EXPECT_FALSE(fs::exists(out / "checkpoints/step_00000008"));
  EXPECT_FALSE(fs::exists(out / "checkpoints/step_00000008.tmp"));
  verify_checkpoint(out / "checkpoints/step_00000007");
}

TEST(SharedSave, AFolderThatCannotBeMadeIsAnErrorOfAll) {
  TemporaryFolder out;
  std::ofstream(out / "checkpoints") << "a file";
  on_ranks(run_on({.data = 2}), [&](Session& session) {
    expect_user_error([&] { save_in_slices(out.path(), state_of(7), session.store(), 2); }, {"could not be saved"});
  });
}

}  // namespace
}  // namespace tokamak::test
