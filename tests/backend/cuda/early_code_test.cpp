// Device code that is compiled before there is a device: here on a machine without one.
#include "backend/cuda/context.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/kernels.h"
#include "compile/step_compiler.h"
#include "config/config.h"
#include "config/gpus.h"
#include "tests/support/resolve_first.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/variable.h"
#include "tune/tune.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace tokamak::cuda {
namespace {

// Large enough for eight bits to pay.
RunConfig large(Precision precision) {
  RunConfig config;
  config.model = {.layers = 1, .heads = 12, .width = 768, .context = 1024, .vocab = 50304};
  config.train.batch = 16;
  config.compile.precision = precision;
  return config;
}

GpuConfig h200() { return gpu_model("h200"); }

// Also what keeps tables on the device once it is made.
TEST(EarlyCode, NeedsNoDevice) {
  if (device_count() > 0) GTEST_SKIP() << "there is a device here, with which nothing fails";
  DeviceInfo device = nominal_device(h200());
  auto compiler = std::make_shared<KernelCompiler>(0, Architecture{9, 0}, "");
  Context context(device, compiler);
  std::set<std::string> ops;
  for (Precision precision : {Precision::kBf16, Precision::kFp8}) {
    CompiledStep step = compile_step(large(precision), nominal_platform(h200()));
    for (const CompiledGraph& program : step.programs)
      for (const Launch& launch : program.plan.launches) {
        const Node& node = program.plan.graph.nodes()[size_t(launch.node)];
        EXPECT_NO_THROW(compile_ahead(context, program.plan.graph, node)) << node.op->name;
        ops.emplace(node.op->name);
      }
  }
  for (const char* op : {"attention_grad", "multi_adamw", "sum_squares", "float8_weights", "float8_scales", "row"})
    EXPECT_TRUE(ops.contains(op)) << op;
}

// As the driver has them, for each GPU a folder that is named by its place on the bus.
TEST(EarlyCode, IsForTheFirstGpuThatIsSeen) {
  TemporaryFolder folder;
  auto write = [&](const char* place, const std::string& model) {
    std::filesystem::create_directories(folder / place);
    std::ofstream(folder / place / "information") << "Model: \t\t " << model << "\nIRQ:   \t\t 59\n";
  };
  auto name = [&] {
    std::optional<GpuConfig> gpu = expected_gpu(folder.path());
    return gpu ? gpu->name : "none";
  };
  Variable visible("CUDA_VISIBLE_DEVICES", "0");
  EXPECT_FALSE(expected_gpu(folder / "nowhere"));
  EXPECT_EQ(name(), "none");
  write("0000:9b:00.0", "NVIDIA H200");
  write("0000:19:00.0", "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(name(), gpu_model("h100").name);
  ::setenv("CUDA_VISIBLE_DEVICES", "1", 1);
  EXPECT_EQ(name(), gpu_model("h200").name);
  for (const char* none : {"2", "", "-1", "GPU-0a1b2c3d"}) {
    ::setenv("CUDA_VISIBLE_DEVICES", none, 1);
    EXPECT_EQ(name(), "none") << none;
  }
  ::setenv("CUDA_VISIBLE_DEVICES", "0", 1);
  for (const char* model : {"NVIDIA Made Up 9000", "NVIDIA B200"}) {  // of this the units are not described
    write("0000:19:00.0", model);
    EXPECT_EQ(name(), "none") << model;
  }
}

size_t count_files(const std::filesystem::path& folder) {
  if (!std::filesystem::exists(folder)) return 0;
  auto all = std::filesystem::recursive_directory_iterator(folder);
  return size_t(std::count_if(begin(all), end(all), [](const auto& entry) { return entry.is_regular_file(); }));
}

TEST(EarlyCode, FillsACacheThatABackendReads) {
  TemporaryFolder folder;
  require_keeping(folder.path());
  std::unique_ptr<EarlyCode> code = begin_code(h200(), folder.path());
  Platform platform = nominal_platform(h200());
  tune_ahead(resolve(large(Precision::kBf16), platform.target), platform, *code);
  code->finish();
  auto [asked, compiled] = code->progress();
  EXPECT_GT(asked, 20);
  EXPECT_EQ(compiled, asked);
  EXPECT_EQ(int64_t(count_files(folder.path())), asked + 1) << "and one to see whether it keeps any";
}

TEST(EarlyCode, IsOfTheCompilerThatTheBackendThenHas) {
  std::unique_ptr<EarlyCode> early = begin_code(h200(), "");
  DeviceInfo device = nominal_device(h200()), older = device, other = device;
  older.major = 8, other.ordinal = 1;
  EXPECT_EQ(compiler_for(device, "", early->compiler()), early->compiler());
  for (const DeviceInfo& another : {older, other})
    EXPECT_NE(compiler_for(another, "", early->compiler()), early->compiler());
  EXPECT_NE(compiler_for(device, "", nullptr), nullptr);
}

}  // namespace
}  // namespace tokamak::cuda
