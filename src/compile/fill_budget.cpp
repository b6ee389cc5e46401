#include "compile/fill_budget.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tokamak {
namespace {

bool computes_again(const CompiledStep& step) {
  auto chose = [](const PassReport& report) { return report.name == "choose_recompute" && report.changed; };
  return std::ranges::any_of(step.programs,
                             [&](const CompiledGraph& program) { return std::ranges::any_of(program.reports, chose); });
}

}  // namespace

CompiledStep fill_budget(double asked, const std::function<CompiledStep(double told)>& compile) {
  constexpr int kTries = 6;
  constexpr double kGiB = double(int64_t(1) << 30), kFull = 0.95, kAim = 0.99;
  CompiledStep best = compile(asked);
  if (asked <= 0) return best;
  auto share = [&](const CompiledStep& step) { return double(step.intermediate_bytes()) / kGiB / asked; };
  double told = asked, used = share(best), of_best = used, fits = 0, too_much = std::numeric_limits<double>::infinity();
  bool is_free = !computes_again(best);
  for (int tried = 1; tried < kTries; ++tried) {
    if ((used >= kFull && used <= 1) || (used <= 1 && is_free)) break;
    (used <= 1 ? fits : too_much) = told;
    // Mostly it is a number of bytes by which both differ.
    double next = told + (kAim - used) * asked;
    told = next > 0 ? next : told / used;
    if (told <= fits || told >= too_much) told = (fits + too_much) / 2;
    CompiledStep step = compile(told);
    is_free = !computes_again(step);
    double before = std::exchange(used, share(step));
    bool is_better = of_best > 1 ? used < of_best : used <= 1 && used > of_best;
    if (is_better) best = std::move(step), of_best = used;
    if (fits == 0 && used > 1 && used >= before) break;  // no less is possible
  }
  return best;
}

}  // namespace tokamak
