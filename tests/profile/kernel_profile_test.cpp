#include "profile/kernel_profile.h"

#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "config/config.h"
#include "tests/support/resolve_first.h"

namespace tokamak {
namespace {

TEST(KernelProfiles, AreOfAStepAndPricedByItsRates) {
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 32, .context = 16, .vocab = 61};
  config.compile.precision = Precision::kFp32;
  auto backend = cpu::make_backend();
  Platform platform = cpu::nominal_platform();
  Session session = make_session(config, platform, *backend);
  const Plan& plan = session.program(0).plan();
  StepProfile profile{.steps = 2};
  for (int64_t step = 0; step < profile.steps; ++step)
    for (int i = 0; i < int(plan.launches.size()); ++i)
      profile.works.push_back({.kind = Work::Kind::kLaunch, .plan = &plan, .index = i, .begin = 1, .end = 4});
  profile.works.push_back({.kind = Work::Kind::kRun, .plan = &plan, .begin = 0, .end = 100});
  double count = 0, flops = 0;
  for (const KernelProfile& kernel : kernel_profiles(session, profile, platform, /*has_tensor_cores=*/false)) {
    EXPECT_DOUBLE_EQ(kernel.seconds, 3 * kernel.count) << kernel.label;
    EXPECT_DOUBLE_EQ(kernel.of_roof(), kernel.roof / kernel.seconds);
    EXPECT_NEAR(kernel.predicted - kernel.roof, kernel.count * platform.target.launch_seconds, 1e-12) << kernel.label;
    count += kernel.count;
    flops += kernel.flops;
  }
  EXPECT_EQ(count, double(plan.launches.size()));
  double in_plan = 0;
  for (const Launch& launch : plan.launches) in_plan += launch.cost.flops;
  EXPECT_NEAR(flops, in_plan, 1e-6 * in_plan);
}

TEST(OperatorClasses, AreThoseOfForwardAndBackward) {
  std::vector<KernelProfile> kernels;
  for (WorkClass work : kWorkClasses)
    kernels.push_back({.work = work, .flops = double(int64_t(1) << size_t(work)), .seconds = 1});
  auto flops = [](std::initializer_list<WorkClass> works) {
    double sum = 0;
    for (WorkClass work : works) sum += double(int64_t(1) << size_t(work));
    return sum;
  };
  std::vector<OperatorClass> classes = operator_classes(kernels);
  ASSERT_EQ(classes.size(), 3u);
  EXPECT_EQ(classes[0].name, "tensor contraction");
  EXPECT_EQ(classes[0].flops, flops({WorkClass::kMatmul, WorkClass::kAttention}));
  EXPECT_EQ(classes[0].seconds, 2);
  EXPECT_EQ(classes[1].flops, flops({WorkClass::kNormalisation}));
  EXPECT_EQ(classes[2].flops, flops({WorkClass::kElementwise, WorkClass::kCopy}));
}

}  // namespace
}  // namespace tokamak
