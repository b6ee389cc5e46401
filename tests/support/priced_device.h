// A backend that chooses kernels by measuring them, without a clock.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "backend/kernel_tuning.h"
#include "graph/op_def.h"
#include "graph/single_node.h"
#include "ops/matmul.h"

namespace tokamak::test {

/// The ops of a kernel: "matmul", "eight bits matmul", or those of a group's body.
inline std::string form_of(const Node& node) {
  bool has_scales = node.op == &op::matmul && node.inputs.size() == 4;
  if (!node.body) return (has_scales ? "eight bits " : "") + std::string(node.op->name);
  std::string form;
  for (const Node& inner : node.body->nodes()) form += (form.empty() ? "" : "+") + std::string(inner.op->name);
  return form + (node.outputs.size() > 1 ? "+aux" : "");
}

/// Counts its runs.
class NoKernel : public Kernel {
 public:
  explicit NoKernel(int& runs) : runs_(runs) {}
  void run(std::span<const void* const>, std::span<void* const>) override { ++runs_; }

 private:
  int& runs_;
};

/// A device on which kernels take the seconds that a test says, by their form.
class PricedDevice : public Backend, public KernelTuning {
 public:
  explicit PricedDevice(std::map<std::string, double> seconds) : seconds_(std::move(seconds)) {}
  std::unique_ptr<Memory> allocate(int64_t bytes) override { return cpu_->allocate(bytes); }
  std::unique_ptr<Kernel> compile(const Graph& graph, const Node& node) override {
    form_ = form_of(node);
    if (!begun_.contains(kernel_key(graph, node))) late.insert(form_);
    if (!expected.contains(form_)) ++unexpected;
    ++compiled;
    return std::make_unique<NoKernel>(runs_);
  }
  void copy_in(void* to, const void* from, int64_t bytes) override { cpu_->copy_in(to, from, bytes); }
  void copy_out(void* to, const void* from, int64_t bytes) override { cpu_->copy_out(to, from, bytes); }
  void copy(void* to, const void* from, int64_t bytes) override { cpu_->copy(to, from, bytes); }
  double time(const std::function<void()>& work) override {
    timed.insert(form_);
    events.push_back("time " + form_);
    runs_ = 0;
    work();
    return runs_ * (seconds_.contains(form_) ? seconds_[form_] : 1e-3);
  }
  void end_compiling() override { ++ended; }
  KernelTuning* tuning() override { return this; }
  void compile_ahead(const Graph& graph, const Node& node) override {
    ahead.insert(form_of(node));
    if (timed.empty()) begun_.insert(kernel_key(graph, node));
    events.push_back("ahead " + form_of(node));
  }
  void expect(const Graph& step, std::span<const double> seconds) override {
    ASSERT_EQ(seconds.size(), step.nodes().size());
    for (size_t n = 0; n < seconds.size(); ++n)
      if (seconds[n] > 0) expected.insert(form_of(step.nodes()[n]));
  }
  std::string choices() const override { return "algorithm 7"; }
  bool adopt_choices(const std::string& text) override {
    adopted = text;
    return true;
  }
  int64_t used_bytes() const override { return 0; }
  int64_t free_bytes() const override { return free; }

  int64_t free = 0;  // 0: unknown
  int compiled = 0, ended = 0, unexpected = 0;
  std::set<std::string> timed, ahead, expected;  // forms
  std::set<std::string> late;                    // those of kernels that were not begun before the first was timed
  std::vector<std::string> events;               // "ahead FORM" and "time FORM", in order
  std::string adopted;

 protected:
  int runs_ = 0;  // of kernels, since the last time began

 private:
  std::map<std::string, double> seconds_;
  std::string form_;
  std::set<std::string> begun_;  // keys
  std::unique_ptr<Backend> cpu_ = cpu::make_backend();
};

}  // namespace tokamak::test
