// `tokamak precompile`: a run's device code, made where there is no GPU.
#include <fmt/format.h>

#include <chrono>
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
  v("gpu", c.gpu, "kind of the GPU that the run will have: h200, h100, a100-80gb");
}

GpuConfig require_units(const std::string& model) {
  GpuConfig gpu = gpu_model(model);
  if (gpu.has_units()) return gpu;
  std::vector<std::string> known = gpu_models();
  std::erase_if(known, [](const std::string& name) { return !gpu_model(name).has_units(); });
  user_error("[gpu] expected a kind whose units are described ({}), got {}", fmt::join(known, ", "), model);
}

std::filesystem::path require_cache() {
  std::filesystem::path cache = cuda::default_cache();
  if (cuda::is_built() && cache.empty())
    user_error("[cache] expected a folder that keeps the code, got none; set TOKAMAK_CACHE, XDG_CACHE_HOME or HOME");
  return cache;
}

int run_precompile(const PrecompileOptions& options) {
  RunConfig config = with_data_vocab(with_initial_model(options.run, options.given));
  GpuConfig gpu = require_units(options.gpu);
  std::filesystem::path cache = require_cache();
  Platform platform = cuda::nominal_platform(gpu);
  auto begin = std::chrono::steady_clock::now();
  std::unique_ptr<cuda::CacheFiller> filler = cuda::fill_cache(gpu, cache);
  tune_ahead(resolve(config, platform.target), platform, *filler);
  {
    ProgressLine line;
    for (auto all = filler->progress(); all.compiled < all.asked; all = filler->progress()) {
      line.show("compiling", all.compiled, all.asked);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  filler->finish();
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  fmt::print("{} kernels' code for {} is in {} ({:.1f} s)\n", filler->progress().asked, gpu.name,
             printable(cache.string()), seconds.count());
  return 0;
}

}  // namespace

Command precompile_command() {
  return make_command<PrecompileOptions>(
      "precompile", "compile a run's GPU code into the cache, on a machine without a GPU",
      "A run's first start on a machine compiles its kernels, most of what that start takes. Here they are compiled "
      "before, as for an image of a container, where the same user then finds them with the same libraries and the "
      "same "
      "TOKAMAK_CACHE:\n\n"
      "  TOKAMAK_CACHE=/opt/tokamak tokamak precompile run.toml --gpu=h100",
      run_precompile);
}

}  // namespace tokamak
