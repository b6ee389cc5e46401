// What a user's runs say of larger ones: the laws fitted to them, and the next size by these. Tests:
// tests/scaling/scaling_report_test.cpp.
#pragma once

#include "config/model_config.h"
#include "scaling/fit.h"

#include <optional>
#include <string>
#include <vector>

namespace tokamak {

struct ScalingRequest {
  std::vector<ScalingPoint> points;
  FitOptions fit = {};
  double next = 10;        // times the most compute of a run
  ModelConfig model = {};  // of the run with most compute, whose family the next size has; vocab 0: not known
};

/// A number and where 95 of 100 draws have it.
struct Estimated {
  double value = 0;
  Interval range = {};
};

struct NextSize {
  double flops = 0;
  Estimated parameters, tokens, loss;  // by the law; 0: there is none
  Estimated curve_loss;                // by the curve of compute; 0: there is none
};

struct ScalingReport {
  ScalingRequest request;
  std::optional<Fitted<ParametricLaw>> law = {};
  std::optional<Fitted<ComputeCurve>> curve = {};
  std::string no_law = {}, no_curve = {};  // why there is none
  NextSize next = {};
  std::vector<std::string> notes = {};  // what to think of before one believes it
};

/// UserError where the runs are enough for neither. `notes` come first among the report's.
ScalingReport make_scaling_report(ScalingRequest request, std::vector<std::string> notes = {});

/// For people, and for programs: one line of JSON, with units as in scaling/fit.h.
std::string format_scaling(const ScalingReport& report);
std::string scaling_json(const ScalingReport& report);

/// "2.31 (2.28 to 2.35)", with the numbers as format_count has them, or with three decimals.
std::string count_text(const Estimated& one);
std::string loss_text(const Estimated& one);

}  // namespace tokamak
