#include "advise/layout.h"

#include "autodiff/optimizer_rule.h"
#include "config/chunk_layers.h"
#include "config/number.h"
#include "config/validate.h"
#include "model/model.h"

#include <fmt/format.h>

#include <algorithm>

namespace tokamak {
namespace {

// More sequences in a micro-batch only take more memory.
constexpr int64_t kMostTokens = 1 << 18;

class Enumerator {
 public:
  Enumerator(const RunConfig& run, int64_t gpus, int64_t gpus_per_node, int64_t sequences,
             const std::vector<ScheduleChoice>& schedules)
      : model_(run.model), usual_(run.mesh), gpus_(gpus), node_(gpus_per_node), sequences_(sequences),
        schedules_(schedules), divisors_(divisors_of(sequences)), largest_bytes_(largest_matrix_bytes(run.model)),
        pads_(Optimizer(run.optimizer).keeps_shapes()) {}

  std::vector<ParallelLayout> run() {
    for (int64_t tensor = 1; tensor <= std::min({node_, gpus_, model_.heads}); ++tensor)
      for (int64_t context = 1; tensor * context <= gpus_ && context <= model_.context; context *= 2)
        for (int64_t pipe = 1; tensor * context * pipe <= gpus_ && pipe <= model_.layers; ++pipe)
          add_mesh(pipe, context, tensor);
    return std::move(layouts_);
  }

 private:
  static std::vector<int64_t> divisors_of(int64_t number) {
    std::vector<int64_t> divisors;
    for (int64_t one = 1; one * one <= number; ++one) {
      if (number % one != 0) continue;
      divisors.push_back(one);
      if (one * one < number) divisors.push_back(number / one);
    }
    std::ranges::sort(divisors);
    return divisors;
  }

  // In a low type. Tables are no part of a block.
  static double largest_matrix_bytes(const ModelConfig& model) {
    double largest = 0;
    for (const ParameterInfo& parameter : model_parameters(model))
      if (parameter.role == Role::kColumn || parameter.role == Role::kRow || parameter.role == Role::kMatrix)
        largest = std::max(largest, 2 * double(num_elements(parameter.shape)));
    return largest;
  }

  bool divides_blocks(int64_t tensor) const {
    return pads_ ? divides_padded_model(model_, tensor) : divides_model(model_, tensor);
  }

  void add_mesh(int64_t pipe, int64_t context, int64_t tensor) {
    bool divides = gpus_ % (pipe * context * tensor) == 0 && divides_blocks(tensor) &&
                   (context == 1 || model_.context % (2 * context) == 0);
    if (!divides) return;
    MeshConfig mesh = usual_;
    mesh.pipe = pipe, mesh.context = context, mesh.tensor = tensor;
    mesh.data = gpus_ / (pipe * context * tensor);
    mesh.slots = 1;
    mesh.schedule = MeshConfig().schedule;
    mesh.interleave = 1;
    if (sequences_ % mesh.data != 0) return;
    // A pipeline's ranks have the parameters of their stage alone, so ZeRO 3 would gather them in each micro-batch.
    int64_t most_zero = mesh.data * mesh.context == 1 ? 0 : pipe > 1 ? 1 : 3;
    for (mesh.zero = 0; mesh.zero <= most_zero; ++mesh.zero) {
      bool is_usual = mesh.bucket_mib == MeshConfig().bucket_mib;
      if (mesh.zero == 3 && is_usual) mesh.bucket_mib = std::max(mesh.bucket_mib, bucket_for_blocks(tensor));
      add_schedules(mesh);
    }
  }

  // A matrix of a block that is larger than a bucket would be one by itself, gathered with less ahead of it.
  int64_t bucket_for_blocks(int64_t tensor) const {
    return int64_t(1.25 * largest_bytes_ / double(tensor) / double(1 << 20));
  }

  void add_schedules(MeshConfig mesh) {
    if (mesh.pipe == 1) return count_chunk_layers(mesh) == 0 ? add_micro_batches(mesh) : void();
    for (const ScheduleChoice& choice : schedules_) {
      mesh.schedule = choice.schedule;
      mesh.interleave = choice.interleave;
      if (int64_t chunks = mesh.pipe * mesh.interleave, said = count_chunk_layers(mesh);
          said == chunks || (said == 0 && chunks <= most_chunks(model_.layers)))
        add_micro_batches(mesh);
    }
  }

  // Of every size that divides a data rank's sequences.
  void add_micro_batches(const MeshConfig& mesh) {
    int64_t share = sequences_ / mesh.data, most = kMostTokens * mesh.context / model_.context;
    for (int64_t micro_batch : divisors_) {
      if (micro_batch > std::max<int64_t>(most, 1)) break;
      if (share % micro_batch != 0) continue;
      int64_t micro_batches = share / micro_batch;
      if (mesh.interleave == 1 || micro_batches % mesh.pipe == 0)
        layouts_.push_back({.mesh = mesh, .micro_batch = micro_batch, .micro_batches = micro_batches});
    }
  }

  const ModelConfig& model_;
  const MeshConfig& usual_;
  int64_t gpus_, node_, sequences_;
  const std::vector<ScheduleChoice>& schedules_;
  std::vector<int64_t> divisors_;  // of the sequences
  double largest_bytes_;
  bool pads_;  // heads that tensor ranks do not divide
  std::vector<ParallelLayout> layouts_;
};

}  // namespace

std::string describe(const ParallelLayout& layout) {
  const MeshConfig& mesh = layout.mesh;
  std::string text;
  auto add = [&](const char* axis, int64_t size) {
    if (size > 1) text += fmt::format("{}{} {}", text.empty() ? "" : " x ", axis, size);
  };
  add("pipe", mesh.pipe);
  add("data", mesh.data);
  add("context", mesh.context);
  add("tensor", mesh.tensor);
  if (text.empty()) text = "one GPU";
  if (mesh.pipe > 1) text += ", " + mesh.schedule;
  if (mesh.interleave > 2) text += fmt::format(" {}", mesh.interleave);
  if (mesh.zero > 0) text += fmt::format(", ZeRO {}", mesh.zero);
  text += fmt::format(", micro-batch {} x {}", layout.micro_batch, layout.micro_batches);
  return layout.budget_gib > 0 ? text + ", recomputes" : text;
}

RunConfig run_of(const RunConfig& config, const ParallelLayout& layout) {
  RunConfig run = config;
  run.mesh = layout.mesh;
  run.train.batch = layout.micro_batch * layout.mesh.data;
  run.train.total_batch = run.train.batch * layout.micro_batches * config.model.context;
  run.compile.memory_budget_gib = layout.budget_gib;
  if (run.compile.precision != Precision::kFp8) run.compile.precision = Precision::kBf16;
  return run;
}

std::string options_of(const ParallelLayout& layout, int64_t context) {
  const MeshConfig& mesh = layout.mesh;
  std::string text;
  auto add = [&](const char* key, int64_t value, int64_t usual) {
    if (value != usual) text += fmt::format(" --{}={}", key, value);
  };
  add("mesh.pipe", mesh.pipe, 1);
  add("mesh.data", mesh.data, 1);
  add("mesh.context", mesh.context, 1);
  add("mesh.tensor", mesh.tensor, 1);
  add("mesh.zero", mesh.zero, 0);
  add("mesh.bucket_mib", mesh.bucket_mib, MeshConfig().bucket_mib);
  add("mesh.mailbox_mib", mesh.mailbox_mib, MeshConfig().mailbox_mib);
  if (mesh.data > 1 || mesh.pipe > 1) add("mesh.slots", mesh.slots, 0);
  if (!mesh.sequence) text += " --mesh.sequence=false";
  if (mesh.reduce_gradients != MeshConfig().reduce_gradients)
    text += " --mesh.reduce_gradients=" + mesh.reduce_gradients;
  if (mesh.pipe > 1) text += " --mesh.schedule=" + mesh.schedule;
  add("mesh.interleave", mesh.interleave, 1);
  if (!mesh.chunk_layers.empty()) text += " --mesh.chunk_layers=" + mesh.chunk_layers;
  int64_t batch = layout.micro_batch * mesh.data;
  add("train.batch", batch, 0);
  add("train.total_batch", batch * layout.micro_batches * context, 0);
  if (layout.budget_gib > 0) text += " --compile.memory_budget_gib=" + format_budget_gib(layout.budget_gib);
  return text.substr(1);
}

std::vector<ScheduleChoice> usual_schedules() { return {{"1f1b"}, {"interleaved", 2, true}, {"zero_bubble"}}; }

std::vector<ParallelLayout> all_layouts(const RunConfig& run, int64_t gpus, int64_t gpus_per_node, int64_t sequences,
                                        const std::vector<ScheduleChoice>& schedules) {
  return Enumerator(run, gpus, gpus_per_node, sequences, schedules).run();
}

}  // namespace tokamak
