// `tokamak precompile`: a run's device code, made where there is no GPU.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "backend/cuda/cuda_backend.h"
#include "base/error.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/progress_line.h"
#include "compile/resolved_run.h"
#include "config/config.h"
#include "config/gpus.h"
#include "data/data_tokenizer.h"
#include "run/initial_model.h"
#include "tune/tune.h"

namespace tokamak {
namespace {

struct PrecompileOptions {
  std::string config;
  RunConfig run;
  GivenOptions given;
  std::string gpu = kNominalGpu;
};

void visit(FieldList& v, PrecompileOptions& c) {
  v.config_file("run", c.config, "run file (TOML, or a run's config.json)");
  v.config(c.run);
  v("gpu", c.gpu, "kind of the GPU that the run will have, as in h100 or a100-80gb");
}

// Of kinds whose units are described.
GpuConfig require_gpu(const std::string& model) {
  std::vector<std::string> known = gpu_models();
  std::erase_if(known, [](const std::string& name) { return !gpu_model(name).has_units(); });
  if (std::ranges::find(known, model) != known.end()) return gpu_model(model);
  user_error("[gpu] expected a kind whose units are described ({}), got {}", fmt::join(known, ", "), model);
}

std::filesystem::path require_cache() {
  std::filesystem::path cache = cuda::default_cache();
  if (cache.empty())
    user_error("[cache] expected a folder that keeps the code, got none; set TOKAMAK_CACHE, XDG_CACHE_HOME or HOME");
  return cache;
}

int run_precompile(const PrecompileOptions& options) {
  RunConfig config = with_data_vocab(with_initial_model(options.run, options.given));
  GpuConfig gpu = require_gpu(options.gpu);
  Platform platform = cuda::nominal_platform(gpu);  // tells where the program was built without CUDA
  std::filesystem::path cache = require_cache();
  auto begin = std::chrono::steady_clock::now();
  cuda::require_keeping(cache);
  std::unique_ptr<cuda::EarlyCode> code = cuda::begin_code(gpu, cache);
  tune_ahead(resolve(config, platform.target), platform, *code);
  {
    ProgressLine line;
    for (auto all = code->progress(); all.compiled < all.asked; all = code->progress()) {
      line.show("compiling", all.compiled, all.asked);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  code->finish();
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  fmt::print("{} sources of device code for {} are compiled in {} ({:.1f} s)\n", code->progress().asked, gpu.name,
             printable(cache.string()), seconds.count());
  return 0;
}

}  // namespace

Command precompile_command() {
  return make_command<PrecompileOptions>(
      "precompile", "compile a run's GPU code into the cache, on a machine without a GPU",
      "A run's first start on a machine compiles its kernels, which is most of what that start takes. Here they are "
      "compiled before, as for an image of a container. The same user finds them there with the same program, the same "
      "libraries and the same TOKAMAK_CACHE:\n\n"
      "  TOKAMAK_CACHE=/opt/tokamak tokamak precompile run.toml --gpu=h100",
      run_precompile);
}

}  // namespace tokamak
