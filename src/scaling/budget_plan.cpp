#include "scaling/budget_plan.h"

#include "base/error.h"
#include "config/preset.h"
#include "model/model.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace tokamak {
namespace {

// Between a in the beginning and b at the end, evenly in the logarithm.
double between(double a, double b, double share) { return a * std::pow(b / a, share); }

class BudgetPlanner {
 public:
  explicit BudgetPlanner(const BudgetRequest& request)
      : request_(request), seconds_(seconds_of(request.budget, request.training.cluster, request.training.gpus)),
        flops_(request.budget.unit == BudgetUnit::kFlops ? request.budget.amount : 0) {}

  BudgetPlan run() {
    BudgetPlan plan{.request = request_};
    for (const PublishedLaw& law : published_laws()) plan.laws.push_back(ask(law));
    const LawInBudget& last = plan.laws.back();
    plan.shape = train(last.shape, "");
    plan.flops = last.best.flops();
    plan.presets = nearest_presets(last.best.parameters);
    return plan;
  }

 private:
  static double counted(const PublishedLaw& law, const ModelInBudget& model) {
    return law.counts_embeddings ? model.parameters.all : model.parameters.of_blocks;
  }

  // The fastest layout that a short search finds.
  ModelInBudget train(const ModelConfig& model, const std::string& preset) const {
    ModelInBudget result{.preset = preset, .model = model, .parameters = count_both(model)};
    TrainingRequest request = request_.training;
    request.run.model = model;
    request.sequences = request_.sequences(model);
    request.library = std::make_shared<BlockLibrary>();
    request.wanted = 1;
    request.rounds = 2;
    std::vector<Estimate> found = search_layouts(request);
    if (found.empty()) return result;
    result.layout = found.front();
    result.tokens_per_second = tokens_of_step(request) / found.front().time.total();
    result.tokens =
        flops_ > 0 ? flops_ / (kFlopsPerParameterToken * result.parameters.all) : seconds_ * result.tokens_per_second;
    result.seconds = result.tokens / result.tokens_per_second;
    result.loss = kBesiroglu.loss({result.parameters.all, result.tokens});
    return result;
  }

  // Of 2^k million parameters. Each is planned once, whatever law asks.
  const ModelInBudget& of_grid(int k) {
    auto at = grid_.find(k);
    if (at == grid_.end())
      at = grid_.emplace(k, train(shape_near(request_.training.run.model, std::ldexp(1e6, k)), "")).first;
    return at->second;
  }

  double compute_of(const PublishedLaw& law, const ModelInBudget& model) const {
    return flops_ > 0 ? flops_ : kFlopsPerParameterToken * counted(law, model) * model.tokens;
  }

  // Below 0: the law would take a larger model with the compute that this one makes of the budget.
  double excess(const PublishedLaw& law, const ModelInBudget& model) const {
    return std::log(counted(law, model) / law.best(compute_of(law, model)).parameters);
  }

  int first_guess(const PublishedLaw& law) const {
    constexpr double kUsualShare = 0.4;  // of the peak; only where the search begins
    const TrainingRequest& t = request_.training;
    double flops = flops_ > 0 ? flops_ : kUsualShare * t.cluster.gpu.half_flops.value * double(t.gpus) * seconds_;
    return std::clamp(int(std::lround(std::log2(law.best(flops).parameters * 1e-6))), 0, kMostPower);
  }

  LawInBudget ask(const PublishedLaw& law) {
    int k = first_guess(law);
    while (k > 0 && (!of_grid(k).layout || excess(law, of_grid(k)) > 0)) --k;
    if (!of_grid(k).layout)
      user_error(
          "[budget] expected GPUs that a model of {:.3g} parameters fits, got none; name more GPUs or other ones",
          of_grid(k).parameters.all);
    while (k < kMostPower && of_grid(k + 1).layout && excess(law, of_grid(k + 1)) <= 0) ++k;
    const ModelInBudget &low = of_grid(k), &high = of_grid(std::min(k + 1, kMostPower));
    LawInBudget answer{.law = &law};
    double share = 0;
    answer.is_limited = !high.layout || excess(law, low) > 0;
    if (!answer.is_limited && &high != &low)
      share = std::min(excess(law, low) / (excess(law, low) - excess(law, high)), 1.0);
    auto mixed = [&](double a, double b) { return answer.is_limited ? a : between(a, b, share); };
    double all = mixed(low.parameters.all, high.parameters.all);
    answer.best = {mixed(counted(law, low), counted(law, high)), mixed(low.tokens, high.tokens)};
    if (flops_ > 0 && !answer.is_limited) answer.best = law.best(flops_);
    answer.seconds = answer.best.tokens / mixed(low.tokens_per_second, high.tokens_per_second);
    answer.shape = answer.is_limited ? low.model : shape_near(request_.training.run.model, all);
    if (law.loss) answer.loss = law.loss(answer.best.flops());
    answer.refit_loss = kBesiroglu.loss({all, answer.best.tokens});
    return answer;
  }

  // The next smaller and the next larger preset of each family.
  std::vector<ModelInBudget> nearest_presets(double parameters) const {
    std::map<std::pair<std::string, bool>, std::pair<double, std::string>> nearest;
    for (const std::string& name : request_.presets) {
      ModelConfig model = with_preset(name);
      if (model.vocab == 0) continue;
      double distance = std::log(double(count_parameters(model)) / parameters);
      auto [at, is_new] = nearest.try_emplace({model.family, distance > 0}, std::abs(distance), name);
      if (std::abs(distance) < at->second.first) at->second = {std::abs(distance), name};
    }
    constexpr double kFar = 2.3;  // ten times
    std::vector<ModelInBudget> models;
    for (const auto& [key, one] : nearest)
      if (one.first < kFar)
        if (ModelInBudget model = train(with_preset(one.second), one.second); model.layout) models.push_back(model);
    std::stable_sort(models.begin(), models.end(), [](const auto& a, const auto& b) { return a.loss < b.loss; });
    return models;
  }

  ModelConfig with_preset(const std::string& name) const {
    ModelConfig model = request_.training.run.model;
    model.preset = name;
    apply_preset(model);
    return model;
  }

  static constexpr int kMostPower = 23;  // 8e12 parameters

  const BudgetRequest& request_;
  double seconds_, flops_;
  std::map<int, ModelInBudget> grid_;
};

}  // namespace

BudgetPlan plan_budget(const BudgetRequest& request) { return BudgetPlanner(request).run(); }

}  // namespace tokamak
