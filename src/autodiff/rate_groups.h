// optimizer.groups: learning rates and weight decay of parameters by patterns of their names.
// Tests: tests/autodiff/rate_groups_test.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

struct OptimizerConfig;

struct RateGroup {
  std::string pattern;
  std::optional<double> lr;            // a share of the rate that the parameter would have
  std::optional<double> weight_decay;  // of matrices and vectors alike
};

/// From "pattern: lr=0.5 decay=0"; UserError for any other form.
std::vector<RateGroup> rate_groups(const OptimizerConfig& config);

/// Whether the pattern is the name, where * stands for any characters and ? for one.
bool matches_name(std::string_view pattern, std::string_view name);

/// UserError for a group that is of no parameter, with names that are near.
void check_rate_groups(const OptimizerConfig& config, std::span<const std::string> parameters);

/// A line for each group: of how many parameters it is, and what they have.
std::vector<std::string> describe_rate_groups(const OptimizerConfig& config, std::span<const std::string> parameters);

}  // namespace tokamak
