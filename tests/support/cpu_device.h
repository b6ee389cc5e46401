// The CPU's backend, for tests of which a device differs from it in some way: override what does.
#pragma once

#include "backend/cpu/cpu_backend.h"

namespace tokamak::test {

class CpuDevice : public Backend {
 public:
  std::unique_ptr<Memory> allocate(int64_t bytes) override { return cpu_->allocate(bytes); }
  std::unique_ptr<Kernel> compile(const Graph& graph, const Node& node) override { return cpu_->compile(graph, node); }
  void copy_in(void* to, const void* from, int64_t bytes) override { cpu_->copy_in(to, from, bytes); }
  void copy_out(void* to, const void* from, int64_t bytes) override { cpu_->copy_out(to, from, bytes); }
  void copy(void* to, const void* from, int64_t bytes) override { cpu_->copy(to, from, bytes); }
  int64_t used_bytes() const override { return 0; }
  int64_t free_bytes() const override { return 0; }

 private:
  std::unique_ptr<Backend> cpu_ = cpu::make_backend();
};

/// A mark of a clock that says an integer, in seconds.
struct Tick : TimeMark {
  explicit Tick(int at) : at(at) {}
  double seconds_since(const TimeMark& begin) const override { return at - dynamic_cast<const Tick&>(begin).at; }
  int at;
};

}  // namespace tokamak::test
