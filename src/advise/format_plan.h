// A plan of a training for people and for programs. Tests: tests/advise/format_plan_test.cpp.
#pragma once

#include "advise/advice.h"
#include "advise/changes.h"
#include "advise/exact.h"

#include <optional>

namespace tokamak {

struct PlannedLayout {
  Estimate estimate;
  std::optional<CompiledLayout> exact;  // only of the first few

  double step_seconds() const { return exact ? exact->seconds : estimate.time.total(); }
};

/// "1.5 hours", "3.0 days", and "$1227" or "no price".
std::string duration_text(double seconds);
std::string money_text(double dollars);

/// Of compiled layouts, fastest first, the one to recommend comes first: the fastest that leaves a margin of its GPU's
/// memory, if that costs less than a hundredth of the time, else the fastest. Tells how many rows it passed.
size_t recommend(std::vector<PlannedLayout>& layouts, const ClusterConfig& cluster);

struct TrainingPlan {
  TrainingRequest request;
  std::vector<Estimate> found;         // every layout that fits
  std::vector<PlannedLayout> layouts;  // not empty; the compiled ones first, each kind the fastest first, but for
  size_t passed_for_margin = 0;        // the first, which is so many places ahead (recommend)
  std::vector<Change> cluster_changes, layout_changes;  // of the first
  std::string limit;
  std::vector<Advice> advice;               // on the first
  std::vector<ParallelLayout> passed_over;  // that were compiled, and then do not fit
  std::string calibrated;                   // what a measured run says of the cluster; empty: none was asked
  std::string typed;  // what `tokamak train` takes before the layout's options, each with a space behind it
  bool asks_data = false, asks_rate = false, asks_warmup = false;  // of the run nobody has said these
};

/// `tokamak train ...`: what was typed, the layout's options, the steps that the tokens take, and what nobody has said
/// and a training needs: a placeholder for the data, and the rate and warm-up of recipe_of().
std::string train_command(const TrainingPlan& plan, const ParallelLayout& layout);

/// The layouts in tables, and what is said of the best one: its cost and what it asks of users, and what would change
/// it.
std::string format_layouts(const TrainingPlan& plan);
std::string format_summary(const TrainingPlan& plan);
std::string format_best(const TrainingPlan& plan);

/// "+92.6% tokens/s", or that nothing fits.
std::string effect_of(const Change& change);

/// Both.
std::string format_plan(const TrainingPlan& plan);

/// One line of JSON; bytes and seconds.
std::string plan_json(const TrainingPlan& plan);

}  // namespace tokamak
