#include "run/run_outline.h"

#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "config/cluster.h"
#include "run/check_run.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

TEST(RunOutline, CostsWhatTheDeviceCosts) {
  TemporaryFolder folder;
  test::make_tiny_data(folder.path());
  RunConfig config = checked_run(test::tiny_config(folder.path()));
  config.model.vocab = 301;
  Platform platform = cpu::nominal_platform();
  ResolvedRun run = resolve(config, platform.target);
  RunData data(run, nullptr, false);
  RunOutline outline = make_outline(run, platform.target, data, 5, 0.5, 1000);
  EXPECT_EQ(outline.seconds, 15 * 0.5) << "of the steps to come";
  EXPECT_EQ(outline.dollars_per_hour, 0) << "of a CPU no price is known";
  Target gpu = platform.target;
  gpu.name = "NVIDIA H200";
  outline = make_outline(run, gpu, data, 0, 0.5, 1000);
  EXPECT_EQ(outline.dollars_per_hour, read_cluster("h200").price.value);
  EXPECT_EQ(outline.priced_as, "h200");
}

TEST(RunOutline, DescribesARunWithoutTouchingTheDisk) {
  TemporaryFolder folder;
  test::make_tiny_data(folder.path());
  RunConfig config = checked_run(test::tiny_config(folder.path()));
  std::string text = describe_run(config, cpu::nominal_platform());
  for (const char* piece : {" parameters in fp32, ", "steps 1 to 20 of 32 tokens", "predicted: a step of ",
                            "learning rate: cosine, warm-up of 3 steps", "| "})
    EXPECT_NE(text.find(piece), std::string::npos) << piece << "\n" << text;
  EXPECT_EQ(text.find("mesh"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(config.train.out));
  config.mesh = {.data = 2, .zero = 1};
  text = describe_run(config, cpu::nominal_platform());
  EXPECT_TRUE(text.starts_with("mesh: data 2, ZeRO 1\n")) << text;
}

}  // namespace
}  // namespace tokamak
