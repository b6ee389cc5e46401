// The loss on real text falls as PyTorch's does on the same batches. What both share is described in
// tools/make_curves.py; tests/goldens/curves.json holds PyTorch's losses.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "backend/cpu/cpu_backend.h"
#include "base/file.h"
#include "config/config.h"
#include "data/tokenizer_files.h"
#include "run/session.h"
#include "tests/support/resolve_first.h"
#include "tests/support/shared_data.h"

namespace tokamak {
namespace {

using nlohmann::json;

RunConfig curve_config(const json& curves) {
  const json &model = curves["model"], &optimizer = curves["optimizer"];
  RunConfig config;
  config.model = {.layers = model["layers"],
                  .heads = model["heads"],
                  .width = model["width"],
                  .context = model["context"],
                  .vocab = model["vocab"]};
  config.optimizer = {.lr = optimizer["lr"],
                      .beta1 = optimizer["beta1"],
                      .beta2 = optimizer["beta2"],
                      .eps = optimizer["eps"],
                      .weight_decay = optimizer["weight_decay"],
                      .clip = optimizer["clip"]};
  config.train.batch = curves["batch"];
  config.compile.precision = Precision::kFp32;
  return config;
}

// `k`: the parameter's place among all names, sorted.
std::vector<float> first_weights(const ParameterInfo& info, uint32_t k) {
  std::vector<float> values(size_t(num_elements(info.shape)), info.name.ends_with(".weight") ? 1.0f : 0.0f);
  if (info.shape.size() == 1) return values;
  for (uint32_t i = 0; i < values.size(); ++i) {
    uint32_t z = i * 2654435761u + k * 40503u;
    z ^= z >> 16;
    z *= 0x7feb352d;
    z ^= z >> 15;
    z *= 0x846ca68b;
    z ^= z >> 16;
    values[i] = float(0.02 * std::sqrt(12.0) * (double(z) / 4294967296.0 - 0.5));
  }
  return values;
}

void write_first_weights(Session& session) {
  std::vector<std::string> names;
  for (const ParameterInfo& info : session.parameters()) names.push_back(info.name);
  std::sort(names.begin(), names.end());
  for (const ParameterInfo& info : session.parameters()) {
    auto k = std::lower_bound(names.begin(), names.end(), info.name) - names.begin();
    std::vector<float> values = first_weights(info, uint32_t(k));
    session.store().write(info.name, values.data(), int64_t(values.size()) * 4);
  }
}

std::vector<int32_t> first_tokens(const std::string& name, size_t count) {
  std::string text = read_file(shared_data(name)).substr(0, 16 * count);
  text.resize(text.rfind('\n'));
  std::vector<int32_t> ids = load_tokenizer(shared_data("gpt2")).encode(text);
  ids.resize(count);
  return ids;
}

Batch batch_of(const std::vector<int32_t>& ids, int64_t step, int64_t size) {
  auto begin = ids.begin() + step * size;
  return {.tokens = {begin, begin + size}, .targets = {begin + 1, begin + size + 1}};
}

// Its first steps, `steps` of those that the goldens have.
void expect_curve(const std::string& name, int64_t steps) {
  TOKAMAK_NEED_SHARED_DATA(name);
  TOKAMAK_NEED_SHARED_DATA("gpt2/encoder.json");
  json curves = json::parse(read_file("tests/goldens/curves.json"));
  const json& golden = curves["texts"][name];
  RunConfig config = curve_config(curves);
  std::vector<int32_t> ids = first_tokens(name, golden["tokens"]);
  ASSERT_EQ(std::vector<int32_t>(ids.begin(), ids.begin() + 8), golden["first_tokens"].get<std::vector<int32_t>>());
  std::unique_ptr<Backend> backend = cpu::make_backend();
  Session session = make_session(config, cpu::nominal_platform(), *backend);
  write_first_weights(session);
  auto at = golden["at"].get<std::vector<int64_t>>();
  auto losses = golden["losses"].get<std::vector<double>>();
  fmt::print("{}\n  step  tokamak    pytorch    difference\n", name);
  for (int64_t step = 0; step < steps; ++step) {
    Batch batch = batch_of(ids, step, config.train.batch * config.model.context);
    StepResult result = session.run_step({&batch, 1}, step, config.optimizer.lr);
    auto found = std::find(at.begin(), at.end(), step);
    if (found == at.end()) continue;
    double expected = losses[size_t(found - at.begin())];
    fmt::print("  {:>4}  {:.6f}  {:.6f}  {:+.1e}\n", step, result.loss, expected, result.loss - expected);
    // Rounding grows with training: PyTorch in fp32 is off from PyTorch in float64 by float64_max_difference.
    EXPECT_NEAR(result.loss, expected, step <= 20 ? 1e-4 : 5e-3) << "step " << step;
    double norm = golden["grad_norms"][size_t(found - at.begin())];
    EXPECT_NEAR(result.grad_norm, norm, step <= 20 ? 1e-3 : 0.03 * norm) << "step " << step;
  }
}

// With a linear warm-up, as in real runs: Adam's first steps at full length tell any two roundings apart.
std::vector<double> losses_of(RunConfig config, const std::vector<int32_t>& ids, int64_t steps) {
  std::unique_ptr<Backend> backend = cpu::make_backend();
  Session session = make_session(config, cpu::nominal_platform(), *backend);
  write_first_weights(session);
  std::vector<double> losses;
  for (int64_t step = 0; step < steps; ++step) {
    Batch batch = batch_of(ids, step, config.train.batch * config.model.context);
    double lr = config.optimizer.lr * std::min(1.0, double(step + 1) / 20);
    losses.push_back(session.run_step({&batch, 1}, step, lr).loss);
  }
  return losses;
}

// Whether the residual stream is bf16 as well or not, training goes as in fp32.
TEST(Curves, Bf16FollowsFp32) {
  TOKAMAK_NEED_SHARED_DATA("tinyshakespeare.txt");
  TOKAMAK_NEED_SHARED_DATA("gpt2/encoder.json");
  json curves = json::parse(read_file("tests/goldens/curves.json"));
  RunConfig config = curve_config(curves);
  int64_t steps = 60;
  std::vector<int32_t> ids = first_tokens("tinyshakespeare.txt", curves["texts"]["tinyshakespeare.txt"]["tokens"]);
  config.model.vocab = 1000;  // a large one takes minutes here
  for (int32_t& id : ids) id %= 1000;
  std::vector<double> full = losses_of(config, ids, steps);
  config.compile.precision = Precision::kBf16;
  for (bool low_residual : {true, false}) {
    config.compile.low_residual = low_residual;
    std::vector<double> low = losses_of(config, ids, steps);
    double worst = 0;
    for (size_t i = 0; i < full.size(); ++i) worst = std::max(worst, std::fabs(low[i] - full[i]));
    fmt::print("low_residual {}: last losses {:.6f} and {:.6f}, largest difference {:.4f}\n", low_residual, low.back(),
               full.back(), worst);
    EXPECT_LT(worst, 0.02);
  }
}

// A step takes half a second: one text to the end, and another while rounding is small.
TEST(Curves, TinyShakespeare) { expect_curve("tinyshakespeare.txt", 100); }

TEST(Curves, WikiText2) { expect_curve("wikitext-2/train.txt", 31); }

}  // namespace
}  // namespace tokamak
