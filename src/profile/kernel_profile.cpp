#include "profile/kernel_profile.h"

#include "plan/kernel_lines.h"
#include "profile/tensor_cores.h"

#include <algorithm>
#include <optional>

namespace tokamak {
namespace {

// By launch of the plan, seconds of an optimizer step.
std::vector<double> measured_launches(const Plan& plan, const StepProfile& profile) {
  std::vector<double> seconds(plan.launches.size(), 0.0);
  for (const RecordedWork& work : profile.works)
    if (work.kind == Work::Kind::kLaunch && work.plan == &plan)
      seconds[size_t(work.index)] += work.seconds() / double(profile.steps);
  return seconds;
}

// The row of the table that forward and backward kernels of the class count in.
std::optional<size_t> operator_class(WorkClass work) {
  switch (work) {
    case WorkClass::kMatmul:
    case WorkClass::kAttention: return 0;
    case WorkClass::kNormalisation: return 1;
    case WorkClass::kElementwise:
    case WorkClass::kCopy: return 2;
    case WorkClass::kOptimizer:
    case WorkClass::kCommunication: break;
  }
  return std::nullopt;
}

}  // namespace

std::vector<KernelProfile> kernel_profiles(const Session& session, const StepProfile& profile, const Platform& platform,
                                           bool has_tensor_cores) {
  const CompiledStep& step = session.compiled();
  std::vector<KernelProfile> kernels;
  for (size_t p = 0; p < step.programs.size(); ++p) {
    const Plan& plan = session.program(p).plan();
    auto runs = double(step.runs_of(p));
    for (const KernelLine& line : kernel_lines(plan, measured_launches(plan, profile))) {
      const Node& node = plan.graph.nodes()[size_t(line.node)];
      Price by_rates = price(plan.graph, node, platform.target);
      kernels.push_back({.program = plan.graph.name(),
                         .label = line.label,
                         .shape = line.shape,
                         .work = work_class(node),
                         .count = runs * line.count,
                         .flops = runs * line.cost.flops,
                         .bytes = runs * line.cost.bytes,
                         .link_bytes = runs * line.cost.link_bytes,
                         .seconds = line.measured,
                         .predicted = runs * line.seconds,
                         .roof = runs * line.count * (by_rates.seconds - by_rates.fixed),
                         .memory_bound = line.memory_bound,
                         .tensor_cores = has_tensor_cores ? tensor_core_use(plan.graph, node) : ""});
    }
  }
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const KernelProfile& a, const KernelProfile& b) { return a.seconds > b.seconds; });
  return kernels;
}

std::vector<OperatorClass> operator_classes(const std::vector<KernelProfile>& kernels) {
  std::vector<OperatorClass> classes{{"tensor contraction"}, {"statistical normalisation"}, {"element-wise"}};
  for (const KernelProfile& kernel : kernels)
    if (std::optional<size_t> index = operator_class(kernel.work)) {
      classes[*index].flops += kernel.flops;
      classes[*index].seconds += kernel.seconds;
    }
  return classes;
}

}  // namespace tokamak
