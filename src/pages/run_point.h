// A run's folder as a point of a scaling law. Tests: tests/pages/run_point_test.cpp.
#pragma once

#include "config/config.h"
#include "scaling/fit.h"

#include <filesystem>
#include <string>
#include <vector>

namespace tokamak {

struct RunPoint {
  ScalingPoint point;
  RunConfig config;
  std::vector<std::string> notes;  // why it may be no good point
};

/// The size by config.json, the tokens by all steps of metrics.jsonl, and the last validation loss; where there is
/// none, the mean of the last twentieth of the training losses. UserError where the folder holds no run, or no loss.
RunPoint read_run_point(const std::filesystem::path& run);

/// All of them. UserError where vocabularies differ, as then losses cannot be compared; a note where data do.
std::vector<RunPoint> read_run_points(const std::vector<std::string>& runs, std::vector<std::string>& notes);

/// Points of a file of JSON lines, {"parameters": 1e7, "tokens": 2e8, "loss": 3.9}, with "name" where one likes: runs
/// of other programs. UserError with the line where one is not so.
std::vector<ScalingPoint> read_point_file(const std::filesystem::path& file);

}  // namespace tokamak
