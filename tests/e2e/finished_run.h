// What a run leaves behind, for comparing runs bit for bit.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoint/checkpoint_folder.h"

namespace tokamak::test {

struct FinishedRun {
  struct Step {
    int64_t step;
    double loss, grad_norm, lr;
    bool operator==(const Step&) const = default;
  };

  std::vector<Step> steps;       // of metrics.jsonl
  std::string model, optimizer;  // bytes of the files of the last checkpoint
};

/// What is not finite stands as null in the file; here it equals itself.
inline double number(const nlohmann::json& value) { return value.is_null() ? -1.0 : value.get<double>(); }

inline FinishedRun read_run(const std::filesystem::path& out, int64_t step) {
  FinishedRun run;
  std::ifstream lines(out / "metrics.jsonl");
  for (std::string line; std::getline(lines, line);) {
    auto json = nlohmann::json::parse(line);
    run.steps.push_back({json["step"], number(json["loss"]), number(json["grad_norm"]), json["lr"]});
  }
  std::filesystem::path checkpoint = checkpoints_folder(out) / checkpoint_name(step);
  run.model = read_file(checkpoint / "model.safetensors");
  run.optimizer = read_file(checkpoint / "optimizer.safetensors");
  return run;
}

/// Every loss, every gradient norm and every byte of parameters and optimizer states; names the first step that
/// differs.
inline void expect_same(const FinishedRun& a, const FinishedRun& b) {
  ASSERT_EQ(a.steps.size(), b.steps.size());
  for (size_t i = 0; i < a.steps.size(); ++i) {
    ASSERT_EQ(a.steps[i].step, int64_t(i) + 1);
    ASSERT_EQ(b.steps[i].step, int64_t(i) + 1);
    ASSERT_TRUE(a.steps[i] == b.steps[i])
        << "step " << i + 1 << ": loss " << a.steps[i].loss << " and " << b.steps[i].loss << ", norm "
        << a.steps[i].grad_norm << " and " << b.steps[i].grad_norm;
  }
  EXPECT_TRUE(a.model == b.model) << "the parameters differ";
  EXPECT_TRUE(a.optimizer == b.optimizer) << "the optimizer's states differ";
}

}  // namespace tokamak::test
