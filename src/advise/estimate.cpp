#include "advise/estimate.h"

#include "advise/axis_seconds.h"
#include "advise/backward_timeline.h"
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

// Gradients and workspaces that are there before the first activations are done with, as compiled plans have them.
constexpr double kBesideActivations = 0.12 * kGiB;

class Estimator {
 public:
  Estimator(const ModelConfig& model, const ParallelLayout& layout, const ClusterConfig& cluster)
      : model_(model), layout_(layout), mesh_(layout.mesh), cluster_(cluster),
        target_(gpu_target(gpu_rates(cluster.gpu))), block_(model, layout, target_),
        axes_(cluster, mesh_, target_.gather_share), pipe_(double(mesh_.pipe)) {
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
  // Chunks but the last have as many blocks as lets the slowest take least: the last one has the classifier, too. Where
  // what it leaves is not divided evenly, the later ones have more.
  void divide_stages() {
    auto chunks = size_t(mesh_.pipe * mesh_.interleave);
    double last = blocks_of_last_chunk(double(chunks)), left = double(model_.layers);
    stage_blocks_.assign(size_t(mesh_.pipe), 0);
    for (size_t chunk = chunks; chunk-- > 0;) {
      double blocks = chunk + 1 == chunks ? last : std::ceil(left / double(chunk + 1));
      stage_blocks_[chunk % stage_blocks_.size()] += blocks;
      left -= blocks;
    }
    last_blocks_ = blocks_ = stage_blocks_.back();
    if (mesh_.pipe > 1) blocks_ = *std::max_element(stage_blocks_.begin(), std::prev(stage_blocks_.end()));
  }
  double blocks_of_last_chunk(double chunks) const {
    auto blocks = double(model_.layers);
    if (chunks == 1) return blocks;
    double block = block_.forward().seconds() + block_.backward().seconds(), head = block_.classifier().seconds();
    double best = 0, best_last = 1;
    for (double last = std::max(1.0, std::floor(blocks / chunks)); last >= 1; --last) {
      double each = std::ceil((blocks - last) / (chunks - 1)), slowest = std::max(each * block, last * block + head);
      if (best != 0 && slowest >= best) continue;
      best = slowest;
      best_last = last;
    }
    return best_last;
  }

  double tables() const { return model_.tie_weights || mesh_.pipe > 1 ? 1 : 2; }
  // Of a table on two stages each has the other's gradient, too.
  double shared(size_t stage) const {
    bool has_table = stage == 0 || stage + 1 == stage_blocks_.size();
    return mesh_.pipe > 1 && model_.tie_weights && has_table ? table_.all() : 0;
  }
  ZeroCut stage() const { return blocks_ * of_block_ + tables() * table_ + positions_; }
  // Of all parameters of a stage, those of a rank, whole or as ZeRO cuts them.
  double parameters(bool is_cut = false) const { return is_cut ? stage().cut() : stage().all(); }

  ZeroCut parameters_of(size_t stage) const {
    bool is_first = stage == 0, is_last = stage + 1 == size_t(mesh_.pipe);
    return stage_blocks_[stage] * of_block_ + (mesh_.pipe == 1 ? tables() : double(is_first || is_last)) * table_ +
           double(is_first) * positions_;
  }
  double largest_matrix() const { return 4 * kLow * double(model_.width * model_.width) / double(mesh_.tensor); }
  double bucket_bytes() const { return std::max(double(mesh_.bucket_mib << 20), largest_matrix()); }

  bool cuts_parameters() const { return mesh_.zero == 3 || gathers_once(mesh_); }
  bool accumulates() const { return layout_.micro_batches > 1 || mesh_.pipe > 1; }

  // Data ranks add up gradients in the update, not in each micro-batch.
  bool adds_once() const { return accumulates() && mesh_.zero <= 1; }
  // Other ranks' gradients are added in each micro-batch.
  bool sends_of_each_run() const { return mesh_.context > 1 || (mesh_.data > 1 && !adds_once()); }

  // Micro-batches of which a stage has what is read by its backward pass.
  double in_flight(size_t stage) const {
    if (mesh_.pipe == 1) return 1;
    if (mesh_.schedule == "gpipe") return double(layout_.micro_batches);
    int64_t behind = mesh_.pipe - int64_t(stage) - 1;
    if (mesh_.interleave > 1) return chunks_in_flight(behind) / double(mesh_.interleave);
    return double(std::min(layout_.micro_batches, behind + 1));
  }

  // Of each chunk the most that are there at a time, which is not the same time for all. A stage runs chunks in turns
  // of as many micro-batches as there are stages, the last chunk's backward pass first; when `ahead` forward passes are
  // done, forward and backward ones take turns.
  double chunks_in_flight(int64_t behind) const {
    int64_t P = mesh_.pipe, V = mesh_.interleave, ahead = 2 * behind + (V - 1) * P;
    auto done = [&](int64_t passes, int64_t chunk) {
      return passes / (P * V) * P + std::clamp<int64_t>(passes % (P * V) - chunk * P, 0, P);
    };
    double all = 0;
    for (int64_t chunk = 0; chunk < V; ++chunk) {
      int64_t most = 0;
      for (int64_t passes = 1; passes <= ahead + 2 * P * V; ++passes)
        most = std::max(most, done(passes, chunk) - done(std::max<int64_t>(0, passes - 1 - ahead), V - 1 - chunk));
      all += double(std::min(most, layout_.micro_batches));
    }
    return all;
  }

  // With zero_bubble gradients of weights are computed later, but for the first stage's: so long their operands stay.
  bool waits_with_weights(size_t stage) const { return mesh_.pipe > 1 && mesh_.schedule == "zero_bubble" && stage > 0; }
  double activation_bytes(size_t stage) const {
    double most = in_flight(stage), bytes = most * block_.input_bytes(), runs = double(layout_.micro_batches);
    for (const KeptValue& value : block_.kept())
      bytes += value.bytes * (value.is_for_weights && waits_with_weights(stage) ? std::min(pipe_, runs) : most);
    if (waits_with_weights(stage)) bytes += block_.gradient_bytes() * std::min(double(stage) + 1, runs);
    return bytes;
  }

  // Of the fullest stage.
  void add_memory() {
    for (size_t stage = 0; stage < stage_blocks_.size(); ++stage) {
      MemoryByKind memory = memory_of(stage);
      if (stage > 0 && memory.total() <= memory_.total()) continue;
      memory_ = memory;
      fullest_ = stage;
    }
  }

  MemoryByKind memory_of(size_t stage) const {
    double blocks = stage_blocks_[stage];
    ZeroCut sizes = parameters_of(stage);
    auto of_rank = [&](bool is_cut) { return is_cut ? sizes.cut() : sizes.all(); };
    MemoryByKind memory;
    bool gathers = mesh_.zero == 3;  // for each pass, what it reads next
    memory.weights =
        kFull * of_rank(cuts_parameters()) + kLow * (gathers ? sizes.all() - sizes.divisible() : sizes.all());
    memory.optimizer = 2 * kFull * of_rank(mesh_.zero >= 1);
    if (accumulates()) memory.gradients = kFull * (of_rank(mesh_.zero >= 2) + shared(stage));
    memory.activations = blocks * activation_bytes(stage);
    memory.buffers = 2 * block_.stream_bytes() + kBesideActivations;
    // The classifier gives its weight's gradient while all activations are there.
    if (stage + 1 == size_t(mesh_.pipe)) memory.buffers += block_.logits_bytes() + kFull * table_.all();
    if (gathers) memory.buffers += 2 * bucket_bytes() + kLow * table_.divisible();
    // Keys and values of all context ranks, and their gradients.
    if (mesh_.context > 1)
      memory.buffers += 2 * 2 * block_.stream_bytes() * double(mesh_.context) / double(mesh_.tensor);
    // A stage's activations are no intermediate values, so gradients that are sent cannot take their place.
    if (sends_of_each_run() && mesh_.pipe > 1) memory.buffers += kLow * blocks * of_block_.all();
    double added = adds_once() && mesh_.data > 1 ? of_rank(mesh_.zero == 1) : 0;
    // Of what context cuts, too, a rank takes its part first.
    if (added > 0 && mesh_.zero == 1 && mesh_.context > 1)
      added += (sizes.by_context + sizes.by_both) / sizes.context_ranks;
    // In a pipeline activations are states, else the update has their memory, too.
    double theirs = mesh_.pipe > 1 ? 0 : memory.activations;
    memory.buffers = std::max(memory.buffers, kFull * (added + shared(stage)) - theirs);
    if (accumulates()) return memory;
    // Of one micro-batch gradients take the place of activations that are done with.
    bool is_cut = mesh_.zero >= 1;
    double gradients = kLow * of_rank(is_cut) + kFull * (is_cut ? table_.cut() : table_.all());
    memory.gradients = std::max(0.0, gradients - memory.activations);
    return memory;
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
    double times = stage_blocks_[fullest_] * in_flight(fullest_),
           cast = gathers_once(mesh_) ? of_block_.whole : of_block_.all();
    for (const KeptValue& value : block_.kept()) {
      if (value.stays || waits_with_weights(fullest_)) continue;
      if (value.again.matmul > 0 && mesh_.zero < 3 && mesh_.pipe == 1 && cast > 0 && !casts_again_) {
        casts_again_ = true;
        drop(memory_.weights, kLow * blocks_ * cast, {.memory_bound = block_.memory_seconds((kFull + kLow) * cast)});
      }
      drop(memory_.activations, value.bytes * times, value.again);
    }
    ZeroCut sizes = parameters_of(fullest_);
    double fixed = kFull * (cuts_parameters() ? sizes.cut() : sizes.all()) + memory_.optimizer + memory_.gradients;
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
    if (casts_once()) step.memory_bound += casts_seconds(parameters(gathers_once(mesh_)));
    step.memory_bound += context_work(blocks);
    time_.matmul = step.matmul;
    time_.attention = step.attention;
    time_.memory_bound = step.memory_bound;
    time_.recomputed = runs * blocks * again_.seconds();
    add_communication(blocks, forward.seconds());
    if (mesh_.pipe > 1) {
      // The slowest stage waits for the others' first micro-batch and last one.
      double others = (double(model_.layers) - blocks) * block + (last_is_slowest ? 0 : head.seconds());
      double beside =
          of_each_run() + context_work(blocks) / runs + (time_.tensor + time_.context + exposed_gradients_) / runs;
      time_.bubble = (others + (pipe_ - 1) * beside) * waiting_share(block);
    }
  }

  // Of a pass through the other stages, what nothing fills. With zero_bubble that is all but the products for weights,
  // less those that are left, of one micro-batch fewer than there are.
  double waiting_share(double block) const {
    if (mesh_.schedule != "zero_bubble") return 1 / double(mesh_.interleave);
    double left = std::min(1.0, double(layout_.micro_batches - 1) / (pipe_ - 1));
    return 1 - (1 + left) * block_.backward_parts().weights() / block;
  }

  // What attention takes more where its time is cut.
  double context_work(double blocks) const {
    if (mesh_.context == 1) return 0;
    return double(layout_.micro_batches) * blocks * block_.context_seconds(cluster_.gpu.compute_capability.value);
  }

  // Of several runs a program before them casts parameters to bf16, unless these may have to be cast again in each.
  bool casts_once() const { return mesh_.zero < 3 && accumulates() && layout_.budget_gib == 0; }
  double casts_seconds(double count) const { return block_.memory_seconds((kFull + kLow) * count); }

  // Casts of parameters to bf16, and sums of gradients that come from other ranks.
  double of_each_run() const {
    double W = parameters(), seconds = 0;
    // The programs of a stage cast for themselves, what is gathered for each pass is cast for it, and what is gathered
    // once a step is so, too.
    if (mesh_.pipe > 1) W *= 2;
    if (mesh_.zero == 3) W = 2 * parameters(true) - stage().whole;
    if (gathers_once(mesh_)) W = accumulates() ? stage().whole : parameters(true);
    if (!casts_once()) seconds += casts_seconds(W);
    if (!accumulates()) return seconds;
    // Products for matrices add to what is there; biases and norms have one kernel that does, and the table one.
    seconds += 2 * target_.launch_seconds;
    double bytes = sends_of_each_run() ? (2 * kFull + kLow) * parameters(mesh_.zero >= 2) : 3 * kFull * table_.all();
    return seconds + block_.memory_seconds(bytes);
  }

  // AdamW reads and writes a parameter and two moments, and reads the gradient, which the norm has read before.
  double update_seconds() const {
    double gradient = accumulates() ? kFull : kLow;
    return block_.memory_seconds((6 * kFull + 2 * gradient) * parameters(mesh_.zero >= 1));
  }

  void add_communication(double blocks, double forward_of_block) {
    auto runs = double(layout_.micro_batches);
    BlockLinks links = block_links();
    BackwardTimeline backward = backward_timeline(int64_t(blocks), block_.backward_parts(), again_.seconds(), links);
    // In the forward pass nothing hides keys and values, nor the stream, which is cut between the blocks: attention and
    // MLP gather and scatter it, and embedding and classifier do so, too, in both passes.
    time_.context = runs * (blocks * links.keys + backward.keys);
    time_.tensor = runs * ((4 * blocks + 4) * links.stream + backward.stream);
    time_.memory_bound += runs * backward.slowed;
    add_data(runs, blocks * forward_of_block, backward.gradients);
    if (mesh_.pipe > 1) {
      Link link = axis_link(cluster_, mesh_.tensor * mesh_.context * mesh_.data, mesh_.pipe);
      time_.pipe = 2 * (pipe_ - 1) * send_seconds(link, block_.input_bytes());
    }
  }

  // In each micro-batch.
  double gradient_seconds(const ZeroCut& sizes, double bytes) const {
    return axes_.added_over_context(sizes, bytes, scatters()) +
           (adds_once() ? 0 : axes_.added_over_data(sizes, bytes, scatters()));
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
  bool scatters() const { return mesh_.zero >= 2 || (mesh_.zero == 1 && !accumulates()); }

  // Over two axes one has a collective for each tensor: context where gradients are scattered, and else data.
  MatrixLinks matrix_links(const MatrixSize& matrix) const {
    ZeroCut cut;
    cut.add(matrix, mesh_);
    bool scatters_context = scatters() && cut.by_context + cut.by_both > 0;
    bool by_data = mesh_.data > 1 && !adds_once();
    double over_context = mesh_.context > 1 ? axes_.added_over_context(cut, kLow, scatters()) : 0;
    double over_data = by_data ? axes_.added_over_data(cut, kLow, scatters()) : 0, bytes = kLow * matrix.elements();
    MatrixLinks links{.in_bucket = by_data ? over_data : over_context,
                      .is_scattered = scatters() && (by_data ? cut.by_data + cut.by_both > 0 : scatters_context)};
    if (by_data && mesh_.context > 1 && scatters()) {
      links.alone = over_context + axes_.context_latency();
      if (scatters_context) bytes /= double(mesh_.context);
    } else if (by_data && mesh_.context > 1) {
      links.alone = over_data + axes_.data_latency();
      links.in_bucket = over_context;
    }
    links.share = mesh_.bucket_mib > 0 ? bytes / double(mesh_.bucket_mib << 20) : 1;
    if (mesh_.zero == 3)
      links.parameters = axes_.gathered(cut, kLow) +
                         axes_.gather_latencies(cut, std::min(1.0, kLow * matrix.elements() / bucket_bytes()));
    return links;
  }

  BlockLinks block_links() const {
    BlockLinks links;
    bool by_data = mesh_.data > 1 && !adds_once(), by_context = mesh_.context > 1;
    links.stream = axes_.tensor_gather(block_.stream_bytes());
    if (by_context) {
      double bytes = 2 * block_.stream_bytes() * double(mesh_.context) / double(mesh_.tensor);
      links.keys = axes_.context_gather(bytes);
      links.sends_keys_early = block_.has_context_kernel(cluster_.gpu.compute_capability.value);
    }
    std::vector<MatrixSize> matrices = block_matrices(model_, mesh_.tensor);
    std::reverse(matrices.begin(), matrices.end());
    std::transform(matrices.begin(), matrices.end(), links.matrices.begin(),
                   [&](const MatrixSize& matrix) { return matrix_links(matrix); });
    double data = axes_.data_latency(), context = axes_.context_latency();
    links.bucket_latency = by_data && (!by_context || scatters()) ? data : context;
    if (by_data && by_context) {
      double alone = scatters() ? context : data;
      links.norm_vectors = (model_.bias ? 3 : 1) * alone;
      links.bias_vector = model_.bias ? alone : 0;
    } else if (mesh_.tensor > 1 && (by_data || by_context)) {
      links.norm_vectors = (model_.bias ? 3 : 1) * links.bucket_latency;  // those of tensor stand between them
    }
    links.units = target_.link_units;
    return links;
  }

  void add_data(double runs, double forward, double exposed) {
    if (mesh_.data * mesh_.context == 1) return;
    ZeroCut of_blocks = blocks_ * of_block_;
    double table = gradient_seconds(table_, kFull);
    exposed_gradients_ = runs * exposed;
    time_.data += runs * (exposed + table);  // the table's gradient comes last
    if (adds_once())
      time_.data +=
          axes_.added_over_data(stage(), kFull, mesh_.zero == 1) + collectives(kFull).filled * axes_.data_latency();
    if (mesh_.zero == 3) return gather_parameters(of_blocks, runs, forward);
    if (gathers_once(mesh_)) return gather_parameters(of_blocks, 1, accumulates() ? 0 : forward);
    ZeroCut all = stage();
    auto [each, filled] = collectives(kFull);
    double latencies = axes_.gather_latencies(of_block_, mesh_.data > 1 && mesh_.context > 1 ? each : filled);
    double update = axes_.gathered(all, kFull) + latencies;
    if (mesh_.zero >= 1) time_.data += std::max(0.0, update - update_seconds());
  }

  // Once for each pass, or for both, a bucket ahead of what reads them, but for the table, which is what a step begins
  // with. Of what two axes cut, a bucket of the outer one stands before the inner one's, which is waited for; over
  // tensor ranks it stands before the stream, which is waited for twice in a block, so that half of what runs between
  // hides a bucket.
  void gather_parameters(const ZeroCut& of_blocks, double runs, double forward) {
    double inner = axes_.gathered_over_context(of_blocks, kLow), outer = axes_.gathered_over_data(of_blocks, kLow);
    double buckets = collectives(kLow).filled, latencies = axes_.gather_latencies(of_block_, buckets);
    time_.data += runs * (axes_.gathered(table_, kLow));
    double hides = mesh_.tensor > 1 ? std::min(1.0, buckets / blocks_) * forward / 4 : forward;
    double exposed = mesh_.context > 1 && mesh_.data > 1 ? outer + std::max(0.0, inner + latencies - hides)
                                                         : std::max(0.0, inner + outer + latencies - hides);
    time_.data += runs * exposed;
    time_.memory_bound += runs * target_.link_units * (inner + outer + latencies - exposed);
  }

  const ModelConfig& model_;
  ParallelLayout layout_;
  const MeshConfig& mesh_;
  const ClusterConfig& cluster_;
  Target target_;
  BlockWork block_;
  AxisSeconds axes_;
  double pipe_;
  ZeroCut of_block_, table_, positions_;
  std::vector<double> stage_blocks_;
  double blocks_ = 0, last_blocks_ = 0;  // of the largest stage but the last, and of the last
  size_t fullest_ = 0;                   // stage
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
