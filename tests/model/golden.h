// The golden values of tools/make_goldens.py, make_llama_goldens.py and make_modern_goldens.py, which document the
// files, and the comparison with them.
#pragma once

#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "config/config.h"
#include "config/json.h"
#include "data/loader.h"
#include "graph/host_tensor.h"
#include "model/model.h"
#include "tests/support/family_logits.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>

namespace tokamak::test {

class Golden {
 public:
  explicit Golden(const std::string& name) : reader_("tests/goldens/" + name + ".safetensors") {
    if (reader_.metadata().count("run"))
      model_ = run_config_from_json(text("run"), "golden").model;
    else
      reader_.metadata().count("config") ? read_config() : read_sizes();
    optimizer_.lr = number("lr");
    optimizer_.beta1 = number("beta1");
    optimizer_.beta2 = number("beta2");
    optimizer_.eps = number("eps");
    optimizer_.weight_decay = number("weight_decay");
    optimizer_.clip = number("clip");
  }

  const ModelConfig& model() const { return model_; }
  const OptimizerConfig& optimizer() const { return optimizer_; }
  int64_t batch() const { return integer("batch"); }
  int64_t steps() const { return integer("steps"); }

  std::vector<float> floats(const std::string& name) const { return reader_.floats(name); }

  /// Parameter `info` before training.
  HostTensor parameter(const ParameterInfo& info) const {
    std::vector<float> values = floats("param." + info.name);
    return HostTensor({DType::kF32, info.shape}, std::vector<double>(values.begin(), values.end()));
  }

  /// The batch of a step, of its sequences [first, first + count).
  Batch batch_of(int64_t step, int64_t first, int64_t count) const {
    return {0, ids(fmt::format("tokens.{}", step), first, count), ids(fmt::format("targets.{}", step), first, count)};
  }

 private:
  void read_sizes() {
    model_.layers = integer("layers");
    model_.heads = integer("heads");
    model_.width = integer("width");
    model_.context = integer("context");
    model_.vocab = integer("vocab");
    model_.bias = text("bias") == "true";
    model_.tie_weights = text("tie_weights") == "true";
  }
  void read_config() {
    nlohmann::json config = parse_json(text("config"));
    model_ = family_of_config(config, "golden").hugging_face->read_config(config, "golden");
  }

  const std::string& text(const std::string& key) const { return reader_.metadata().at(key); }
  int64_t integer(const std::string& key) const { return std::stoll(text(key)); }
  double number(const std::string& key) const { return std::stod(text(key)); }

  std::vector<int32_t> ids(const std::string& name, int64_t first, int64_t count) const {
    std::vector<int32_t> out(size_t(count * model_.context));
    std::memcpy(out.data(), reader_.bytes(name).data() + first * model_.context * 4, out.size() * 4);
    return out;
  }

  SafetensorsReader reader_;
  ModelConfig model_;
  OptimizerConfig optimizer_;
};

inline constexpr const char* kGoldens[] = {
    "gpt2_tiny",   "gpt2_tiny_untied_nobias", "llama_tiny",      "mistral_tiny", "qwen2_tiny", "qwen3_tiny",
    "modern_tiny", "modern_gated_tiny",       "modern_deep_tiny"};

inline HostTensor to_tensor(const std::vector<int32_t>& ids, Shape shape) {
  return HostTensor({DType::kI32, std::move(shape)}, std::vector<double>(ids.begin(), ids.end()));
}

/// Fails, saying by how much, when |got - expected| exceeds tolerance * max |expected| anywhere. `got` may have more
/// rows (padding), which must then hold zeros or are not looked at.
template <typename T>
::testing::AssertionResult close_to(const std::string& name, const std::vector<T>& got,
                                    const std::vector<float>& expected, double tolerance) {
  if (got.size() < expected.size()) return ::testing::AssertionFailure() << name << ": " << got.size() << " elements";
  double top = 0, worst = 0;
  size_t at = 0;
  for (float v : expected) top = std::max(top, std::fabs(double(v)));
  for (size_t i = 0; i < expected.size(); ++i) {
    double d = std::fabs(double(got[i]) - double(expected[i]));
    if (!(d <= worst)) worst = d, at = i;
  }
  if (worst <= tolerance * top) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << name << "[" << at << "] is " << double(got[at]) << ", expected "
                                       << expected[at] << ": off by " << worst / top << " of the tensor's maximum "
                                       << top << ", allowed " << tolerance;
}

/// The bias of the keys has no influence on the loss: its gradient is rounding noise, and Adam makes steps of that.
inline bool has_noise(const std::string& parameter) { return parameter.ends_with("c_attn.bias"); }

/// Without the noise: the biases of queries and values.
template <typename T>
std::vector<T> without_noise(const std::vector<T>& bias) {
  std::vector<T> kept = bias;
  auto third = int64_t(bias.size() / 3);
  kept.erase(kept.begin() + third, kept.begin() + 2 * third);
  return kept;
}

}  // namespace tokamak::test
