#include "train/tune.h"

#include "base/error.h"
#include "base/file.h"
#include "exec/measure.h"
#include "graph/single_node.h"
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

// Nor is it an error when it cannot be written. What another process wrote meanwhile stays: choices, and with them
// bits, follow from the first measurement.
void save_measurements(Target& target) {
  if (target.measurements.empty()) return;
  Target before;
  before.measurements = target.measurements;
  load_measurements(before);
  for (const auto& [key, seconds] : before.measured_seconds) target.measured_seconds[key] = seconds;
  try {
    make_folder(std::filesystem::path(target.measurements).parent_path());
    write_shared_file(target.measurements, json(target.measured_seconds).dump(1));
  } catch (const UserError&) {
  }
}

// The plan's matmul groups, in order.
std::vector<std::string> matmul_groups(const Plan& plan) {
  std::vector<std::string> keys;
  for (const Launch& launch : plan.launches) {
    const Node& node = plan.graph.nodes()[size_t(launch.node)];
    if (!node.body || node.attrs.get_string("kind") != "matmul") continue;
    std::string key = kernel_key(plan.graph, node);
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(std::move(key));
  }
  return keys;
}

class Tuner {
 public:
  Tuner(const RunConfig& config, Target target, Backend& backend)
      : config_(config), target_(std::move(target)), backend_(backend) {
    config_.compile.memory_budget_gib = 0;  // recomputing must not change a bit, so it must not change a choice
  }

  Target run() {
    load_measurements(target_);
    size_t known = target_.measured_seconds.size();
    best_ = predict(target_.plain_matmuls);
    std::set<std::string> tried;
    for (size_t i = 0; i < best_.groups.size();)
      if (std::string group = best_.groups[i]; tried.insert(group).second && try_without(group))
        i = 0;  // another plan, with simpler groups perhaps
      else
        ++i;
    if (target_.measured_seconds.size() > known) save_measurements(target_);
    return std::move(target_);
  }

 private:
  struct Prediction {
    double seconds = 0;               // of a step
    std::vector<std::string> groups;  // its matmul groups
  };

  // Without the group its matmul becomes a simpler one or a plain one; goes on to the plain one where that is no gain.
  bool try_without(const std::string& group) {
    std::set<std::string> refused = target_.plain_matmuls;
    for (std::vector<std::string> more{group}; !more.empty();) {
      refused.insert(more.begin(), more.end());
      Prediction trial = predict(refused);
      more.clear();
      for (const std::string& key : trial.groups)
        if (std::find(best_.groups.begin(), best_.groups.end(), key) == best_.groups.end()) more.push_back(key);
      if (trial.seconds >= best_.seconds) continue;
      best_ = std::move(trial);
      target_.plain_matmuls = std::move(refused);
      return true;
    }
    return false;
  }

  // Everything in the step is measured that has to be.
  Prediction predict(const std::set<std::string>& refused) {
    Target trial = target_;
    trial.plain_matmuls = refused;
    Plan plan = compile_step(config_, trial).step.plan;
    measure_library_kernels(target_, plan, backend_);
    trial.measured_seconds = target_.measured_seconds;
    Prediction prediction{0, matmul_groups(plan)};
    for (const Launch& launch : plan.launches) prediction.seconds += price(plan.graph, launch.node, trial).seconds;
    return prediction;
  }

  RunConfig config_;
  Target target_;
  Backend& backend_;
  Prediction best_;
};

}  // namespace

Target tune(const RunConfig& config, Target target, Backend& backend) {
  if (!target.tunable) return target;
  return Tuner(config, std::move(target), backend).run();
}

}  // namespace tokamak
