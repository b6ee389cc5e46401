#include "advise/published.h"

#include "advise/flops.h"
#include "advise/megatron.h"
#include "advise/search.h"
#include "base/parallel_tasks.h"
#include "config/assignment.h"
#include "config/toml.h"
#include "config/visit.h"
#include "graph/gpu_target.h"
#include "model/model.h"

#include <fmt/format.h>

#include <algorithm>

namespace tokamak {
namespace {

RunConfig config_of(const PublishedRun& run) {
  RunConfig config;
  std::string text = fmt::format("{} {}", run.model, run.layout);
  std::ranges::replace(text, ' ', '\n');
  FieldList list;
  list.config(config);
  std::vector<Field> fields = std::move(list).take();
  assign(fields, parse_toml(fields, text, run.name));
  return config;
}

bool says(const PublishedRun& run, std::string_view key) { return run.layout.find(key) != run.layout.npos; }

int64_t gpus_of(const MeshConfig& mesh) { return mesh.pipe * mesh.data * mesh.context * mesh.tensor; }

int64_t sequences_of(const RunConfig& config) { return config.train.total_batch / config.model.context; }

Again again_of(const RunConfig& config) {
  if (config.compile.recompute == "full") return Again::kBlocks;
  return config.compile.recompute == "selective" ? Again::kScores : Again::kNothing;
}

PublishedPrediction predict_matrices(const PublishedRun& run, const RunConfig& config) {
  const MeshConfig& mesh = config.mesh;
  MegatronRow row{.heads = config.model.heads, .width = config.model.width, .layers = config.model.layers};
  row.tensor = mesh.tensor, row.pipe = mesh.pipe, row.gpus = gpus_of(mesh);
  row.batch = sequences_of(config);
  row.context = config.model.context, row.vocab = config.model.vocab;
  row.again = again_of(config);
  row.sequence = row.again == Again::kScores;  // came with it: arXiv 2205.05198
  if (says(run, "train.batch")) row.micro_batch = config.train.batch / mesh.data;
  if (says(run, "mesh.schedule") || mesh.pipe == 1) row.chunks = mesh.interleave;
  MegatronStep step = predict_megatron(row, published_cluster(run.cluster));
  ParallelLayout layout{.mesh = mesh, .micro_batch = step.micro_batch};
  layout.micro_batches = row.batch / mesh.data / step.micro_batch;
  layout.mesh.interleave = step.chunks;
  return {.predicted = step.seconds(), .layout = describe(layout)};
}

TrainingRequest request_of(const PublishedRun& run, const RunConfig& config, const GpuPlatform& platform) {
  TrainingRequest request;
  request.run = config;
  request.run.compile.precision = Precision::kBf16;
  request.run.mesh.schedule = MeshConfig().schedule;
  request.run.mesh.interleave = MeshConfig().interleave;
  request.run.mesh.async_tensor = false;  // hides more here than torchtitan's async TP does there
  request.run.train.batch = config.mesh.data;
  request.cluster = published_cluster(run.cluster);
  request.gpus = gpus_of(config.mesh);
  request.sequences = sequences_of(config);
  request.platform = platform;
  request.wanted = 1;
  if (says(run, "mesh.schedule")) request.schedules = {{config.mesh.schedule, config.mesh.interleave}};
  int64_t batch = says(run, "train.batch") ? config.train.batch : 0;
  bool zero = says(run, "mesh.zero");
  request.allows = [mesh = config.mesh, batch, zero](const ParallelLayout& layout) {
    const MeshConfig& m = layout.mesh;
    return m.pipe == mesh.pipe && m.data == mesh.data && m.context == mesh.context && m.tensor == mesh.tensor &&
           (!zero || m.zero == mesh.zero) && (batch == 0 || layout.micro_batch * m.data == batch);
  };
  return request;
}

// Of a rank: blocks are divided over stages and tensor ranks, logits over tensor ranks alone, as all stages wait for
// the last one, which has them.
double more_bytes(const PublishedRun& run, const RunConfig& config) {
  const Software& software = *run.software;
  const ModelConfig& model = config.model;
  const MeshConfig& mesh = config.mesh;
  double tokens = double(config.train.total_batch) / double(mesh.data * mesh.tensor);
  double forward = software.forward_bytes * (again_of(config) == Again::kBlocks ? 2 : 1);
  double block = forward + software.backward_bytes + run.again.bytes;
  double blocks = block * double(model.layers * model.width) / double(mesh.pipe);
  return tokens * (blocks + software.logit_bytes * double(model.vocab));
}

double parameter_bytes(const Software& software, const RunConfig& config, int64_t micro_batches) {
  double parameters = double(count_parameters(config.model)) / double(config.mesh.tensor * config.mesh.pipe);
  return software.parameter_bytes * parameters * double(micro_batches);
}

// FLOP/s of its attention. Where power holds the clock below what load leaves it, attention is slower as products are.
double attention_rate(const Software& software, const GpuConfig& gpu) {
  double share = gpu.compute_capability.value < 9 ? software.attention_ampere : software.attention_hopper;
  return share * gpu.half_flops.value * load_clock(gpu) / load_clock(GpuConfig());
}

// A third of products, and two of attention's seven, are forward.
double more_seconds(const PublishedRun& run, const RunConfig& config, const Estimate& ours, const Target& target,
                    const GpuConfig& gpu) {
  constexpr double kForward = 1.0 / 3, kForwardAttention = 2.0 / 7;
  const Software& software = *run.software;
  double theirs = attention_rate(software, gpu);
  double slower = theirs > 0 ? target.attention_flops / theirs : 1;
  double again = again_of(config) == Again::kBlocks ? kForwardAttention : 0;
  double attention = (slower - 1) * (1 + again) + slower * kForwardAttention * run.again.attention;
  double bytes = more_bytes(run, config) + parameter_bytes(software, config, ours.layout.micro_batches);
  return attention * ours.time.attention + kForward * run.again.products * ours.time.matmul +
         bytes / target.memory_bandwidth;
}

// A pipeline waits in proportion.
double seconds_with(const PublishedRun& run, const RunConfig& config, const Estimate& ours, const Target& target,
                    const GpuConfig& gpu) {
  const TimeByKind& time = ours.time;
  double busy = time.total() - time.bubble - time.communication();
  return time.total() + more_seconds(run, config, ours, target, gpu) * (1 + time.bubble / busy);
}

PublishedPrediction predict_layout(const PublishedRun& run, const RunConfig& config, const GpuPlatform& platform) {
  TrainingRequest request = request_of(run, config, platform);
  std::vector<Estimate> found = search_layouts(request);
  Estimate best = found.empty() ? estimate(request, allowed_layouts(request).at(0)) : found[0];
  double missing = best.memory.total() - usable_bytes(request.cluster, best.layout.mesh);
  const GpuConfig& gpu = request.cluster.gpu;
  return {.predicted = seconds_with(run, config, best, platform(gpu).target, gpu),
          .layout = describe(best.layout),
          .missing_bytes = std::max(missing, 0.0)};
}

}  // namespace

PublishedPrediction predict_published(const PublishedRun& run, const GpuPlatform& platform) {
  RunConfig config = config_of(run);
  PublishedPrediction prediction =
      run.software->matrices ? predict_matrices(run, config) : predict_layout(run, config, platform);
  prediction.run = &run;
  prediction.published = run.seconds > 0 ? run.seconds : double(config.train.total_batch) / run.rate;
  return prediction;
}

std::vector<PublishedPrediction> predict_published(std::span<const PublishedRun> runs, const GpuPlatform& platform) {
  std::vector<PublishedPrediction> predictions(runs.size());
  parallel_tasks(int64_t(runs.size()),
                 [&](int64_t i) { predictions[size_t(i)] = predict_published(runs[size_t(i)], platform); });
  return predictions;
}

}  // namespace tokamak
