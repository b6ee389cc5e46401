#include "advise/format_plan.h"

#include "advise/day.h"
#include "advise/format_failures.h"
#include "advise/recipe.h"
#include "base/bytes.h"
#include "base/json.h"
#include "graph/gpu_target.h"
#include "model/model.h"
#include "plan/units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace tokamak {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kColumn = 9;

// In less than `width` columns, so that a blank stands before it. What is far too long gets an exponent.
std::string number(double value, int decimals, size_t width) {
  constexpr double kLongExponent = 1e99;
  std::string text = fmt::format("{:.{}f}", value, decimals);
  return text.size() < width ? text : fmt::format("{:.{}e}", value, value < kLongExponent ? 1 : 0);
}

std::string links_text(const TrainingRequest& request) {
  const ClusterConfig& cluster = request.cluster;
  if (!cluster.within.bandwidth.is_known()) return "none";
  std::string within = format_count(cluster.within.bandwidth.value, "B/s");
  if (request.gpus <= cluster.gpus_per_node) return within;
  return fmt::format("{} within a node, {} between", within, format_count(cluster.between.bandwidth.value, "B/s"));
}

std::string header(const TrainingPlan& plan) {
  const TrainingRequest& r = plan.request;
  const ModelConfig& m = r.run.model;
  return fmt::format(
      "model      {} parameters: {} layers, {} heads, width {}, context {}, vocabulary {}\n"
      "cluster    {} x {} of {}: bf16 {}, memory {} at {}, links {}\n"
      "training   {} tokens in steps of {} x {} tokens, in {}\n{}\n",
      format_count(double(count_parameters(m))), m.layers, m.heads, m.width, m.context, m.vocab, r.gpus,
      r.cluster.gpu.name, r.cluster.name, format_count(r.cluster.gpu.half_flops.value, "FLOP/s"),
      format_bytes(r.cluster.gpu.memory_bytes.value), format_count(r.cluster.gpu.memory_bandwidth.value, "B/s"),
      links_text(r), format_count(r.tokens), r.sequences, m.context, precision_name(r.run.compile.precision),
      plan.calibrated.empty() ? "" : "calibrated " + plan.calibrated + "\n");
}

// What a step takes, and the whole training.
std::string time_table(const TrainingPlan& plan) {
  std::string text = fmt::format("{:<3}{:>9}{:>9}{:>10}{:>12}{:>12}{:>13}{:>9}{:>11}  {}\n", "", "step ms", "exact",
                                 "tokens/s", "MFU full", "MFU causal", "time", "kWh", "cost", "layout");
  auto ms = [](double seconds) { return number(seconds * 1e3, 1, kColumn); };
  int row = 0;
  for (const PlannedLayout& layout : plan.layouts) {
    TrainingCost cost = cost_of(plan.request, layout.step_seconds());
    text += fmt::format("{:<3}{:>9}{:>9}{:>10}{:>11.1f}%{:>11.1f}%{:>13}{:>9}{:>11}  {}\n", ++row,
                        ms(layout.estimate.time.total()), layout.exact ? ms(layout.exact->seconds) : "-",
                        format_count(cost.tokens_per_second), 100 * cost.mfu_full, 100 * cost.mfu_causal,
                        duration_text(cost.seconds), number(cost.kilowatt_hours, 0, kColumn), money_text(cost.dollars),
                        describe(layout.estimate.layout));
  }
  return text;
}

std::string parts_table(const TrainingPlan& plan) {
  std::string text =
      fmt::format("\n{:<3}{:>8}{:>10}{:>8}{:>10}{:>7}{:>9}{:>8}{:>7}{:>8}   of the step, in %\n", "", "matmul",
                  "attention", "memory", "computed", "data", "context", "tensor", "pipe", "bubble");
  text += fmt::format("{:<3}{:>8}{:>10}{:>8}{:>10}{:>7}{:>9}{:>8}{:>7}\n", "", "", "", "bound", "again", "", "exposed",
                      "", "");
  int row = 0;
  for (const PlannedLayout& layout : plan.layouts) {
    const TimeByKind& t = layout.estimate.time;
    std::array parts{t.matmul,  t.attention, t.memory_bound, t.recomputed, t.data,
                     t.context, t.tensor,    t.pipe,         t.bubble};
    std::vector<double> p = percentages(parts);
    text += fmt::format("{:<3}{:>8.1f}{:>10.1f}{:>8.1f}{:>10.1f}{:>7.1f}{:>9.1f}{:>8.1f}{:>7.1f}{:>8.1f}\n", ++row,
                        p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8]);
  }
  return text;
}

std::string memory_table(const TrainingPlan& plan) {
  std::string text = fmt::format("\n{:<3}{:>9}{:>11}{:>11}{:>13}{:>9}{:>9}{:>9}   GiB of the fullest GPU\n", "",
                                 "weights", "gradients", "optimizer", "activations", "buffers", "total", "exact");
  auto gib = [](double bytes) { return number(bytes / kGiB, 2, kColumn); };
  int row = 0;
  for (const PlannedLayout& layout : plan.layouts) {
    const MemoryByKind& m = layout.estimate.memory;
    text += fmt::format("{:<3}{:>9}{:>11}{:>11}{:>13}{:>9}{:>9}{:>9}\n", ++row, gib(m.weights), gib(m.gradients),
                        gib(m.optimizer), gib(m.activations), gib(m.buffers), gib(m.total()),
                        layout.exact ? gib(layout.exact->bytes) : "-");
  }
  return text;
}

// What is said of layouts that are not compiled.
std::string not_compiled(const TrainingPlan& plan) {
  bool any = std::ranges::any_of(plan.layouts, [](const PlannedLayout& layout) { return !layout.exact; });
  std::string text =
      any ? "\n-          not compiled whole: composed of a few compiled blocks (--exact=N compiles the first N)" : "";
  for (const ParallelLayout& layout : plan.passed_over)
    text += fmt::format("\nnot shown  {}: when it is compiled, it does not fit", describe(layout));
  return text.empty() ? text : text + "\n";
}

std::string change_lines(const std::vector<Change>& changes) {
  std::string text;
  for (const Change& change : changes) text += fmt::format("  {:<32}{}\n", change.what, effect_of(change));
  return text;
}

// What stands below though it is a little faster, and numbers that can hardly be meant.
std::string notes(const TrainingPlan& plan) {
  std::string text;
  if (plan.passed_for_margin > 0)
    text += fmt::format("\n           it leaves memory unused that {} row{} below fill{} for less than 1% of the time",
                        plan.passed_for_margin, plan.passed_for_margin == 1 ? "" : "s",
                        plan.passed_for_margin == 1 ? "s" : "");
  if (tokens_of_step(plan.request) > plan.request.tokens)
    text += fmt::format("\nnote       one step has {} tokens, more than the whole training's {}",
                        format_count(tokens_of_step(plan.request)), format_count(plan.request.tokens));
  return text;
}

// More than a run can count are left to who reads it.
std::string steps_option(const TrainingRequest& request) {
  double steps = steps_of(request);
  return steps < 0x1p63 ? fmt::format(" --train.steps={}", int64_t(steps)) : "";
}

Recipe recipe_for(const TrainingRequest& request) {
  return recipe_of(double(count_parameters(request.run.model)), tokens_of_step(request), steps_of(request));
}

// What the command has that nobody has said.
std::string recipe_note(const TrainingPlan& plan) {
  std::string text;
  if (plan.asks_rate) text += "rate as GPT-3's model of that size had (arXiv 2005.14165, table 2.1), for AdamW";
  if (plan.asks_warmup)
    text += fmt::format("{}{} tokens of warm-up", text.empty() ? "" : "; ",
                        format_count(double(recipe_for(plan.request).warmup_steps) * tokens_of_step(plan.request)));
  if (plan.asks_data) text += fmt::format("{}DATA: of `tokamak prepare`, or files", text.empty() ? "" : "; ");
  return text.empty() ? "" : "           " + text + "\n";
}

Json to_json(const std::vector<Change>& changes) {
  Json list = Json::array();
  for (const Change& change : changes)
    list.push_back({{"what", change.what}, {"fits", change.is_possible}, {"gain", change.gain}});
  return list;
}

Json to_json(const TrainingPlan& plan, const PlannedLayout& layout) {
  const MemoryByKind& m = layout.estimate.memory;
  const TimeByKind& t = layout.estimate.time;
  TrainingCost cost = cost_of(plan.request, layout.step_seconds());
  Json json = {{"layout", describe(layout.estimate.layout)},
               {"options", options_of(layout.estimate.layout, plan.request.run.model.context)},
               {"memory",
                {{"weights", m.weights},
                 {"gradients", m.gradients},
                 {"optimizer", m.optimizer},
                 {"activations", m.activations},
                 {"buffers", m.buffers},
                 {"total", m.total()}}},
               {"seconds",
                {{"matmul", t.matmul},
                 {"attention", t.attention},
                 {"memory_bound", t.memory_bound},
                 {"recomputed", t.recomputed},
                 {"data", t.data},
                 {"context", t.context},
                 {"tensor", t.tensor},
                 {"pipe", t.pipe},
                 {"bubble", t.bubble},
                 {"total", t.total()}}},
               {"tokens_per_second", cost.tokens_per_second},
               {"mfu_full", cost.mfu_full},
               {"mfu_causal", cost.mfu_causal},
               {"days", cost.seconds / kDay},
               {"kilowatt_hours", cost.kilowatt_hours},
               {"dollars", cost.dollars > 0 ? Json(cost.dollars) : Json()}};
  if (layout.exact)
    json["exact"] = {
        {"seconds", layout.exact->seconds}, {"exposed", layout.exact->exposed}, {"bytes", layout.exact->bytes}};
  return json;
}

}  // namespace

std::string duration_text(double seconds) {
  if (seconds < 3600) return fmt::format("{:.1f} minutes", seconds / 60);
  if (seconds < 2 * kDay) return fmt::format("{:.1f} hours", seconds / 3600);
  constexpr size_t kWidth = 8;  // 99999.9
  return number(seconds / kDay, 1, kWidth) + " days";
}

std::string money_text(double dollars) {
  constexpr size_t kWidth = 10;
  return dollars > 0 ? "$" + number(dollars, 0, kWidth) : "no price";
}

size_t recommend(std::vector<PlannedLayout>& layouts, const ClusterConfig& cluster) {
  constexpr double kMargin = 0.95, kPrice = 1.01;
  auto has_margin = [&](const PlannedLayout& layout) {
    return layout.exact && layout.exact->bytes <= kMargin * usable_bytes(cluster, layout.estimate.layout.mesh);
  };
  auto found = std::find_if(layouts.begin(), layouts.end(), has_margin);
  if (found == layouts.end() || found->step_seconds() > kPrice * layouts[0].step_seconds()) return 0;
  auto passed = size_t(found - layouts.begin());
  std::rotate(layouts.begin(), found, found + 1);
  return passed;
}

std::string train_command(const TrainingPlan& plan, const ParallelLayout& layout) {
  const TrainingRequest& request = plan.request;
  Recipe recipe = recipe_for(request);
  std::string text = fmt::format("tokamak train {}{}{}", plan.typed, options_of(layout, request.run.model.context),
                                 steps_option(request));
  if (plan.asks_rate) text += fmt::format(" --optimizer.lr={:g}", recipe.lr);
  if (plan.asks_warmup) text += fmt::format(" --optimizer.warmup_steps={}", recipe.warmup_steps);
  if (plan.asks_data) text += " --data.path=DATA";
  return text;
}

std::string format_layouts(const TrainingPlan& plan) {
  return header(plan) + time_table(plan) + parts_table(plan) + memory_table(plan) + not_compiled(plan);
}

std::string format_summary(const TrainingPlan& plan) {
  const PlannedLayout& best = plan.layouts[0];
  TrainingCost cost = cost_of(plan.request, best.step_seconds());
  std::string kwh = number(cost.kilowatt_hours, 0, kColumn), limit = plan.limit;
  if (size_t end = limit.find("; "); end != limit.npos) limit.replace(end, 2, ";\n           ");
  return fmt::format(
      "\nbest       {}{}: {} tokens/s, {} for {} tokens, {} kWh, {}\n           {}{}\n{}           {}\n{}",
      describe(best.estimate.layout), best.exact ? "" : " (not compiled)", format_count(cost.tokens_per_second),
      duration_text(cost.seconds), format_count(plan.request.tokens), kwh, money_text(cost.dollars), limit, notes(plan),
      failure_lines(plan), train_command(plan, best.estimate.layout), recipe_note(plan));
}

std::string effect_of(const Change& change) {
  return change.is_possible ? fmt::format("{:+.1f}% tokens/s", 100 * change.gain) : "nothing fits";
}

std::string format_best(const TrainingPlan& plan) {
  return format_summary(plan) + "\nwith another cluster and the best of the layouts then\n" +
         change_lines(plan.cluster_changes) + (plan.layout_changes.empty() ? "" : "with the best layout, but\n") +
         change_lines(plan.layout_changes) + (plan.advice.empty() ? "" : "\n") + format_advice(plan.advice);
}

std::string format_plan(const TrainingPlan& plan) { return format_layouts(plan) + format_best(plan); }

std::string plan_json(const TrainingPlan& plan) {
  const TrainingRequest& r = plan.request;
  Json json = {{"cluster", r.cluster.name},
               {"gpus", r.gpus},
               {"tokens", r.tokens},
               {"steps", steps_of(r)},
               {"sequences", r.sequences},
               {"parameters", count_parameters(r.run.model)},
               {"limit", plan.limit},
               {"load_clock", load_clock(r.cluster.gpu)},
               {"command", train_command(plan, plan.layouts[0].estimate.layout)}};
  for (const PlannedLayout& layout : plan.layouts) json["layouts"].push_back(to_json(plan, layout));
  json["failures"] = failures_json(plan);
  json["passed_over"] = Json::array();
  for (const ParallelLayout& layout : plan.passed_over) json["passed_over"].push_back(describe(layout));
  json["cluster_changes"] = to_json(plan.cluster_changes);
  json["layout_changes"] = to_json(plan.layout_changes);
  json["advice"] = Json::array();
  for (const Advice& one : plan.advice) json["advice"].push_back({{"text", one.text}, {"gain", one.gain}});
  return format_json(json);
}

}  // namespace tokamak
