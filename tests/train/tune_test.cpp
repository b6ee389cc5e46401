#include "train/tune.h"

#include "backend/cpu/cpu_backend.h"
#include "graph/op_def.h"
#include "train/step_compiler.h"

#include <gtest/gtest.h>

#include <map>

namespace tokamak {
namespace {

// The ops of a kernel: "matmul", or those of a group's body.
std::string form_of(const Node& node) {
  if (!node.body) return std::string(node.op->name);
  std::string form;
  for (const Node& inner : node.body->nodes()) form += (form.empty() ? "" : "+") + std::string(inner.op->name);
  return form + (node.outputs.size() > 1 ? "+aux" : "");
}

class NoKernel : public Kernel {
 public:
  void run(std::span<const void* const>, std::span<void* const>) override {}
};

// A device on which kernels take the seconds that a test says, by their form.
class PricedDevice : public Backend {
 public:
  explicit PricedDevice(std::map<std::string, double> seconds) : seconds_(std::move(seconds)) {}
  std::unique_ptr<Memory> allocate(int64_t bytes) override { return cpu_->allocate(bytes); }
  std::unique_ptr<Kernel> compile(const Graph&, const Node& node) override {
    form_ = form_of(node);
    ++compiled;
    return std::make_unique<NoKernel>();
  }
  void copy_in(void* to, const void* from, int64_t bytes) override { cpu_->copy_in(to, from, bytes); }
  void copy_out(void* to, const void* from, int64_t bytes) override { cpu_->copy_out(to, from, bytes); }
  void copy(void* to, const void* from, int64_t bytes) override { cpu_->copy(to, from, bytes); }
  double time(const std::function<void()>&) override { return seconds_.contains(form_) ? seconds_[form_] : 1e-3; }
  int64_t used_bytes() const override { return 0; }
  int64_t free_bytes() const override { return 0; }

  int compiled = 0;

 private:
  std::map<std::string, double> seconds_;
  std::string form_;
  std::unique_ptr<Backend> cpu_ = cpu::make_backend();
};

Target tunable() {
  Target target;
  target.tunable = target.matmul_gelu_aux = target.matmul_gelu_grad = true;
  return target;
}

RunConfig tiny() {
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 16, .context = 8, .vocab = 128};
  config.train.batch = 2;
  config.compile.precision = "fp32";
  return config;
}

// How often each form of matmul is in the step of the tuned target.
std::map<std::string, int> tuned_forms(std::map<std::string, double> seconds) {
  PricedDevice device(std::move(seconds));
  Target target = tune(tiny(), tunable(), device);
  std::map<std::string, int> forms;
  CompiledStep step = compile_step(tiny(), target);
  for (const Node& node : step.step.plan.graph.nodes())
    if (std::string form = form_of(node); form.starts_with("matmul")) ++forms[form];
  return forms;
}

TEST(Tune, KeepsEpiloguesThatCostNothing) {
  auto forms = tuned_forms({});
  EXPECT_EQ(forms["matmul+add+gelu+aux"], 2);
  EXPECT_EQ(forms["matmul+add"], 3 * 2);
  EXPECT_EQ(forms["matmul+gelu_grad"], 2);
}

TEST(Tune, TakesASimplerFormWhereThatIsFaster) {
  auto forms = tuned_forms({{"matmul+add+gelu+aux", 1.0}});
  EXPECT_EQ(forms["matmul+add+gelu+aux"], 0);
  EXPECT_EQ(forms["matmul+add"], 4 * 2);
  EXPECT_EQ(forms["matmul+gelu_grad"], 2);
}

TEST(Tune, TakesThePlainMatmulWhereTheSimplerFormIsNoBetter) {
  auto forms = tuned_forms({{"matmul+add+gelu+aux", 1.0}, {"matmul+add", 2.0}});
  EXPECT_EQ(forms["matmul+add+gelu+aux"], 0);
  EXPECT_EQ(forms["matmul+add"], 0);
  EXPECT_EQ(forms["matmul+gelu_grad"], 2);
  EXPECT_EQ(tuned_forms({{"matmul+gelu_grad", 1.0}})["matmul+gelu_grad"], 0);
}

TEST(Tune, LeavesOtherTargetsAlone) {
  PricedDevice device({});
  Target target;
  EXPECT_TRUE(tune(tiny(), target, device).measured_seconds.empty());
  EXPECT_EQ(device.compiled, 0);
}

}  // namespace
}  // namespace tokamak
