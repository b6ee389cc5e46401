// A device with three queues on the CPU and one of copies to the host, for one session. Whenever it has to go on, it
// takes from one or another at random, as far as events allow: whatever order a GPU may choose, this comes by it sooner
// or later.
#pragma once

#include "backend/cpu/cpu_backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <set>

namespace tokamak::test {

class ShuffledDevice : public Backend {
 public:
  explicit ShuffledDevice(uint32_t seed) : random_(seed) {}

  std::unique_ptr<Memory> allocate(int64_t bytes) override { return cpu_->allocate(bytes); }
  std::unique_ptr<Kernel> compile(const Graph& graph, const Node& node) override { return compile_on(0, graph, node); }
  std::unique_ptr<Kernel> compile_on(int stream, const Graph& graph, const Node& node) override {
    return std::make_unique<QueuedKernel>(*this, stream, cpu_->compile(graph, node));
  }
  std::unique_ptr<StreamEvent> make_event() override { return std::make_unique<QueuedEvent>(*this); }
  std::unique_ptr<HostCopies> make_host_copies() override { return std::make_unique<QueuedCopies>(*this); }

  void copy_in(void* to, const void* from, int64_t bytes) override {
    auto* first = static_cast<const std::byte*>(from);
    ask(0, [=, this, copy = std::vector<std::byte>(first, first + bytes)] { cpu_->copy(to, copy.data(), bytes); });
  }
  void copy(void* to, const void* from, int64_t bytes) override {
    ask(0, [=, this] { cpu_->copy(to, from, bytes); });
  }
  void copy_out(void* to, const void* from, int64_t bytes) override {
    synchronize();
    cpu_->copy(to, from, bytes);
  }
  void synchronize() override {
    while (!queues_[0].empty()) go_on();
    for (int stream = 1; stream < kStreams; ++stream)
      EXPECT_TRUE(may_reach || queues_[stream].empty()) << "stream " << stream << " has not ended with the run";
  }
  int64_t used_bytes() const override { return 0; }
  int64_t free_bytes() const override { return 0; }

  int kernels_beside = 0, swaps = 0;  // launched on streams 1 and 2; done before what was asked for earlier
  bool may_reach = false;             // streams beyond the end of a run

 private:
  static constexpr int kStreams = 3, kCopies = kStreams, kQueues = kStreams + 1;

  struct Work {
    std::function<void()> run;
    std::function<bool()> ready;
    int number;  // in the order in which it was asked for
  };

  // Scratch memory of one stream is not the other's.
  class QueuedKernel : public Kernel {
   public:
    QueuedKernel(ShuffledDevice& device, int stream, std::unique_ptr<Kernel> kernel)
        : device_(device), stream_(stream), kernel_(std::move(kernel)) {}
    int64_t workspace_bytes() const override { return std::max<int64_t>(kernel_->workspace_bytes(), 64); }
    void use_workspace(void* at) override {
      for (int other = 0; other < kStreams; ++other)
        EXPECT_TRUE(other == stream_ || !device_.workspaces_[other].contains(at));
      device_.workspaces_[stream_].insert(at);
      kernel_->use_workspace(at);
    }
    void run(std::span<const void* const> in, std::span<void* const> out) override {
      device_.kernels_beside += stream_ > 0;
      device_.ask(stream_, [=, this] { kernel_->run(in, out); });
    }

   private:
    ShuffledDevice& device_;
    int stream_;
    std::unique_ptr<Kernel> kernel_;
  };

  class QueuedEvent : public StreamEvent {
   public:
    explicit QueuedEvent(ShuffledDevice& device) : device_(device) {}
    void record(int stream) override {
      device_.ask(stream, [this, number = ++recorded_] { done_ = number; });
    }
    void wait(int stream) override {
      EXPECT_GT(recorded_, 0) << "nothing to wait for";
      device_.ask(
          stream, [] {}, [this, number = recorded_] { return done_ >= number; });
    }
    bool is_done() const { return done_ == recorded_; }

   private:
    ShuffledDevice& device_;
    int recorded_ = 0, done_ = 0;
  };

  class QueuedCopies : public HostCopies {
   public:
    explicit QueuedCopies(ShuffledDevice& device) : device_(device), begin_(device), end_(device) {
      QueuedCopies::end();
    }
    void begin() override { begin_.record(0), begin_.wait(kCopies); }
    void copy(void* to, const void* from, int64_t bytes) override {
      device_.ask(kCopies, [=, this] { device_.cpu_->copy(to, from, bytes); });
    }
    void end() override { end_.record(kCopies); }
    void wait() override {
      while (!end_.is_done()) device_.go_on();
    }
    void come_before(int stream) override { end_.wait(stream); }

   private:
    ShuffledDevice& device_;
    QueuedEvent begin_, end_;
  };

  void ask(int stream, std::function<void()> run, std::function<bool()> ready = {}) {
    queues_[stream].push_back({std::move(run), std::move(ready), asked_++});
  }

  bool ready(int stream) const {
    return !queues_[stream].empty() && (!queues_[stream].front().ready || queues_[stream].front().ready());
  }

  void go_on() {
    if (left_of_turn_-- == 0) {  // long and short turns
      turn_ = std::uniform_int_distribution<int>(0, kQueues - 1)(random_);
      left_of_turn_ = 1 << std::uniform_int_distribution<int>(0, 6)(random_);
    }
    int stream = turn_;
    for (int i = 0; i < kQueues && !ready(stream); ++i) stream = (stream + 1) % kQueues;
    if (!ready(stream)) throw std::logic_error("all streams wait");
    Work work = std::move(queues_[stream].front());
    queues_[stream].pop_front();
    swaps += std::any_of(std::begin(queues_), std::end(queues_), [&](const std::deque<Work>& queue) {
      return !queue.empty() && queue.front().number < work.number;
    });
    work.run();
  }

  std::unique_ptr<Backend> cpu_ = cpu::make_backend();
  std::deque<Work> queues_[kQueues];
  std::set<void*> workspaces_[kStreams];
  int asked_ = 0, turn_ = 0, left_of_turn_ = 0;
  std::mt19937 random_;
};

}  // namespace tokamak::test
