// A backend is told of every thread that uses it: a GPU other than the first has to be chosen in each.
#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <thread>

#include "backend/cpu/cpu_backend.h"
#include "config/config.h"
#include "ladder/ladder.h"
#include "run/trainer.h"
#include "tests/support/quiet_observer.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

// The CPU; notes who calls it from a thread that it was not told of.
class CountingThreads : public Backend {
 public:
  CountingThreads() { CountingThreads::use_in_this_thread(); }
  void use_in_this_thread() override {
    std::lock_guard lock(mutex_);
    known_.insert(std::this_thread::get_id());
  }
  std::unique_ptr<Memory> allocate(int64_t bytes) override { return note("allocate"), cpu_->allocate(bytes); }
  std::unique_ptr<Kernel> compile(const Graph& graph, const Node& node) override;
  void copy_in(void* to, const void* from, int64_t n) override { note("copy_in"), cpu_->copy_in(to, from, n); }
  void copy_out(void* to, const void* from, int64_t n) override { note("copy_out"), cpu_->copy_out(to, from, n); }
  void copy(void* to, const void* from, int64_t n) override { note("copy"), cpu_->copy(to, from, n); }
  std::unique_ptr<Readback> read_later(const void* from, int64_t n) override {
    return note("read_later"), cpu_->read_later(from, n);
  }
  int64_t used_bytes() const override { return cpu_->used_bytes(); }
  int64_t free_bytes() const override { return cpu_->free_bytes(); }

  void note(const std::string& call) {
    std::lock_guard lock(mutex_);
    (known_.contains(std::this_thread::get_id()) ? told : untold).insert(call);
    threads.insert(std::this_thread::get_id());
  }

  std::set<std::string> told, untold;  // calls from threads that it was told of, and from others
  std::set<std::thread::id> threads;

 private:
  std::mutex mutex_;
  std::set<std::thread::id> known_;
  std::unique_ptr<Backend> cpu_ = cpu::make_backend();
};

class NotedKernel : public Kernel {
 public:
  NotedKernel(CountingThreads& backend, std::unique_ptr<Kernel> kernel)
      : backend_(backend), kernel_(std::move(kernel)) {}
  int64_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
  void use_workspace(void* at) override { kernel_->use_workspace(at); }
  void run(std::span<const void* const> in, std::span<void* const> out) override {
    backend_.note("run");
    kernel_->run(in, out);
  }

 private:
  CountingThreads& backend_;
  std::unique_ptr<Kernel> kernel_;
};

std::unique_ptr<Kernel> CountingThreads::compile(const Graph& graph, const Node& node) {
  note("compile");
  return std::make_unique<NotedKernel>(*this, cpu_->compile(graph, node));
}

void expect_all_told(const CountingThreads& backend) {
  EXPECT_TRUE(backend.untold.empty()) << *backend.untold.begin() << " from a thread that the backend was not told of";
  for (const char* call : {"allocate", "compile", "copy_in", "read_later", "run"})
    EXPECT_TRUE(backend.told.contains(call)) << call;
  EXPECT_GT(backend.threads.size(), 1u) << "steps run on a thread of their own";
}

TEST(DeviceThread, TrainingTellsTheBackend) {
  TemporaryFolder folder;
  test::make_tiny_data(folder.path());
  RunConfig config = test::tiny_config(folder.path());
  config.train.steps = 4;
  config.train.eval_every = config.train.sample_every = config.train.checkpoint_every = 2;
  config.train.sample_tokens = 2;
  CountingThreads first, second;
  test::QuietObserver observer;
  train(config, cpu::nominal_platform(), first, observer, [] { return false; });
  expect_all_told(first);
  config.train.steps = 6;  // from a checkpoint
  train(config, cpu::nominal_platform(), second, observer, [] { return false; });
  expect_all_told(second);
}

TEST(DeviceThread, TheLadderTellsTheBackend) {
  RunConfig config;
  config.model = {.layers = 1, .heads = 2, .width = 32, .context = 16, .vocab = 301};
  config.train.batch = 2;
  CountingThreads backend;
  run_ladder(config, cpu::nominal_platform(), backend, cpu_rungs().first(1), {.steps = 2}, {});
  expect_all_told(backend);
}

}  // namespace
}  // namespace tokamak
