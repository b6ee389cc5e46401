// Shadows of runs with FP8, on one rank and on meshes: ranks that are threads, and the ops' references.
#include "run/shadow.h"
#include "tests/mesh/train_steps.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tokamak::test {
namespace {

RunConfig fp8_run(const MeshConfig& mesh = {}) {
  RunConfig config = tiny_mesh_run();
  config.model = {.layers = 2, .heads = 2, .width = 32, .context = 16, .vocab = 61};
  config.train.batch = 4;
  config.train.total_batch = 2 * 4 * 16;
  config.train.shadow_every = 1;
  config.compile.precision = Precision::kFp8;
  config.mesh = mesh;
  return config;
}

using Spoil = std::function<void(Session&)>;

// Of the initial parameters, or what `spoil` makes of them.
ShadowMetrics shadow_of(const RunConfig& config, const Spoil& spoil = {}) {
  ShadowMetrics first;
  auto work = [&](const MeshRanks* ranks) {
    auto backend = cpu::make_backend();
    set_num_threads(1);
    Platform platform = mesh_platform(config);
    Session session = make_session(config, platform, *backend, 0, ranks);
    Shadow shadow(session, platform, *backend, ranks);
    session.initialise();
    if (spoil) spoil(session);
    ShadowMetrics metrics = shadow.compare(batch_of(session.resolved(), 0, 0), 0);
    if (leads(ranks)) first = std::move(metrics);
  };
  Mesh mesh = step_mesh(config.mesh);
  if (mesh.num_ranks() == 1) return work(nullptr), first;
  run_ranks(int(mesh.num_ranks()), [&](Communicator& world) {
    MeshRanks ranks(mesh, world);
    work(&ranks);
  });
  return first;
}

void set_element(Session& session, const std::string& name, size_t element, float value) {
  std::vector<float> values(size_t(num_elements(session.store().type(name).shape)));
  session.store().read_whole(name, values.data());
  values[element] = value;
  session.store().write_share(name, values.data());
}

// A hidden unit that is never on, with a weight that leaves no room for the others in eight bits: in bf16 nothing
// changes.
void kill_unit_with_large_weight(Session& session) {
  for (const std::string block : {"h.0", "h.1"}) {
    set_element(session, block + ".mlp.c_fc.weight", 7, 1e5F);
    set_element(session, block + ".mlp.c_fc.bias", 7, -1e7F);
  }
}

TEST(ShadowRun, GradientsInEightBitsAreCloseToThoseInSixteen) {
  ShadowMetrics shadow = shadow_of(fp8_run());
  EXPECT_GT(shadow.cosine, 0.98);
  EXPECT_LT(shadow.cosine, 0.99999) << "both are computed alike";
  EXPECT_NEAR(shadow.loss, std::log(61), 0.2);
  EXPECT_NEAR(shadow.loss, shadow.bf16_loss, 0.01);
  EXPECT_NE(shadow.loss, shadow.bf16_loss);
  EXPECT_EQ(shadow.saturated, 0);
  std::vector<std::string> kinds;
  for (const auto& [kind, cosine] : shadow.cosines) {
    kinds.push_back(kind);
    EXPECT_GT(cosine, 0.9) << kind;
    EXPECT_LE(cosine, 1) << kind;
  }
  EXPECT_EQ(kinds, (std::vector<std::string>{"attn.c_attn", "attn.c_proj", "ln_1", "ln_2", "ln_f", "mlp.c_fc",
                                             "mlp.c_proj", "wpe", "wte"}));
}

TEST(ShadowRun, IsThatOfTheStepsPrecision) {
  RunConfig config = fp8_run();
  config.compile.fp8_except = {"attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj", "wte"};
  EXPECT_GT(shadow_of(config).cosine, 0.99999) << "nothing has eight bits";
  config.compile.fp8_except = {"wte"};
  EXPECT_LT(shadow_of(config).cosine, 0.99999);
}

TEST(ShadowRun, IsTheSameOnMeshes) {
  for (bool documents : {false, true}) {
    RunConfig config = fp8_run();
    config.data.mask_documents = documents;
    config.train.batch = 8;
    config.train.total_batch = 0;
    if (documents) config.compile.disable_passes = {"pad_vocab"};  // 61 rows, which ranks do not divide
    ShadowMetrics one = shadow_of(config);
    for (MeshConfig mesh :
         {MeshConfig{.data = 2, .slots = 1}, MeshConfig{.data = 2, .zero = 1, .slots = 1},
          MeshConfig{.data = 2, .zero = 3, .slots = 1}, MeshConfig{.data = 2, .slots = 4},
          MeshConfig{.data = 2, .zero = 3, .slots = 2}, MeshConfig{.tensor = 2}, MeshConfig{.data = 2, .tensor = 2}}) {
      config.mesh = mesh;
      ShadowMetrics many = shadow_of(config);
      std::string what =
          to_string(step_mesh(mesh)) + ", zero " + std::to_string(mesh.zero) + ", slots " + std::to_string(mesh.slots);
      EXPECT_NEAR(many.bf16_loss, one.bf16_loss, 0.01) << what;
      EXPECT_NEAR(many.cosine, one.cosine, 0.005) << what;
      for (const auto& [kind, cosine] : one.cosines) EXPECT_NEAR(many.cosines.at(kind), cosine, 0.05) << what << kind;
    }
  }
}

TEST(ShadowRun, CountsWhatSaturates) {
  RunConfig config = fp8_run({.slots = 1});
  config.train.batch = 8;
  config.train.total_batch = 0;
  Spoil spoil = [](Session& session) { set_element(session, "ln_f.weight", 3, 3e6F); };
  ShadowMetrics one = shadow_of(config, spoil);
  EXPECT_GT(one.saturated, 0);
  EXPECT_TRUE(std::isfinite(one.loss));
  for (int64_t data : {2, 4}) {
    config.mesh.data = data;
    EXPECT_EQ(shadow_of(config, spoil).saturated, one.saturated) << data;
  }
}

TEST(ShadowRun, NamesTheKindThatDrifts) {
  RunConfig config = fp8_run();
  auto backend = cpu::make_backend();
  Platform platform = mesh_platform(config);
  Session session = make_session(config, platform, *backend);
  Shadow shadow(session, platform, *backend, nullptr);
  session.initialise();
  kill_unit_with_large_weight(session);
  Batch batch = batch_of(session.resolved(), 0, 0);
  ShadowMetrics metrics = shadow.compare(batch, 0);
  std::string all;
  for (const auto& [kind, cosine] : metrics.cosines) all += kind + " " + std::to_string(cosine) + "; ";
  EXPECT_LT(metrics.least, 0.9) << all;
  EXPECT_EQ(shadow.find_causes(batch, 0, 0.9, [](const std::function<void()>& task) { task(); }),
            std::vector<std::string>{"mlp.c_fc"})
      << all;
}

// States, arena and all else that it takes: the steps around it have the bits that they would have.
TEST(ShadowRun, ChangesNoBitOfTheRun) {
  for (int64_t total : {0, 2 * 4 * 16}) {
    RunConfig config = fp8_run();
    config.train.total_batch = total;
    Outcome plain = train_on_mesh(config);
    auto backend = cpu::make_backend();
    Platform platform = mesh_platform(config);
    Session session = make_session(config, platform, *backend);
    Shadow shadow(session, platform, *backend, nullptr);
    session.initialise();
    for (int64_t step = 0; step < int64_t(plain.losses.size()); ++step) {
      run_a_step(session, step);
      shadow.compare(batch_of(session.resolved(), step, 0), step);
    }
    EXPECT_EQ(tensors_of<float>(session.store()), plain.tensors) << total;
  }
}

}  // namespace
}  // namespace tokamak::test
