// A tensor store in plain host memory and a small model's parameters, for tests of checkpoints.
#pragma once

#include "base/random.h"
#include "config/model_config.h"
#include "exec/program.h"
#include "graph/builder.h"
#include "model/gpt.h"

#include <cstring>
#include <stdexcept>

namespace tokamak::test {

class HostMemory : public Memory {
 public:
  explicit HostMemory(int64_t bytes) : bytes_(size_t(bytes)) {}
  void* data() override { return bytes_.data(); }

 private:
  std::vector<std::byte> bytes_;
};

class HostBackend : public Backend {
 public:
  std::unique_ptr<Memory> allocate(int64_t bytes) override { return std::make_unique<HostMemory>(bytes); }
  std::unique_ptr<Kernel> compile(const Graph&, const Node&) override { throw std::logic_error("it has no kernels"); }
  void copy_in(void* to, const void* from, int64_t bytes) override { std::memcpy(to, from, size_t(bytes)); }
  void copy_out(void* to, const void* from, int64_t bytes) override { std::memcpy(to, from, size_t(bytes)); }
  void copy(void* to, const void* from, int64_t bytes) override { std::memcpy(to, from, size_t(bytes)); }
  int64_t used_bytes() const override { return 0; }
  int64_t free_bytes() const override { return 0; }
};

inline ModelConfig small_model() { return {.layers = 1, .heads = 2, .width = 8, .context = 6, .vocab = 11}; }

/// The tensors of a run as the training step has them: parameters, Adam's moments, step, gradient sums.
class HostStore {
 public:
  /// The vocabulary has `padded_vocab` rows in the store (0: as many as in the model).
  explicit HostStore(const ModelConfig& model = small_model(), int64_t padded_vocab = 0)
      : parameters(gpt_parameters(model)), store(backend_) {
    Graph graph;
    GraphBuilder g(graph);
    for (const ParameterInfo& info : parameters) {
      ValueType type{DType::kF32, info.shape};
      if (padded_vocab > 0 && info.shape[0] == model.vocab) type.shape[0] = padded_vocab;
      ValueId p = graph.add_argument(Argument::Kind::kParameter, info.name, type, {info.role, "", info.shape});
      for (const char* moment : {"adam.m", "adam.v"}) g.state_of(p, moment, Role::kMoment);
      g.state_of(p, "grad", Role::kGradientSum);
    }
    g.state("step", {DType::kF32, {}});
    g.state("cache.0", {DType::kF32, {1, 6, 16}}, Role::kCache);
    store.make(graph);
  }

  void add_state(const std::string& name, const ValueType& type) {
    Graph graph;
    GraphBuilder(graph).state(name, type);
    store.make(graph);
  }

  /// Random bits everywhere, but zeros where a run has them: in padded rows and in gradient sums.
  void fill(uint64_t seed) {
    for (const std::string& name : store.names()) {
      std::vector<float> values(size_t(num_elements(store.type(name).shape)));
      if (store.spec(name).role != Role::kGradientSum)
        for (size_t i = 0; i < size_t(num_elements(store.spec(name).global)); ++i)
          values[i] = uniform_float(philox4x32(seed, i, std::hash<std::string>()(name))[0]) - 0.5f;
      write(name, values);
    }
  }

  std::vector<float> read(const std::string& name) const {
    std::vector<float> values(size_t(num_elements(store.type(name).shape)));
    store.read(name, values.data(), num_bytes(store.type(name)));
    return values;
  }
  void write(const std::string& name, const std::vector<float>& values) {
    store.write(name, values.data(), int64_t(values.size() * sizeof(float)));
  }

 private:
  HostBackend backend_;

 public:
  std::vector<ParameterInfo> parameters;
  TensorStore store;
};

}  // namespace tokamak::test
