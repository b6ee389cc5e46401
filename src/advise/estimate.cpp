#include "advise/estimate.h"

#include "advise/block_work.h"
#include "advise/links.h"
#include "graph/gpu_target.h"

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

constexpr double kLow = 2, kFull = 4;  // bytes of bf16 and f32
constexpr double kGiB = double(int64_t(1) << 30);

// What is left beside a plan: the planned peak need not be met to the last byte.
constexpr double kUsableShare = 0.98;
constexpr double kCommunicatorBytes = kGiB;

// Of what tensor ranks scatter, the share that nothing hides, as compiled timelines have it.
constexpr double kScatterExposed = 0.55;

// Gradients and workspaces that are there before the first activations are done with, as compiled plans have them.
constexpr double kBesideActivations = 0.2 * kGiB;

// Over context, what a block of one rank reads and writes beside attention, so many times the bf16 stream: keys and
// values before they are sent, their gradients when these are put to the queries', and the sums of all three.
constexpr double kContextCopies = 4 + 6 + 3;

class Estimator {
 public:
  Estimator(const ModelConfig& model, const ParallelLayout& layout, const ClusterConfig& cluster)
      : model_(model), layout_(layout), mesh_(layout.mesh), cluster_(cluster),
        target_(gpu_target(gpu_rates(cluster.gpu))), block_(model, layout, target_), pipe_(double(mesh_.pipe)),
        cut_(double(mesh_.data * mesh_.context)) {
    divide_stages();
  }

  Estimate run() {
    add_memory();
    fit();
    add_time();
    return {layout_, memory_, time_};
  }

 private:
  // Stages but the last have as many blocks as lets the slowest take least: the last one has the classifier, too.
  void divide_stages() {
    auto blocks = double(model_.layers);
    double block = block_.forward().seconds() + block_.backward().seconds(), head = block_.classifier().seconds();
    blocks_ = last_blocks_ = blocks;
    if (mesh_.pipe == 1) return;
    double best = 0;
    for (double last = std::max(1.0, std::floor(blocks / pipe_)); last >= 1; --last) {
      double each = std::ceil((blocks - last) / (pipe_ - 1)), slowest = std::max(each * block, last * block + head);
      if (best != 0 && slowest >= best) continue;
      best = slowest;
      blocks_ = each, last_blocks_ = last;
    }
  }

  double block_parameters() const {
    auto C = double(model_.width), t = double(mesh_.tensor);
    return 12 * C * C / t + (model_.bias ? 13 : 2) * C;
  }
  double table_parameters() const { return block_.padded_vocab() * double(model_.width) / double(mesh_.tensor); }
  double parameters() const {
    double tables = table_parameters() * (model_.tie_weights || mesh_.pipe > 1 ? 1 : 2);
    return blocks_ * block_parameters() + tables + double(model_.context * model_.width);
  }

  // The first stage has most micro-batches in flight, and what blocks the others leave.
  double first_blocks() const {
    return mesh_.pipe == 1 ? blocks_ : std::max(1.0, double(model_.layers) - last_blocks_ - (pipe_ - 2) * blocks_);
  }
  double largest_matrix() const { return 4 * kLow * double(model_.width * model_.width) / double(mesh_.tensor); }
  double bucket_bytes() const { return std::max(double(mesh_.bucket_mib << 20), largest_matrix()); }

  bool accumulates() const { return layout_.micro_batches > 1 || mesh_.pipe > 1; }

  double in_flight() const {
    if (mesh_.pipe == 1) return 1;
    double most = std::min(pipe_, double(layout_.micro_batches));
    return mesh_.interleave > 1
               ? std::min(most * (1 + (pipe_ - 1) / (pipe_ * double(mesh_.interleave))), double(layout_.micro_batches))
               : most;
  }

  void add_memory() {
    double W = parameters(), of_optimizer = mesh_.zero >= 1 ? cut_ : 1, of_sums = mesh_.zero >= 2 ? cut_ : 1;
    bool gathers = mesh_.zero == 3;
    memory_.weights = gathers ? kFull * W / cut_ : (kFull + kLow) * W;
    memory_.optimizer = 2 * kFull * W / of_optimizer;
    if (accumulates()) memory_.gradients = kFull * W / of_sums;
    double input = block_.input_bytes(), all = input;
    for (const KeptValue& value : block_.kept()) all += value.bytes;
    memory_.activations = first_blocks() * in_flight() * all;
    memory_.buffers = 2 * block_.stream_bytes() + kBesideActivations;
    if (mesh_.pipe == 1) memory_.buffers += block_.logits_bytes();  // else they are on the last stage, which has less
    if (gathers) memory_.buffers += 2 * bucket_bytes() + kLow * table_parameters();
    if (accumulates()) return;
    // Of one micro-batch gradients take the place of activations that are done with.
    double gradients = kLow * W / of_optimizer + kFull * table_parameters() / of_optimizer;
    memory_.gradients = std::max(0.0, gradients - memory_.activations);
  }

  // The cheapest values for their bytes are computed again, first where most is free.
  void fit() {
    double available = kUsableShare * usable_bytes(cluster_, mesh_), missing = memory_.total() - available;
    if (missing <= 0) return;
    double times = first_blocks() * in_flight();
    for (const KeptValue& value : block_.kept()) {
      double share = std::min(1.0, missing / (value.bytes * times));
      memory_.activations -= share * value.bytes * times;
      missing -= share * value.bytes * times;
      again_ += share * value.again;
      if (missing <= 0) break;
    }
    double fixed = kFull * parameters() / (mesh_.zero == 3 ? cut_ : 1) + memory_.optimizer + memory_.gradients;
    layout_.budget_gib = std::max(0.01, std::floor((available - fixed) / kGiB * 100) / 100);
  }

  void add_time() {
    auto runs = double(layout_.micro_batches);
    Work forward = block_.forward(), backward = block_.backward(), head = block_.classifier();
    // The slowest stage: of equal ones, the first.
    double block = forward.seconds() + backward.seconds() + again_.seconds();
    bool last_is_slowest = mesh_.pipe > 1 && last_blocks_ * block + head.seconds() > blocks_ * block;
    double blocks = last_is_slowest ? last_blocks_ : blocks_;
    Work step = runs * blocks * forward;
    step += runs * blocks * backward;
    if (last_is_slowest || mesh_.pipe == 1) step += runs * head;
    step += runs * block_.embedding();
    step.memory_bound += runs * of_each_run() + update_seconds();
    if (mesh_.context > 1)
      step.memory_bound += runs * blocks * block_.memory_seconds(kContextCopies * block_.stream_bytes());
    time_.matmul = step.matmul;
    time_.attention = step.attention;
    time_.memory_bound = step.memory_bound;
    time_.recomputed = runs * blocks * again_.seconds();
    add_communication(blocks, forward.seconds(), backward.seconds() + again_.seconds());
    if (mesh_.pipe > 1) {
      // The slowest stage waits for the others' first micro-batch and last one.
      double others = (double(model_.layers) - blocks) * block + (last_is_slowest ? 0 : head.seconds());
      double parts = mesh_.schedule == "zero_bubble" ? 3 : double(mesh_.interleave);
      time_.bubble = (others + (pipe_ - 1) * time_.tensor / runs) / parts;
    }
  }

  // Casts of parameters to bf16, and sums of gradients that come from other ranks.
  double of_each_run() const {
    double W = parameters(), seconds = 0;
    // The programs of a stage cast for themselves.
    if (mesh_.zero < 3) seconds += (mesh_.pipe > 1 ? 2 : 1) * block_.memory_seconds((kFull + kLow) * W);
    if (!accumulates()) return seconds;
    // Products for matrices add to what is there; biases, norms and the table have a kernel each that does.
    seconds += blocks_ * (model_.bias ? 8 : 2) * target_.launch_seconds;
    if (cut_ == 1) seconds += block_.memory_seconds(3 * kFull * table_parameters());
    if (cut_ > 1) seconds += block_.memory_seconds((2 * kFull + kLow) * W / (mesh_.zero >= 2 ? cut_ : 1));
    return seconds;
  }

  // AdamW reads and writes a parameter and two moments, and reads the gradient, which the norm has read before.
  double update_seconds() const {
    double gradient = accumulates() ? kFull : kLow;
    double cut = mesh_.zero >= 1 ? cut_ : 1;
    return block_.memory_seconds((6 * kFull + 2 * gradient) * parameters() / cut);
  }

  void add_communication(double blocks, double forward_of_block, double backward_of_block) {
    auto runs = double(layout_.micro_batches);
    add_data(runs, blocks * forward_of_block, blocks * backward_of_block);
    if (mesh_.tensor > 1) {
      // With the stream cut between the blocks: attention and MLP gather and scatter it, forward and backward.
      Link link = axis_link(cluster_, 1, mesh_.tensor);
      double each = gather_seconds(link, mesh_.tensor, block_.stream_bytes());
      time_.tensor = runs * 4 * (1 + kScatterExposed) * (blocks + 0.5) * each;
    }
    if (mesh_.context > 1) {
      // Keys and values come together twice, and their gradients are scattered; the first is not hidden.
      Link link = axis_link(cluster_, mesh_.tensor, mesh_.context);
      double bytes = 2 * block_.stream_bytes() * double(mesh_.context) / double(mesh_.tensor);
      time_.context = runs * blocks * gather_seconds(link, mesh_.context, bytes);
      time_.memory_bound += 2 * target_.link_units * time_.context;  // of what is hidden, as of data
    }
    if (mesh_.pipe > 1) {
      Link link = axis_link(cluster_, mesh_.tensor * mesh_.context * mesh_.data, mesh_.pipe);
      time_.pipe = 2 * (pipe_ - 1) * send_seconds(link, block_.input_bytes());
    }
  }

  double gather_seconds(const Link& link, int64_t size, double bytes) const {
    return all_gather_seconds(link, size, bytes / target_.gather_share);
  }

  void add_data(double runs, double forward, double backward) {
    int64_t size = mesh_.data * mesh_.context;
    if (size == 1) return;
    Link link = axis_link(cluster_, mesh_.tensor, size);
    bool scatters = mesh_.zero >= 2 || (mesh_.zero == 1 && !accumulates());
    auto sum = [&](double bytes) {
      return scatters ? gather_seconds(link, size, bytes) : all_reduce_seconds(link, size, bytes);
    };
    double bytes = kLow * blocks_ * block_parameters();
    double blocks = sum(bytes), table = sum(kFull * table_parameters());
    time_.data = runs * (std::max(0.0, blocks - backward) + table);  // the table's gradient comes last
    // What is hidden takes units from the kernels beside it.
    time_.memory_bound += runs * target_.link_units * std::min(blocks, backward);
    if (mesh_.zero == 3) return gather_parameters(link, size, runs, forward, backward);
    if (mesh_.zero >= 1)
      time_.data += std::max(0.0, gather_seconds(link, size, kFull * parameters()) - update_seconds());
  }

  // Once for each pass, a bucket ahead of what reads them, but for the table, which is what a step begins with.
  void gather_parameters(const Link& link, int64_t size, double runs, double forward, double backward) {
    double bytes = kLow * blocks_ * block_parameters(), all = gather_seconds(link, size, bytes);
    time_.data += runs * gather_seconds(link, size, kLow * table_parameters());
    for (double beside : {forward, backward}) time_.data += runs * std::max(0.0, all - beside);
    time_.memory_bound += runs * target_.link_units * 2 * all;
  }

  const ModelConfig& model_;
  ParallelLayout layout_;
  const MeshConfig& mesh_;
  const ClusterConfig& cluster_;
  Target target_;
  BlockWork block_;
  double pipe_, cut_;
  double blocks_ = 0, last_blocks_ = 0;  // of a stage but the last, and of the last
  Work again_;                           // in a block, for each micro-batch
  MemoryByKind memory_;
  TimeByKind time_;
};

}  // namespace

double usable_bytes(const ClusterConfig& cluster, const MeshConfig& mesh) {
  bool is_alone = mesh.pipe * mesh.data * mesh.context * mesh.tensor == 1;
  return cluster.gpu.memory_bytes.value - (is_alone ? 0 : kCommunicatorBytes);
}

Estimate estimate(const ModelConfig& model, const ParallelLayout& layout, const ClusterConfig& cluster) {
  return Estimator(model, layout, cluster).run();
}

}  // namespace tokamak
