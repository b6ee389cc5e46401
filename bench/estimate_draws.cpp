// How far the estimate of a layout (advise/estimate.h) is from its whole compiled step, on layouts that are drawn at
// random of those within a fifth of the fastest: models of 1.6B to 175B on 8 to 3072 GPUs. Needs no GPU. Usage:
// bench_estimate_draws [DRAWS [SEED [none|pipe]]]: so many without a pipeline and as many with one, or of these one
// kind. A layout of 96 blocks takes some seconds.
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "advise/exact.h"
#include "advise/search.h"
#include "backend/cuda/cuda_backend.h"
#include "base/random.h"
#include "config/cluster.h"
#include "config/preset.h"

namespace tokamak {
namespace {

constexpr double kClose = 0.03;          // of the compiled step
constexpr double kOfFastest = 1.2;       // times its step
constexpr double kMostTokens = 1 << 25;  // of a step

const char* const kModels[] = {"gpt2-1558m", "gpt3-2.7b", "gpt3-6.7b", "gpt3-13b", "gpt3-175b"};
const char* const kClusters[] = {"h200", "dgx-a100", "dgx-h100"};

struct Drawn {
  std::string text;
  double told_seconds = 0, seconds = 0, told_bytes = 0, bytes = 0;

  double time_error() const { return told_seconds / seconds - 1; }
  double memory_error() const { return told_bytes / bytes - 1; }
};

class Dice {
 public:
  Dice(uint64_t seed, uint64_t draw) : seed_(seed), draw_(draw) {}
  size_t below(size_t count) { return philox4x32(seed_, draw_, rolled_++)[0] % count; }

 private:
  uint64_t seed_, draw_, rolled_ = 0;
};

std::optional<TrainingRequest> draw_request(Dice& dice) {
  TrainingRequest request;
  request.run.model.preset = kModels[dice.below(std::size(kModels))];
  apply_preset(request.run.model);
  request.cluster = read_cluster(kClusters[dice.below(std::size(kClusters))]);
  request.gpus = int64_t(dice.below(2) == 0 ? 8 : 24) << dice.below(9);
  if (request.gpus > 3072) return {};
  if (request.cluster.nodes == 1) request.gpus = request.cluster.gpus_per_node;
  request.sequences = request.gpus << dice.below(6);
  if (double(request.sequences * request.run.model.context) > kMostTokens) return {};
  request.platform = [](const GpuConfig& gpu) { return cuda::nominal_platform(gpu); };
  request.wanted = 8;
  return request;
}

// Where nothing fits, or all that is fast is of the other kind, there is none.
std::optional<Drawn> draw_layout(Dice dice, bool has_pipe) {
  std::optional<TrainingRequest> request = draw_request(dice);
  if (!request) return {};
  std::vector<Estimate> layouts = search_layouts(*request);
  if (layouts.empty()) return {};
  double most = kOfFastest * layouts[0].time.total();
  std::erase_if(layouts,
                [&](const Estimate& one) { return one.time.total() > most || (one.layout.mesh.pipe > 1) != has_pipe; });
  if (layouts.empty()) return {};
  const Estimate& told = layouts[dice.below(layouts.size())];
  const RunConfig& config = request->run;
  const ClusterConfig& cluster = request->cluster;
  CompiledLayout exact = compile_layout(config, told.layout, cluster, cuda::nominal_platform(cluster.gpu));
  return Drawn{.text = fmt::format("{} on {}: {}", config.model.preset, cluster.name, describe(told.layout)),
               .told_seconds = told.time.total(),
               .seconds = exact.seconds,
               .told_bytes = told.memory.total(),
               .bytes = exact.bytes};
}

// Two at a time, in the order of their numbers.
std::vector<Drawn> draw(size_t count, uint64_t seed, bool has_pipe) {
  constexpr size_t kAtOnce = 2, kTries = 40;
  std::vector<Drawn> drawn;
  for (uint64_t i = 0; drawn.size() < count && i < kTries * count; i += kAtOnce) {
    std::vector<std::future<std::optional<Drawn>>> tasks;
    for (uint64_t j = i; j < i + kAtOnce; ++j)
      tasks.push_back(std::async(std::launch::async, draw_layout, Dice(seed, j), has_pipe));
    for (auto& task : tasks)
      if (std::optional<Drawn> one = task.get(); one && drawn.size() < count) drawn.push_back(std::move(*one));
  }
  return drawn;
}

void print(const char* kind, const std::vector<Drawn>& drawn) {
  auto close = [&](double (Drawn::*error)() const) {
    return std::ranges::count_if(drawn, [&](const Drawn& one) { return std::abs((one.*error)()) <= kClose; });
  };
  fmt::print("{}: of {}, {} within {:.0f}% of the compiled time, {} of its memory; further off are\n", kind,
             drawn.size(), close(&Drawn::time_error), 100 * kClose, close(&Drawn::memory_error));
  fmt::print("{:>10}{:>9}{:>8}{:>9}  layout\n", "step ms", "told", "GiB", "told");
  for (const Drawn& one : drawn) {
    if (std::abs(one.time_error()) <= kClose && std::abs(one.memory_error()) <= kClose) continue;
    fmt::print("{:>10.1f}{:>+8.1f}%{:>8.1f}{:>+8.1f}%  {}\n", one.seconds * 1e3, 100 * one.time_error(),
               one.bytes / double(1 << 30), 100 * one.memory_error(), one.text);
  }
}

void run(size_t count, uint64_t seed, const std::string& only) {
  if (only != "pipe") print("without a pipeline", draw(count, seed, false));
  if (only != "none") print("with a pipeline", draw(count, seed, true));
}

}  // namespace
}  // namespace tokamak

int main(int argc, char** argv) try {
  constexpr size_t kDraws = 4;
  if (!tokamak::cuda::is_built()) return fmt::print("built without CUDA, whose kernels a step is compiled for\n"), 0;
  tokamak::run(argc > 1 ? std::stoul(argv[1]) : kDraws, argc > 2 ? std::stoull(argv[2]) : 1, argc > 3 ? argv[3] : "");
} catch (const std::exception& error) {
  fmt::print(stderr, "error: {}\n", error.what());
  return 1;
}
