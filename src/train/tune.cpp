#include "train/tune.h"

#include "base/error.h"
#include "base/file.h"
#include "exec/measure.h"
#include "graph/single_node.h"
#include "ops/ops.h"
#include "train/step_compiler.h"

#include <nlohmann/json.hpp>

#include <set>

namespace tokamak {
namespace {

using nlohmann::json;

// A file that cannot be read or is damaged is like none: everything is measured again.
void load_measurements(Target& target) {
  if (target.measurements.empty() || !std::filesystem::exists(target.measurements)) return;
  try {
    json known = json::parse(read_file(target.measurements));
    for (const auto& [key, seconds] : known.items()) target.measured_seconds.emplace(key, seconds.get<double>());
  } catch (const std::exception&) {
  }
}

// Nor is it an error when it cannot be written.
void save_measurements(const Target& target) {
  if (target.measurements.empty()) return;
  try {
    make_folder(std::filesystem::path(target.measurements).parent_path());
    write_file_atomic(target.measurements, json(target.measured_seconds).dump(1));
  } catch (const UserError&) {
  }
}

// The plain matmuls inside the plan's matmul groups, in order.
std::vector<std::string> fused_matmuls(const Plan& plan) {
  std::vector<std::string> keys;
  for (const Launch& launch : plan.launches) {
    const Node& node = plan.graph.nodes()[size_t(launch.node)];
    if (!node.body || node.attrs.get_string("kind") != "matmul") continue;
    for (const Node& inner : node.body->nodes())
      if (inner.op == &op::matmul)
        if (std::string key = kernel_key(*node.body, inner); std::find(keys.begin(), keys.end(), key) == keys.end())
          keys.push_back(key);
  }
  return keys;
}

class Tuner {
 public:
  Tuner(const RunConfig& config, Target target, Backend& backend)
      : config_(config), target_(std::move(target)), backend_(backend) {}

  Target run() {
    load_measurements(target_);
    size_t known = target_.measured_seconds.size();
    double best = predict(target_);
    for (const std::string& matmul : fused_matmuls(plan_)) {
      Target trial = target_;
      trial.plain_matmuls.insert(matmul);
      if (double seconds = predict(trial); seconds < best) {
        best = seconds;
        trial.measured_seconds = std::move(target_.measured_seconds);
        target_ = std::move(trial);
      }
    }
    if (target_.measured_seconds.size() > known) save_measurements(target_);
    return std::move(target_);
  }

 private:
  // Predicted seconds of a step, everything in it measured that has to be.
  double predict(Target trial) {
    Plan plan = compile_step(config_, trial).step.plan;
    measure_library_kernels(target_, plan, backend_);
    trial.measured_seconds = target_.measured_seconds;
    double seconds = 0;
    for (const Launch& launch : plan.launches) seconds += price(plan.graph, launch.node, trial).seconds;
    if (plan_.launches.empty()) plan_ = std::move(plan);
    return seconds;
  }

  const RunConfig& config_;
  Target target_;
  Backend& backend_;
  Plan plan_;  // with every epilogue
};

}  // namespace

Target tune(const RunConfig& config, Target target, Backend& backend) {
  if (!target.tunable) return target;
  return Tuner(config, std::move(target), backend).run();
}

}  // namespace tokamak
