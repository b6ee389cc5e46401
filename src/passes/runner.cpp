#include "base/error.h"
#include "config/former_keys.h"
#include "config/suggest.h"
#include "graph/op_def.h"
#include "passes/pass.h"

#include <algorithm>
#include <chrono>
#include <map>

namespace tokamak {
namespace {

// Nodes by name of their op, those in the bodies of groups apart.
using OpCounts = std::map<std::pair<bool, std::string_view>, int>;
OpCounts count_ops(const Graph& graph) {
  OpCounts count;
  for (const Node& node : graph.nodes()) {
    ++count[{false, node.op->name}];
    if (!node.body) continue;
    for (const Node& inner : node.body->nodes()) ++count[{true, inner.op->name}];
  }
  return count;
}

// Sorted by name; those in groups are "group.<op>".
std::vector<std::pair<std::string, int>> difference(const OpCounts& before, OpCounts after) {
  for (const auto& [op, count] : before) after[op] -= count;
  std::vector<std::pair<std::string, int>> changes;
  for (const auto& [op, count] : after)
    if (count != 0) changes.emplace_back((op.first ? "group." : "") + std::string(op.second), count);
  std::sort(changes.begin(), changes.end());
  return changes;
}

bool belongs(const Pass& pass, PassStage stage) {
  bool is_whole = pass.stage == PassStage::kRewrite || pass.stage == PassStage::kRecompute;
  return pass.stage == stage || (stage == PassStage::kStep && pass.stage != PassStage::kForward) ||
         (stage == PassStage::kWhole && is_whole);
}

}  // namespace

void check_disabled_names(const std::vector<std::string>& names) {
  std::vector<std::string> known;
  for (const Pass& pass : pipeline()) known.emplace_back(pass.name);
  for (const std::string& name : names)
    if (std::find(known.begin(), known.end(), present_pass(name)) == known.end())
      user_error("[compile.disable_passes] expected names of passes, got '{}'{}", name, did_you_mean(name, known));
}

bool is_enabled(const PassContext& context, std::string_view pass) {
  const auto& disabled = context.options.disable_passes;
  return std::none_of(disabled.begin(), disabled.end(),
                      [&](const std::string& name) { return present_pass(name) == pass; });
}

bool run_pass(const Pass& pass, Graph& graph, const PassContext& context) {
  try {
    if (!context.verifies) return pass.run(graph, context);
    const auto effects = effects_of(graph);
    if (!pass.run(graph, context)) return false;
    verify(graph);
    TOKAMAK_CHECK(pass.effects == Effects::kChanged || effects_of(graph) == effects,
                  "nodes with effects were dropped, repeated or reordered");
    return true;
  } catch (const std::exception& error) {  // a user's mistake has been found before the first pass
    throw InternalError(fmt::format("[pass {}] {}", pass.name, error.what()));
  }
}

std::vector<PassReport> run_passes(Graph& graph, PassStage stage, const PassContext& context,
                                   const PassObserver& observer) {
  check_disabled_names(context.options.disable_passes);
  std::vector<PassReport> reports;
  OpCounts before;
  if (context.verifies) before = count_ops(graph);
  for (const Pass& pass : pipeline()) {
    if (!belongs(pass, stage)) continue;
    PassReport& report = reports.emplace_back(PassReport{.name = pass.name});
    report.skipped = !pass.enabled(context) || !is_enabled(context, pass.name);
    if (report.skipped) continue;
    auto start = std::chrono::steady_clock::now();
    report.changed = run_pass(pass, graph, context);
    if (report.changed && context.verifies) {
      OpCounts after = count_ops(graph);
      report.op_changes = difference(before, after);
      before = std::move(after);
    }
    if (report.changed && observer) observer(pass, graph);
    report.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  return reports;
}

}  // namespace tokamak
