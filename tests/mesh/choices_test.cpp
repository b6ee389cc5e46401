// Kernels that a device chooses by measurement: the rank that leads chooses for all, also for other stages' shapes.
#include "backend/kernel_tuning.h"
#include "exec/measure.h"
#include "graph/single_node.h"
#include "run/rank_decisions.h"
#include "tests/mesh/train_steps.h"
#include "tests/support/resolve_first.h"
#include "tune/tune.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <set>

namespace tokamak::test {
namespace {

// The CPU as a device that has to choose matmuls' kernels: the first time that it meets one, unless it is told.
class ChoosingDevice : public Backend, public KernelTuning {
 public:
  std::unique_ptr<Memory> allocate(int64_t bytes) override { return cpu_->allocate(bytes); }
  std::unique_ptr<Kernel> compile(const Graph& graph, const Node& node) override {
    if (node.op->autocast == Autocast::kLow && known_.insert(kernel_key(graph, node)).second) ++chosen;
    return cpu_->compile(graph, node);
  }
  void copy_in(void* to, const void* from, int64_t bytes) override { cpu_->copy_in(to, from, bytes); }
  void copy_out(void* to, const void* from, int64_t bytes) override { cpu_->copy_out(to, from, bytes); }
  void copy(void* to, const void* from, int64_t bytes) override { cpu_->copy(to, from, bytes); }
  double time(const std::function<void()>&) override { return 1e-3; }
  int64_t used_bytes() const override { return 0; }
  int64_t free_bytes() const override { return 0; }

  KernelTuning* tuning() override { return this; }
  void compile_ahead(const Graph&, const Node&) override {}
  void expect(const Graph&, std::span<const double>) override {}
  std::string choices() const override { return nlohmann::json(known_).dump(); }
  bool adopt_choices(const std::string& text) override {
    known_.merge(nlohmann::json::parse(text).get<std::set<std::string>>());
    return true;
  }

  int chosen = 0;

 private:
  std::unique_ptr<Backend> cpu_ = cpu::make_backend();
  std::set<std::string> known_;
};

// How many kernels each rank has chosen itself, for a step and for a validation.
std::vector<int> chosen_by_ranks(const MeshConfig& mesh) {
  RunConfig config = tiny_mesh_run();
  config.model.layers = 4;
  config.mesh = mesh;
  std::vector<int> chosen(size_t(step_mesh(mesh).num_ranks()));
  run_ranks(int(chosen.size()), [&](Communicator& world) {
    set_num_threads(1);
    MeshRanks ranks(step_mesh(mesh), world);
    ChoosingDevice device;
    Platform platform = cpu::nominal_platform(1);
    if (leads(&ranks))
      platform = tune(config, platform, device, Measure::kChoices);
    else
      await_choices(&ranks, platform.tuning, device);
    Session session = make_session(config, platform, device, 0, &ranks);
    if (leads(&ranks)) give_choices(&ranks, platform.tuning, device);
    session.initialise();
    session.evaluate(std::vector{batch_of(session.resolved(), 0, 0)});
    chosen[size_t(ranks.rank())] = device.chosen;
  });
  return chosen;
}

TEST(Choices, OneRankMakesThemForAllDataRanks) {
  std::vector<int> chosen = chosen_by_ranks({.data = 2});
  EXPECT_GT(chosen[0], 0);
  EXPECT_EQ(chosen[1], 0);
}

TEST(Choices, OneRankMakesThemForAllStages) {
  for (const char* schedule : {"1f1b", "zero_bubble"}) {
    std::vector<int> chosen = chosen_by_ranks({.pipe = 2, .data = 2, .schedule = schedule});
    EXPECT_GT(chosen[0], 0);
    for (size_t rank = 1; rank < chosen.size(); ++rank) EXPECT_EQ(chosen[rank], 0) << schedule << " rank " << rank;
  }
}

}  // namespace
}  // namespace tokamak::test
