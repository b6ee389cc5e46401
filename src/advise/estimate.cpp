#include "advise/estimate.h"

#include "advise/block_work.h"
#include "advise/links.h"
#include "advise/zero_cut.h"
#include "graph/gpu_target.h"
#include "passes/step_mesh.h"

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

constexpr double kLow = 2, kFull = 4;  // bytes of bf16 and f32
constexpr double kGiB = double(int64_t(1) << 30);

// What is left beside a plan: the planned peak need not be met to the last byte.
constexpr double kUsableShare = 0.98;
constexpr double kCommunicatorBytes = kGiB;

// Where gradients share the links with what tensor ranks wait for, the share of a backward pass that can hide them:
// what runs between a weight's gradient and the next such collective.
constexpr double kBetweenCollectives = 0.5;

// Gradients and workspaces that are there before the first activations are done with, as compiled plans have them.
constexpr double kBesideActivations = 0.2 * kGiB;

class Estimator {
 public:
  Estimator(const ModelConfig& model, const ParallelLayout& layout, const ClusterConfig& cluster)
      : model_(model), layout_(layout), mesh_(layout.mesh), cluster_(cluster),
        target_(gpu_target(gpu_rates(cluster.gpu))), block_(model, layout, target_), pipe_(double(mesh_.pipe)) {
    for (const MatrixSize& matrix : block_matrices(model, mesh_.tensor)) of_block_.add(matrix, mesh_);
    for (const MatrixSize& vector : block_vectors(model, mesh_.tensor)) of_block_.add(vector, mesh_);
    table_.add({int64_t(block_.padded_vocab()) / mesh_.tensor, model.width}, mesh_);
    positions_.add({model.context, model.width}, mesh_);
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

  double tables() const { return model_.tie_weights || mesh_.pipe > 1 ? 1 : 2; }
  ZeroCut stage() const { return blocks_ * of_block_ + tables() * table_ + positions_; }
  // Of all parameters of a stage, those of a rank, whole or as ZeRO cuts them.
  double parameters(bool is_cut = false) const { return is_cut ? stage().cut() : stage().all(); }

  // The first stage has most micro-batches in flight, and what blocks the others leave.
  double first_blocks() const {
    return mesh_.pipe == 1 ? blocks_ : std::max(1.0, double(model_.layers) - last_blocks_ - (pipe_ - 2) * blocks_);
  }
  double largest_matrix() const { return 4 * kLow * double(model_.width * model_.width) / double(mesh_.tensor); }
  double bucket_bytes() const { return std::max(double(mesh_.bucket_mib << 20), largest_matrix()); }

  bool cuts_parameters() const { return mesh_.zero == 3 || gathers_once(mesh_); }
  bool accumulates() const { return layout_.micro_batches > 1 || mesh_.pipe > 1; }

  // Data ranks add up gradients in the update, not in each micro-batch.
  bool adds_once() const { return mesh_.pipe > 1 && mesh_.zero <= 1; }
  // Other ranks' gradients are added in each micro-batch.
  bool sends_of_each_run() const { return mesh_.context > 1 || (mesh_.data > 1 && !adds_once()); }

  double in_flight() const {
    if (mesh_.pipe == 1) return 1;
    double most = std::min(pipe_, double(layout_.micro_batches));
    return mesh_.interleave > 1
               ? std::min(most * (1 + (pipe_ - 1) / (pipe_ * double(mesh_.interleave))), double(layout_.micro_batches))
               : most;
  }

  void add_memory() {
    double W = parameters();
    bool gathers = mesh_.zero == 3;  // for each pass, what it reads next
    memory_.weights = kFull * parameters(cuts_parameters()) + kLow * (gathers ? W - stage().divisible() : W);
    memory_.optimizer = 2 * kFull * parameters(mesh_.zero >= 1);
    if (accumulates()) memory_.gradients = kFull * parameters(mesh_.zero >= 2);
    double input = block_.input_bytes(), all = input;
    for (const KeptValue& value : block_.kept()) all += value.bytes;
    memory_.activations = first_blocks() * in_flight() * all;
    memory_.buffers = 2 * block_.stream_bytes() + kBesideActivations;
    if (mesh_.pipe == 1) memory_.buffers += block_.logits_bytes();  // else they are on the last stage, which has less
    if (gathers) memory_.buffers += 2 * bucket_bytes() + kLow * table_.divisible();
    // Keys and values of all context ranks, and their gradients.
    if (mesh_.context > 1)
      memory_.buffers += 2 * 2 * block_.stream_bytes() * double(mesh_.context) / double(mesh_.tensor);
    // A stage's activations are no intermediate values, so gradients that are sent cannot take their place.
    if (sends_of_each_run() && mesh_.pipe > 1) memory_.buffers += kLow * blocks_ * of_block_.all();
    if (adds_once() && mesh_.data > 1) memory_.buffers = std::max(memory_.buffers, kFull * parameters(mesh_.zero == 1));
    if (accumulates()) return;
    // Of one micro-batch gradients take the place of activations that are done with.
    bool is_cut = mesh_.zero >= 1;
    double gradients = kLow * parameters(is_cut) + kFull * (is_cut ? table_.cut() : table_.all());
    memory_.gradients = std::max(0.0, gradients - memory_.activations);
  }

  // The cheapest values for their bytes are computed again, first where most is free. Parameters in bf16 are among
  // them, if they are not gathered: they are cast anew for the backward pass.
  void fit() {
    double available = kUsableShare * usable_bytes(cluster_, mesh_), missing = memory_.total() - available;
    if (missing <= 0) return;
    auto drop = [&](double& memory, double bytes, const Work& again) {
      double share = std::clamp(missing / bytes, 0.0, 1.0);
      memory -= share * bytes;
      missing -= share * bytes;
      again_ += share * again;
    };
    double times = first_blocks() * in_flight(), cast = gathers_once(mesh_) ? of_block_.whole : of_block_.all();
    for (const KeptValue& value : block_.kept()) {
      if (value.again.matmul > 0 && mesh_.zero < 3 && mesh_.pipe == 1 && cast > 0 && !casts_again_) {
        casts_again_ = true;
        drop(memory_.weights, kLow * blocks_ * cast, {.memory_bound = block_.memory_seconds((kFull + kLow) * cast)});
      }
      drop(memory_.activations, value.bytes * times, value.again);
    }
    double fixed = kFull * parameters(cuts_parameters()) + memory_.optimizer + memory_.gradients;
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
    step.memory_bound += context_work(blocks);
    time_.matmul = step.matmul;
    time_.attention = step.attention;
    time_.memory_bound = step.memory_bound;
    time_.recomputed = runs * blocks * again_.seconds();
    add_communication(blocks, forward.seconds(), backward.seconds() + again_.seconds());
    if (mesh_.pipe > 1) {
      // The slowest stage waits for the others' first micro-batch and last one.
      double others = (double(model_.layers) - blocks) * block + (last_is_slowest ? 0 : head.seconds());
      double parts = mesh_.schedule == "zero_bubble" ? 3 : double(mesh_.interleave);
      double beside =
          of_each_run() + context_work(blocks) / runs + (time_.tensor + time_.context + exposed_gradients_) / runs;
      time_.bubble = (others + (pipe_ - 1) * beside) / parts;
    }
  }

  // What attention takes more where its time is cut.
  double context_work(double blocks) const {
    if (mesh_.context == 1) return 0;
    return double(layout_.micro_batches) * blocks * block_.context_seconds(cluster_.gpu.compute_capability.value);
  }

  // Casts of parameters to bf16, and sums of gradients that come from other ranks.
  double of_each_run() const {
    double W = parameters(), seconds = 0;
    // The programs of a stage cast for themselves, and shares are cast once a step.
    if (gathers_once(mesh_)) W = accumulates() ? stage().whole : parameters(true);
    if (mesh_.zero < 3) seconds += (mesh_.pipe > 1 ? 2 : 1) * block_.memory_seconds((kFull + kLow) * W);
    if (!accumulates()) return seconds;
    // Products for matrices add to what is there; biases, norms and the table have a kernel each that does.
    seconds += blocks_ * (model_.bias ? 8 : 2) * target_.launch_seconds;
    double bytes = sends_of_each_run() ? (2 * kFull + kLow) * parameters(mesh_.zero >= 2) : 3 * kFull * table_.all();
    return seconds + block_.memory_seconds(bytes);
  }

  // AdamW reads and writes a parameter and two moments, and reads the gradient, which the norm has read before.
  double update_seconds() const {
    double gradient = accumulates() ? kFull : kLow;
    return block_.memory_seconds((6 * kFull + 2 * gradient) * parameters(mesh_.zero >= 1));
  }

  void add_communication(double blocks, double forward_of_block, double backward_of_block) {
    auto runs = double(layout_.micro_batches);
    double keys = 0;  // keys and values of all blocks, gathered once
    if (mesh_.context > 1) {
      // Gathered in both passes, and their gradients are scattered; in the forward pass nothing hides that.
      double bytes = 2 * block_.stream_bytes() * double(mesh_.context) / double(mesh_.tensor);
      keys = blocks * gather_seconds(context_link(), mesh_.context, bytes);
      time_.context = runs * keys;
      time_.memory_bound += 2 * runs * target_.link_units * keys;  // of what is hidden, as of data
    }
    if (mesh_.tensor > 1) {
      // With the stream cut between the blocks: attention and MLP gather and scatter it, forward and backward.
      Link link = axis_link(cluster_, 1, mesh_.tensor);
      time_.tensor = runs * 8 * (blocks + 0.5) * gather_seconds(link, mesh_.tensor, block_.stream_bytes());
    }
    add_data(runs, blocks * forward_of_block, blocks * backward_of_block, 2 * keys);
    if (mesh_.pipe > 1) {
      Link link = axis_link(cluster_, mesh_.tensor * mesh_.context * mesh_.data, mesh_.pipe);
      time_.pipe = 2 * (pipe_ - 1) * send_seconds(link, block_.input_bytes());
    }
  }

  Link context_link() const { return axis_link(cluster_, mesh_.tensor, mesh_.context); }
  Link data_link() const { return axis_link(cluster_, mesh_.tensor * mesh_.context, mesh_.data); }
  double gather_seconds(const Link& link, int64_t size, double bytes) const {
    return all_gather_seconds(link, size, bytes / target_.gather_share);
  }

  // What is sent along the two axes that ZeRO cuts: inside a node first, and then a rank's share of that.
  double added_over_context(const ZeroCut& sizes, double bytes, bool scatters) const {
    return sum_seconds(context_link(), mesh_.context, bytes, scatters ? sizes.by_context + sizes.by_both : 0,
                       sizes.all());
  }
  double added_over_data(const ZeroCut& sizes, double bytes, bool scatters) const {
    if (!scatters) return sum_seconds(data_link(), mesh_.data, bytes, 0, sizes.all());
    double all = sizes.whole + sizes.by_data + (sizes.by_context + sizes.by_both) / double(mesh_.context);
    return sum_seconds(data_link(), mesh_.data, bytes, sizes.by_data + sizes.by_both / double(mesh_.context), all);
  }
  double sum_seconds(const Link& link, int64_t size, double bytes, double scattered, double all) const {
    return bandwidth_seconds(link, size, bytes * scattered / target_.gather_share) +
           2 * bandwidth_seconds(link, size, bytes * (all - scattered));
  }
  // In each micro-batch.
  double gradient_seconds(const ZeroCut& sizes, double bytes, bool scatters) const {
    return added_over_context(sizes, bytes, scatters) + (adds_once() ? 0 : added_over_data(sizes, bytes, scatters));
  }
  double gathered_over_data(const ZeroCut& sizes, double bytes) const {
    double sent = sizes.by_data + sizes.by_both / double(mesh_.context);
    return bandwidth_seconds(data_link(), mesh_.data, bytes * sent / target_.gather_share);
  }
  double gathered_over_context(const ZeroCut& sizes, double bytes) const {
    double sent = sizes.by_context + sizes.by_both;
    return bandwidth_seconds(context_link(), mesh_.context, bytes * sent / target_.gather_share);
  }
  static double bandwidth_seconds(const Link& link, int64_t size, double bytes) {
    return size == 1 ? 0 : bytes * double(size - 1) / double(size) / link.bandwidth;
  }

  // Latencies of what is sent of the blocks' parameters. Buckets are filled along one axis. Where two cut a parameter,
  // gradients fill those of the second, and updated parameters none: then each has a collective of its own.
  struct Collectives {
    double each = 0, filled = 0;
  };
  Collectives collectives(double element_bytes) const {
    auto bucket = double(mesh_.bucket_mib << 20);
    Collectives count;
    for (const MatrixSize& matrix : block_matrices(model_, mesh_.tensor)) {
      count.filled += bucket > 0 ? std::min(1.0, element_bytes * matrix.elements() / bucket) : 1;
      ++count.each;
    }
    count.each += double(block_vectors(model_, mesh_.tensor).size());
    return {blocks_ * count.each, blocks_ * count.filled};
  }
  double latency(const Link& link, int64_t size) const { return size > 1 ? link.latency : 0; }
  double gradient_latencies() const {
    auto [each, filled] = collectives(kLow);
    bool are_apart = mesh_.tensor > 1;  // those of tensor stand between them
    return (adds_once() ? 0
            : are_apart ? each
                        : filled) *
               latency(data_link(), mesh_.data) +
           (mesh_.data > 1 ? each : filled) * latency(context_link(), mesh_.context);
  }
  double gather_latencies(double count) const {
    const ZeroCut& cut = of_block_;
    return count / cut.all() *
           ((cut.by_data + cut.by_both) * latency(data_link(), mesh_.data) +
            (cut.by_context + cut.by_both) * latency(context_link(), mesh_.context));
  }

  void add_data(double runs, double forward, double backward, double hidden) {
    if (mesh_.data * mesh_.context == 1) return;
    bool scatters = mesh_.zero >= 2 || (mesh_.zero == 1 && !accumulates());
    ZeroCut of_blocks = blocks_ * of_block_;
    double gradients = gradient_seconds(of_blocks, kLow, scatters) + gradient_latencies();
    double table = gradient_seconds(table_, kFull, scatters);
    double gathered =
        mesh_.zero == 3 ? gathered_over_context(of_blocks, kLow) + gathered_over_data(of_blocks, kLow) : 0;
    double exposed = std::max(0.0, gradients + gathered + hidden - backward);
    if (mesh_.tensor > 1) {
      // The last matrix before the next block, queries, keys and values, has a collective behind it that is waited for.
      double last = gradients * 0.25;
      exposed = last + std::max(0.0, gradients - last + gathered + hidden - kBetweenCollectives * backward);
    }
    exposed_gradients_ = runs * exposed;
    time_.data += runs * (exposed + table);  // the table's gradient comes last
    // What is hidden takes units from the kernels beside it.
    time_.memory_bound += runs * target_.link_units * std::max(0.0, gradients + gathered - exposed);
    if (adds_once())
      time_.data += added_over_data(stage(), kFull, mesh_.zero == 1) +
                    collectives(kFull).filled * latency(data_link(), mesh_.data);
    if (mesh_.zero == 3) return gather_parameters(of_blocks, runs, forward);
    if (gathers_once(mesh_)) return gather_parameters(of_blocks, 1, accumulates() ? 0 : forward);
    ZeroCut all = stage();
    auto [each, filled] = collectives(kFull);
    double latencies = gather_latencies(mesh_.data > 1 && mesh_.context > 1 ? each : filled);
    double update = gathered_over_context(all, kFull) + gathered_over_data(all, kFull) + latencies;
    if (mesh_.zero >= 1) time_.data += std::max(0.0, update - update_seconds());
  }

  // Once for each pass, or for both, a bucket ahead of what reads them, but for the table, which is what a step begins
  // with. Of what two axes cut, a bucket of the outer one stands before the inner one's, which is waited for.
  void gather_parameters(const ZeroCut& of_blocks, double runs, double forward) {
    double inner = gathered_over_context(of_blocks, kLow), outer = gathered_over_data(of_blocks, kLow);
    time_.data += runs * (gathered_over_context(table_, kLow) + gathered_over_data(table_, kLow));
    double exposed = mesh_.context > 1 && mesh_.data > 1 ? outer + std::max(0.0, inner - forward)
                                                         : std::max(0.0, inner + outer - forward);
    if (forward == 0) exposed += gather_latencies(collectives(kLow).filled);  // in a program of their own
    time_.data += runs * exposed;
    time_.memory_bound += runs * target_.link_units * (inner + outer - exposed);
  }

  const ModelConfig& model_;
  ParallelLayout layout_;
  const MeshConfig& mesh_;
  const ClusterConfig& cluster_;
  Target target_;
  BlockWork block_;
  double pipe_;
  ZeroCut of_block_, table_, positions_;
  double blocks_ = 0, last_blocks_ = 0;  // of a stage but the last, and of the last
  bool casts_again_ = false;
  Work again_;                    // in a block, for each micro-batch
  double exposed_gradients_ = 0;  // seconds, of all micro-batches
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
