// Which model to train, on how many tokens, with what one may spend on a cluster: published laws say which size is best
// for an amount of compute, and the planner says how much compute the budget buys with a model of that size, so that no
// utilization is guessed. Tests: tests/scaling/budget_plan_test.cpp.
#pragma once

#include "advise/search.h"
#include "scaling/budget.h"
#include "scaling/model_shape.h"
#include "scaling/published_laws.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tokamak {

struct BudgetRequest {
  Budget budget;
  TrainingRequest training = {};  // of a run whose model gives all but the sizes; its tokens and sequences do not count
  std::function<int64_t(const ModelConfig&)> sequences = {};  // of a step of such a model
  std::vector<std::string> presets = {};                      // that may be chosen
};

/// A model in the fastest layout found, for as long as the budget lasts.
struct ModelInBudget {
  std::string preset = {};  // empty: none
  ModelConfig model = {};
  ParameterCounts parameters = {};
  std::optional<Estimate> layout = {};  // nothing: none fits, and all below is 0
  double tokens_per_second = 0;
  double seconds = 0, tokens = 0;
  double loss = 0;  // by kBesiroglu

  double flops() const { return kFlopsPerParameterToken * parameters.all * tokens; }
};

/// What a law says.
struct LawInBudget {
  const PublishedLaw* law = nullptr;
  ModelAndData best = {};   // parameters as the law counts them
  double seconds = 0;       // that it takes
  ModelConfig shape = {};   // of about so many
  double loss = 0;          // of the law's own; 0: it has none
  double refit_loss = 0;    // by kBesiroglu
  bool is_limited = false;  // a larger model would be better, but fits in no layout of so many GPUs
};

struct BudgetPlan {
  BudgetRequest request;
  double flops = 0;                    // of the answer of the last law
  std::vector<LawInBudget> laws = {};  // as published_laws()
  ModelInBudget shape = {};            // that of the last law, planned
  std::vector<ModelInBudget> presets =
      {};  // nearest to it, of each family, that fit; the one with the least loss first
};

/// UserError where not even the smallest model fits, or a budget of money meets no price.
BudgetPlan plan_budget(const BudgetRequest& request);

}  // namespace tokamak
