#include "plan/communication.h"
#include "plan/print_plan.h"
#include "plan/units.h"

#include <fmt/core.h>

namespace tokamak {
namespace {

std::string format_line(std::string_view op, std::string_view axis, const Communication& sum) {
  return fmt::format("{:<15} {:<11} {:>5} {:>7} {:>12} {:>10.3f} {:>10.3f} {:>10.3f}\n", op, axis, sum.collectives,
                     sum.tensors, format_bytes(sum.link_bytes), sum.seconds * 1e3, (sum.seconds - sum.exposed) * 1e3,
                     sum.exposed * 1e3);
}

}  // namespace

std::string format_collectives(const Plan& plan) {
  std::vector<Communication> sums = sum_communication(plan, simulate(plan));
  if (sums.empty()) return {};
  std::string text = fmt::format("{:<15} {:<11} {:>5} {:>7} {:>12} {:>10} {:>10} {:>10}\n", "collective", "axis",
                                 "count", "tensors", "sent", "ms", "hidden ms", "exposed ms");
  Communication all;
  for (const Communication& sum : sums) {
    text += format_line(sum.op, axis_label(sum), sum);
    all.add(sum);
  }
  text += format_line("total", "", all);
  return text + fmt::format("predicted {:.3f} ms, of which {:.1f}% are exposed communication\n", plan.seconds * 1e3,
                            plan.seconds > 0 ? 100 * all.exposed / plan.seconds : 0);
}

}  // namespace tokamak
