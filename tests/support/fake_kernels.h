// A KernelSet that answers as a test wants it to.
#pragma once

#include "graph/platform.h"

#include <functional>

namespace tokamak::test {

template <class T>
using KernelAnswer = std::function<T(const Graph&, const Node&)>;

/// Empty ones are answered as KernelSet does.
struct KernelAnswers {
  KernelAnswer<bool> takes_matmul = {};
  KernelAnswer<bool> attention_extras = {};
  KernelAnswer<bool> has_kernel = {};
  KernelAnswer<int64_t> scratch_bytes = {};
};

class FakeKernels : public KernelSet {
 public:
  explicit FakeKernels(KernelAnswers answers) : answers_(std::move(answers)) {}
  bool takes_matmul(const Graph& graph, const Node& group) const override {
    return answers_.takes_matmul ? answers_.takes_matmul(graph, group) : KernelSet::takes_matmul(graph, group);
  }
  bool attention_extras(const Graph& graph, const Node& node) const override {
    return answers_.attention_extras ? answers_.attention_extras(graph, node)
                                     : KernelSet::attention_extras(graph, node);
  }
  bool has_kernel(const Graph& graph, const Node& node) const override {
    return answers_.has_kernel ? answers_.has_kernel(graph, node) : KernelSet::has_kernel(graph, node);
  }
  int64_t scratch_bytes(const Graph& graph, const Node& node) const override {
    return answers_.scratch_bytes ? answers_.scratch_bytes(graph, node) : KernelSet::scratch_bytes(graph, node);
  }

 private:
  KernelAnswers answers_;
};

inline std::shared_ptr<const KernelSet> fake_kernels(KernelAnswers answers) {
  return std::make_shared<const FakeKernels>(std::move(answers));
}

}  // namespace tokamak::test
