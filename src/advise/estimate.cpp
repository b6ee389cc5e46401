#include "advise/estimate.h"

#include "advise/block_work.h"
#include "advise/layout_links.h"
#include "advise/links.h"
#include "advise/pipe_stages.h"
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
        links_(model, layout_, cluster, target_, block_), kept_(block_.kept()), pipe_(double(mesh_.pipe)) {
    for (const MatrixSize& matrix : block_matrices(model, mesh_.tensor)) of_block_.add(matrix, mesh_);
    for (const MatrixSize& vector : block_vectors(model, mesh_.tensor)) of_block_.add(vector, mesh_);
    table_.add({int64_t(block_.padded_vocab()) / mesh_.tensor, model.width}, mesh_);
    positions_.add({model.context, model.width}, mesh_);
    again_.resize(size_t(mesh_.pipe));
    divide_blocks();
    for (size_t stage = 0; stage < num_stages(); ++stage) in_flight_.push_back(blocks_in_flight(stage));
  }

  Estimate run(double most_seconds) {
    add_memory();
    fit();
    bool is_wanted = std::isinf(most_seconds) || memory_.total() <= usable_bytes(cluster_, mesh_);
    if (is_wanted) add_time(most_seconds);
    return {layout_, memory_, time_};
  }

 private:
  void divide_blocks() {
    if (mesh_.pipe == 1) return chunk_blocks_.assign(1, model_.layers);
    auto seconds = [&](bool is_first, bool is_last) { return time_of({1, is_first, is_last}).kinds.total(); };
    double block = seconds(false, false);
    chunk_blocks_ = blocks_of_chunks(model_.layers, mesh_.pipe * mesh_.interleave,
                                     {block, seconds(true, false) - block, seconds(false, true) - block});
  }
  double blocks_of(size_t stage) const {
    double blocks = 0;
    for (size_t chunk = stage; chunk < chunk_blocks_.size(); chunk += size_t(mesh_.pipe))
      blocks += double(chunk_blocks_[chunk]);
    return blocks;
  }
  const AxisSeconds& axes() const { return links_.axes(); }
  size_t num_stages() const { return size_t(mesh_.pipe); }

  double tables() const { return model_.tie_weights || mesh_.pipe > 1 ? 1 : 2; }
  // Of a table on two stages each has the other's gradient, too.
  double shared(size_t stage) const {
    bool has_table = stage == 0 || stage + 1 == num_stages();
    return mesh_.pipe > 1 && model_.tie_weights && has_table ? table_.all() : 0;
  }
  ZeroCut stage() const { return most_blocks() * of_block_ + tables() * table_ + positions_; }
  // Of all parameters of a stage, those of a rank, whole or as ZeRO cuts them.
  double parameters(bool is_cut = false) const { return is_cut ? stage().cut() : stage().all(); }

  ZeroCut parameters_of(size_t stage) const {
    bool is_first = stage == 0, is_last = stage + 1 == size_t(mesh_.pipe);
    return blocks_of(stage) * of_block_ + (mesh_.pipe == 1 ? tables() : double(is_first || is_last)) * table_ +
           double(is_first) * positions_;
  }
  // Blocks beside one another, with what is before and behind them.
  struct Chunk {
    double blocks = 0;
    bool is_first = false, is_last = false;
    Work again = {};  // in a block
    bool computes_weights_later = false;

    double ends() const { return double(is_first) + double(is_last); }
    bool is_alike(const Chunk& other) const {
      return blocks == other.blocks && ends() == 0 && other.ends() == 0 && again.seconds() == other.again.seconds() &&
             computes_weights_later == other.computes_weights_later;
    }
  };
  Chunk chunk_of(size_t chunk) const {
    size_t stage = chunk % num_stages();
    return {double(chunk_blocks_[chunk]), chunk == 0, chunk + 1 == chunk_blocks_.size(), again_[stage],
            waits_with_weights(stage)};
  }
  ZeroCut parameters_of(const Chunk& chunk) const {
    double tables_of_chunk = mesh_.pipe == 1 ? tables() : double(chunk.is_first || chunk.is_last);
    return chunk.blocks * of_block_ + tables_of_chunk * table_ + double(chunk.is_first) * positions_;
  }
  bool cuts_parameters() const { return mesh_.zero == 3 || gathers_once(mesh_); }
  double most_blocks() const {
    double most = 0;
    for (size_t stage = 0; stage < num_stages(); ++stage) most = std::max(most, blocks_of(stage));
    return most;
  }

  // With zero_bubble gradients of weights are computed later, but for the first stage's: so long their operands stay.
  bool waits_with_weights(size_t stage) const { return mesh_.pipe > 1 && mesh_.schedule == "zero_bubble" && stage > 0; }
  // Blocks of a stage, each as often as there are micro-batches of which it has what its backward pass reads.
  double blocks_in_flight(size_t stage) const {
    std::vector<int64_t> most = micro_batches_in_flight(mesh_, layout_.micro_batches, int64_t(stage));
    double blocks = 0;
    for (size_t i = 0; i < most.size(); ++i)
      blocks += double(chunk_blocks_[stage + i * num_stages()]) * double(most[i]);
    return blocks;
  }
  // Over tensor ranks the product for the classifier's weight is one by itself, and waits, too: its operands.
  double waiting_classifier_bytes(size_t stage) const {
    return mesh_.tensor > 1 && stage + 1 == num_stages() ? block_.stream_bytes() + block_.logits_bytes() : 0;
  }
  double activation_bytes(size_t stage) const {
    double most = in_flight_[stage], bytes = most * block_.input_bytes(), runs = double(layout_.micro_batches);
    double waiting = blocks_of(stage) * std::min(pipe_, runs);
    for (const KeptValue& value : kept_)
      bytes += value.bytes * (value.is_for_weights && waits_with_weights(stage) ? waiting : most);
    if (waits_with_weights(stage))
      bytes += (blocks_of(stage) * block_.gradient_bytes() + waiting_classifier_bytes(stage)) *
               std::min(double(stage) + 1, runs);
    return bytes;
  }

  // Of the fullest stage.
  void add_memory() {
    for (size_t stage = 0; stage < num_stages(); ++stage) {
      MemoryByKind memory = memory_of(stage);
      if (stage > 0 && memory.total() <= memory_.total()) continue;
      memory_ = memory;
      fullest_ = stage;
    }
  }

  MemoryByKind memory_of(size_t stage) const {
    double blocks = blocks_of(stage);
    ZeroCut sizes = parameters_of(stage);
    auto of_rank = [&](bool is_cut) { return is_cut ? sizes.cut() : sizes.all(); };
    MemoryByKind memory;
    bool gathers = mesh_.zero == 3;  // for each pass, what it reads next
    memory.weights =
        kFull * of_rank(cuts_parameters()) + kLow * (gathers ? sizes.all() - sizes.divisible() : sizes.all());
    memory.optimizer = 2 * kFull * of_rank(mesh_.zero >= 1);
    if (links_.accumulates()) memory.gradients = kFull * (of_rank(mesh_.zero >= 2) + shared(stage));
    memory.activations = activation_bytes(stage);
    memory.buffers = 2 * block_.stream_bytes() + kBesideActivations;
    // The classifier gives its weight's gradient while all activations are there.
    if (stage + 1 == size_t(mesh_.pipe)) memory.buffers += block_.logits_bytes() + kFull * table_.all();
    if (gathers) memory.buffers += 2 * links_.bucket_bytes() + kLow * table_.divisible();
    // Keys and values of all context ranks, and their gradients.
    if (mesh_.context > 1)
      memory.buffers += 2 * 2 * block_.stream_bytes() * double(mesh_.context) / double(mesh_.tensor);
    // A stage's activations are no intermediate values, so gradients that are sent cannot take their place.
    if (links_.sends_of_each_run() && mesh_.pipe > 1) memory.buffers += kLow * blocks * of_block_.all();
    double added = links_.adds_once() && mesh_.data > 1 ? of_rank(mesh_.zero == 1) : 0;
    // Of what context cuts, too, a rank takes its part first.
    if (added > 0 && mesh_.zero == 1 && mesh_.context > 1)
      added += (sizes.by_context + sizes.by_both) / sizes.context_ranks;
    // In a pipeline activations are states, else the update has their memory, too.
    double theirs = mesh_.pipe > 1 ? 0 : memory.activations;
    memory.buffers = std::max(memory.buffers, kFull * (added + shared(stage)) - theirs);
    memory.buffers += scratch_bytes();
    if (links_.accumulates()) return memory;
    // Of one micro-batch gradients take the place of activations that are done with.
    bool is_cut = mesh_.zero >= 1;
    double gradients = kLow * of_rank(is_cut) + kFull * (is_cut ? table_.cut() : table_.all());
    memory.gradients = std::max(0.0, gradients - memory.activations);
    return memory;
  }

  double largest_matrix() const { return 4 * double(model_.width) * double(model_.width) / double(mesh_.tensor); }
  // Each chunk's programs have their own.
  double scratch_bytes() const {
    return double(mesh_.interleave) * block_.scratch_bytes(cluster_.gpu.compute_capability.value);
  }

  // What is too much is computed again, on each stage what it has too much of. All have the budget of the fullest one.
  void fit() {
    double available = kUsableShare * usable_bytes(cluster_, mesh_);
    if (memory_.total() <= available) return;
    double budget = available - fixed_bytes(fullest_, memory_);
    layout_.budget_gib = std::max(0.01, std::floor(budget / kGiB * 100) / 100);
    for (size_t stage = 0; stage < num_stages(); ++stage) {
      MemoryByKind memory = memory_of(stage);
      drop(stage, memory, memory.total() - fixed_bytes(stage, memory) - budget);
      if (stage == fullest_) memory_ = memory;
    }
  }
  double fixed_bytes(size_t stage, const MemoryByKind& memory) const {
    ZeroCut sizes = parameters_of(stage);
    // What is gathered once a step is a state, not a value of a program.
    double gathered = gathers_once(mesh_) && links_.accumulates() ? kLow * sizes.divisible() : 0;
    return kFull * (cuts_parameters() ? sizes.cut() : sizes.all()) + gathered + memory.optimizer + memory.gradients +
           scratch_bytes();
  }

  // The cheapest values for their bytes are computed again, first where most is free. Parameters in bf16 are among
  // them, if they are not gathered: they are cast anew for the backward pass.
  void drop(size_t stage, MemoryByKind& memory, double missing) {
    if (missing <= 0) return;
    auto drop_share = [&](double& from, double bytes, const Work& again) {
      double share = std::clamp(missing / bytes, 0.0, 1.0);
      from -= share * bytes;
      missing -= share * bytes;
      again_[stage] += share * again;
    };
    // When the last block has been computed again, its largest gradient is whole beside what is gathered.
    if (mesh_.zero == 3) memory.buffers += kLow * largest_matrix(), missing += kLow * largest_matrix();
    bool casts_again = false;
    double cast = cuts_parameters() ? of_block_.whole : of_block_.all();
    for (const KeptValue& value : kept_) {
      if (value.stays || waits_with_weights(stage)) continue;
      bool is_dear = value.again.matmul + value.again.attention > 0;
      if (is_dear && mesh_.pipe == 1 && cast > 0 && !casts_again) {
        casts_again = true;
        drop_share(memory.weights, kLow * blocks_of(stage) * cast,
                   {.memory_bound = block_.memory_seconds((kFull + kLow) * cast)});
      }
      drop_share(memory.activations, value.bytes * in_flight_[stage], value.again);
      if (missing <= 0) break;
      // The block that is worked on has it all the same.
      memory.buffers += value.bytes;
      missing += value.bytes;
    }
  }

  // Of one micro-batch through one chunk.
  struct ChunkTime {
    TimeByKind kinds;
    ChunkSeconds seconds;
  };
  ChunkTime time_of(const Chunk& chunk) const {
    auto [blocks, is_first, is_last, again, computes_weights_later] = chunk;
    BlockLinks links = links_.backward();
    links.computes_weights_later = computes_weights_later;
    BackwardParts parts = block_.backward_parts();
    BackwardTimeline backward = backward_timeline(int64_t(blocks), parts, again, links);
    double ends = chunk.ends(), attention = context_work(blocks);
    Work forward = blocks * block_.forward(), ahead = 0.5 * double(is_first) * block_.embedding();
    ZeroCut sizes = parameters_of(chunk);
    double casts = casts_of_each_run(sizes), adds = adds_of_each_run(sizes, ends > 0);
    ChunkTime time;
    // In the forward pass nothing hides keys and values, nor the stream, which is cut between the blocks: attention and
    // MLP gather and scatter it, and embedding and classifier do so, too, in both passes.
    double sent = blocks * links.keys + (4 * blocks + ends) * links.stream;
    time.seconds.forward = forward.seconds() + ahead.seconds() + attention / 3 + casts / 2 + sent;
    Work step = forward;
    step += blocks * block_.backward();
    step += double(is_first) * block_.embedding();
    step += double(is_last) * block_.classifier();
    time.kinds.matmul = step.matmul;
    time.kinds.attention = step.attention;
    time.kinds.memory_bound = step.memory_bound + attention + casts + adds + backward.slowed;
    time.kinds.recomputed = blocks * again.seconds();
    time.kinds.context = blocks * links.keys + backward.keys;
    time.kinds.tensor = (4 * blocks + 2 * ends) * links.stream + backward.stream;
    time.kinds.data =
        backward.gradients + (ends > 0 ? links_.gradient_seconds(table_, kFull) : 0);  // the table's comes last
    time.seconds.backward = time.kinds.total() - time.seconds.forward;
    time.seconds.backward_weight = blocks * parts.weights();
    time.seconds.backward_input = time.seconds.backward - time.seconds.backward_weight;
    return time;
  }

  // Of the slowest stage, and how long it waits for the others.
  void add_time(double most_seconds) {
    auto runs = double(layout_.micro_batches);
    std::vector<ChunkSeconds> seconds;
    std::vector<TimeByKind> stages(num_stages());
    Chunk known;
    ChunkTime time;
    for (size_t chunk = 0; chunk < chunk_blocks_.size(); ++chunk) {
      Chunk next = chunk_of(chunk);
      if (chunk == 0 || !next.is_alike(known)) time = time_of(next);
      known = next;
      seconds.push_back(time.seconds);
      add(stages[chunk % num_stages()], runs, time.kinds);
    }
    time_ = *std::max_element(stages.begin(), stages.end(),
                              [](const TimeByKind& a, const TimeByKind& b) { return a.total() < b.total(); });
    if (mesh_.pipe > 1) add_waiting(seconds, most_seconds);
    time_.memory_bound += update_seconds();
    if (casts_once()) time_.memory_bound += casts_seconds(parameters(gathers_once(mesh_)));
    add_data(runs, most_blocks() * block_.forward().seconds());
  }
  static void add(TimeByKind& sum, double times, const TimeByKind& one) {
    for (double TimeByKind::*kind :
         {&TimeByKind::matmul, &TimeByKind::attention, &TimeByKind::memory_bound, &TimeByKind::recomputed,
          &TimeByKind::data, &TimeByKind::context, &TimeByKind::tensor})
      sum.*kind += times * one.*kind;
  }

  void add_waiting(const std::vector<ChunkSeconds>& chunks, double most_seconds) {
    Link link = axis_link(cluster_, mesh_.tensor * mesh_.context * mesh_.data, mesh_.pipe);
    double transfer = send_seconds(link, block_.input_bytes());
    double seconds = least_pipe_seconds(mesh_, layout_.micro_batches, chunks);
    if (seconds <= most_seconds) seconds = pipe_seconds(mesh_, layout_.micro_batches, chunks, transfer);
    double waits = std::max(0.0, seconds - time_.total());
    time_.pipe = std::min(waits, 2 * (pipe_ - 1) * transfer);
    time_.bubble = waits - time_.pipe;
  }

  // What attention takes more where its time is cut.
  double context_work(double blocks) const {
    if (mesh_.context == 1) return 0;
    return blocks * block_.context_seconds(cluster_.gpu.compute_capability.value);
  }

  // Of several runs a program before them casts parameters to bf16, unless these may have to be cast again in each.
  bool casts_once() const { return mesh_.zero < 3 && links_.accumulates() && layout_.budget_gib == 0; }
  double casts_seconds(double count) const { return block_.memory_seconds((kFull + kLow) * count); }

  // Casts of parameters to bf16.
  double casts_of_each_run(const ZeroCut& sizes) const {
    if (casts_once()) return 0;
    // The programs of a stage cast for themselves, what is gathered for each pass is cast for it, and what is gathered
    // once a step is so, too.
    double W = sizes.all();
    if (mesh_.pipe > 1) W *= 2;
    if (mesh_.zero == 3) W = 2 * sizes.cut() - sizes.whole;
    if (gathers_once(mesh_)) W = links_.accumulates() ? sizes.whole : sizes.cut();
    return casts_seconds(W);
  }

  // Sums of gradients that come from other ranks.
  double adds_of_each_run(const ZeroCut& sizes, bool has_table) const {
    if (!links_.accumulates()) return 0;
    // Products for matrices add to what is there; biases and norms have one kernel that does, and the table one.
    double seconds = 2 * target_.launch_seconds, table = has_table ? table_.all() : 0;
    double bytes = links_.sends_of_each_run() ? (2 * kFull + kLow) * (mesh_.zero >= 2 ? sizes.cut() : sizes.all())
                                              : 3 * kFull * table;
    return seconds + block_.memory_seconds(bytes);
  }

  // AdamW reads and writes a parameter and two moments, and reads the gradient, which the norm has read before.
  double update_seconds() const {
    double gradient = links_.accumulates() ? kFull : kLow;
    return block_.memory_seconds((6 * kFull + 2 * gradient) * parameters(mesh_.zero >= 1));
  }

  // But for what each micro-batch waits for.
  void add_data(double runs, double forward) {
    if (mesh_.data * mesh_.context == 1) return;
    ZeroCut of_blocks = most_blocks() * of_block_;
    if (links_.adds_once())
      time_.data += axes().added_over_data(stage(), kFull, mesh_.zero == 1) +
                    most_blocks() * links_.collectives(kFull).filled * axes().data_latency();
    if (mesh_.zero == 3) return gather_parameters(of_blocks, runs, forward);
    if (gathers_once(mesh_))
      return links_.accumulates() ? gather_alone(of_blocks) : gather_parameters(of_blocks, 1, forward);
    ZeroCut all = stage();
    auto [each, filled] = links_.collectives(kFull);
    double latencies =
        most_blocks() * axes().gather_latencies(of_block_, mesh_.data > 1 && mesh_.context > 1 ? each : filled);
    double update = axes().gathered(all, kFull) + latencies;
    if (mesh_.zero >= 1) time_.data += std::max(0.0, update - update_seconds());
  }

  // By a program before all micro-batches.
  void gather_alone(const ZeroCut& of_blocks) {
    time_.data += axes().gathered(table_, kLow) + axes().gathered(of_blocks, kLow) +
                  axes().gather_latencies(of_block_, most_blocks() * links_.collectives(kLow).filled);
  }

  // Once for each pass, or for both, a bucket ahead of what reads them, but for the table, which is what a step begins
  // with. Of what two axes cut, a bucket of the outer one stands before the inner one's, which is waited for.
  void gather_parameters(const ZeroCut& of_blocks, double runs, double forward) {
    time_.data += runs * axes().gathered(table_, kLow);
    if (mesh_.context == 1 || mesh_.data == 1) {
      ForwardTimeline timeline = forward_timeline(int64_t(most_blocks()), block_.forward_parts(), links_.forward());
      time_.data += runs * timeline.exposed;
      time_.memory_bound += runs * timeline.slowed;
      return;
    }
    double inner = axes().gathered_over_context(of_blocks, kLow), outer = axes().gathered_over_data(of_blocks, kLow);
    double buckets = most_blocks() * links_.collectives(kLow).filled,
           latencies = axes().gather_latencies(of_block_, buckets);
    double hides = mesh_.tensor > 1 ? std::min(1.0, buckets / most_blocks()) * forward / 4 : forward;
    double exposed = outer + std::max(0.0, inner + latencies - hides);
    time_.data += runs * exposed;
    time_.memory_bound += runs * target_.link_units * (inner + outer + latencies - exposed);
  }

  const ModelConfig& model_;
  ParallelLayout layout_;
  const MeshConfig& mesh_;
  const ClusterConfig& cluster_;
  Target target_;
  BlockWork block_;
  LayoutLinks links_;
  std::vector<KeptValue> kept_;
  double pipe_;
  ZeroCut of_block_, table_, positions_;
  std::vector<int64_t> chunk_blocks_;
  std::vector<double> in_flight_;  // blocks, by stage
  size_t fullest_ = 0;             // stage
  std::vector<Work> again_;        // by stage, in a block, for each micro-batch
  MemoryByKind memory_;
  TimeByKind time_;
};

}  // namespace

double usable_bytes(const ClusterConfig& cluster, const MeshConfig& mesh) {
  bool is_alone = mesh.pipe * mesh.data * mesh.context * mesh.tensor == 1;
  return cluster.gpu.memory_bytes.value - (is_alone ? 0 : kCommunicatorBytes);
}

double least_block_seconds(const ModelConfig& model, const ParallelLayout& layout, const ClusterConfig& cluster) {
  Target target = gpu_target(gpu_rates(cluster.gpu));
  BlockWork block(model, layout, target);
  BlockLinks links = LayoutLinks(model, layout, cluster, target, block).backward();
  double context = layout.mesh.context > 1 ? block.context_seconds(cluster.gpu.compute_capability.value) : 0;
  return block.forward().seconds() + block.backward().seconds() + context + links.keys + 4 * links.stream;
}

Estimate estimate(const ModelConfig& model, const ParallelLayout& layout, const ClusterConfig& cluster,
                  double most_seconds) {
  return Estimator(model, layout, cluster).run(most_seconds);
}

}  // namespace tokamak
