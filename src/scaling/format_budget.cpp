#include "scaling/format_budget.h"

#include "advise/format_plan.h"
#include "base/json.h"
#include "plan/units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tokamak {
namespace {

using Json = nlohmann::ordered_json;

std::string shape_text(const ModelConfig& m) {
  return fmt::format("{} layers, {} heads, width {}", m.layers, m.heads, m.width);
}

std::string shape_options(const ModelConfig& m) {
  std::string family = m.family == ModelConfig().family ? "" : fmt::format("--model.family={} ", m.family);
  return fmt::format("{}--model.layers={} --model.heads={} --model.width={}", family, m.layers, m.heads, m.width);
}

TrainingCost cost_in(const BudgetPlan& plan, const ModelInBudget& model) {
  TrainingRequest request = plan.request.training;
  request.run.model = model.model;
  request.sequences = plan.request.sequences(model.model);
  request.tokens = model.tokens;
  return cost_of(request, model.layout->time.total());
}

std::string header(const BudgetPlan& plan) {
  const TrainingRequest& t = plan.request.training;
  std::string text = fmt::format("budget     {}, on {} x {} of {}", describe(plan.request.budget), t.gpus,
                                 t.cluster.gpu.name, t.cluster.name);
  if (plan.shape.layout)
    text += fmt::format(": {}, {}", duration_text(plan.shape.seconds), money_text(cost_in(plan, plan.shape).dollars));
  return text +
         "\nunits      compute is 6 FLOPs for each parameter and token; losses are nats a token\n"
         "speeds     as plan predicts them for a model of each size, so that no utilization is assumed\n\n";
}

std::string law_table(const BudgetPlan& plan) {
  std::string text = fmt::format("{:<20}{:>11}{:>11}{:>8}{:>10}{:>8}{:>8}  {}\n", "law", "parameters", "tokens",
                                 "ratio", "FLOPs", "loss", "refit", "about this shape");
  bool is_limited = false;
  for (const LawInBudget& law : plan.laws) {
    text += fmt::format("{:<20}{:>11}{:>11}{:>8.1f}{:>10.2e}{:>8}{:>8.3f}  {}{}\n", law.law->name,
                        format_count(law.best.parameters), format_count(law.best.tokens),
                        law.best.tokens / law.best.parameters, law.best.flops(),
                        law.loss > 0 ? fmt::format("{:.3f}", law.loss) : "-", law.refit_loss, shape_text(law.shape),
                        law.is_limited ? " *" : "");
    is_limited = is_limited || law.is_limited;
  }
  if (is_limited) text += "*          a larger model would be better, but does not fit on so many of these GPUs\n";
  text +=
      "\nratio      tokens for each parameter\n"
      "loss       by the law itself, on its own data with its own tokenizer; approaches 1 and 2 tell none\n"
      "refit      by the last law, for the size and length of each row; so these can be compared with each other\n";
  for (const LawInBudget& law : plan.laws) text += fmt::format("{:<20}{}\n", law.law->name, law.law->source);
  return text;
}

std::string preset_table(const BudgetPlan& plan) {
  if (plan.presets.empty()) return "\nNo preset near this size fits these GPUs.\n";
  std::string text = fmt::format("\n{:<20}{:>11}{:>11}{:>8}{:>10}{:>8}{:>8}  {}\n", "preset in the budget",
                                 "parameters", "tokens", "ratio", "tokens/s", "MFU", "refit", "fastest layout found");
  auto row = [&](const std::string& name, const ModelInBudget& model) {
    text += fmt::format("{:<20}{:>11}{:>11}{:>8.1f}{:>10}{:>7.1f}%{:>8.3f}  {}\n", name,
                        format_count(model.parameters.all), format_count(model.tokens),
                        model.tokens / model.parameters.all, format_count(model.tokens_per_second),
                        100 * cost_in(plan, model).mfu_full, model.loss, describe(model.layout->layout));
  };
  for (const ModelInBudget& model : plan.presets) row(model.preset, model);
  if (plan.shape.layout) row("(the last law's)", plan.shape);
  return text;
}

std::string command(const std::string& options, const ModelInBudget& model, const std::string& typed) {
  return fmt::format("           tokamak plan {}{} --tokens={:.4g}\n", options, typed, model.tokens);
}

}  // namespace

std::string format_budget(const BudgetPlan& plan, const std::string& typed) {
  std::string text = header(plan) + law_table(plan) + preset_table(plan) +
                     "\nnext       plan one of them in full, with memory, cost and the command that trains it:\n";
  if (!plan.presets.empty())
    text += command("--model.preset=" + plan.presets.front().preset, plan.presets.front(), typed);
  if (plan.shape.layout) text += command(shape_options(plan.shape.model), plan.shape, typed);
  return text +
         "note       the laws are of other data, tokenizers and models: the size is told better than the loss. "
         "`tokamak\n           scaling` fits the same form to runs of your own.\n";
}

std::string budget_json(const BudgetPlan& plan) {
  const TrainingRequest& t = plan.request.training;
  auto model_json = [&](const ModelInBudget& model) {
    TrainingCost cost = cost_in(plan, model);
    return Json{{"preset", model.preset},       {"family", model.model.family},
                {"layers", model.model.layers}, {"heads", model.model.heads},
                {"width", model.model.width},   {"parameters", model.parameters.all},
                {"tokens", model.tokens},       {"flops", model.flops()},
                {"seconds", model.seconds},     {"tokens_per_second", model.tokens_per_second},
                {"mfu_full", cost.mfu_full},    {"dollars", cost.dollars > 0 ? Json(cost.dollars) : Json()},
                {"refit_loss", model.loss},     {"layout", describe(model.layout->layout)}};
  };
  Json json = {{"cluster", t.cluster.name}, {"gpus", t.gpus}, {"budget", describe(plan.request.budget)}};
  for (const LawInBudget& law : plan.laws)
    json["laws"].push_back({{"name", law.law->name},
                            {"source", law.law->source},
                            {"counts_embeddings", law.law->counts_embeddings},
                            {"parameters", law.best.parameters},
                            {"tokens", law.best.tokens},
                            {"flops", law.best.flops()},
                            {"seconds", law.seconds},
                            {"loss", law.loss > 0 ? Json(law.loss) : Json()},
                            {"refit_loss", law.refit_loss},
                            {"layers", law.shape.layers},
                            {"heads", law.shape.heads},
                            {"width", law.shape.width},
                            {"larger_does_not_fit", law.is_limited}});
  json["shape"] = plan.shape.layout ? model_json(plan.shape) : Json();
  json["presets"] = Json::array();
  for (const ModelInBudget& model : plan.presets) json["presets"].push_back(model_json(model));
  return format_json(json);
}

}  // namespace tokamak
