#include "advise/megatron.h"

#include "advise/flops.h"
#include "advise/links.h"
#include "advise/tiles.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tokamak {
namespace {

constexpr MegatronRow kMegatronRows[] = {
    {1.7, 24, 2304, 24, 1, 1, 32, 512, 137, true},    {3.6, 32, 3072, 30, 2, 1, 64, 512, 138},
    {7.5, 32, 4096, 36, 4, 1, 128, 512, 142},         {18.4, 48, 6144, 40, 8, 1, 256, 1024, 135},
    {39.1, 64, 8192, 48, 8, 2, 512, 1536, 138},       {76.1, 80, 10240, 60, 8, 4, 1024, 1792, 140},
    {145.6, 96, 12288, 80, 8, 8, 1536, 2304, 148},    {310.1, 128, 16384, 96, 8, 16, 1920, 2160, 155},
    {529.6, 128, 20480, 105, 8, 35, 2520, 2520, 163}, {1008.0, 160, 25600, 128, 8, 64, 3072, 3072, 163, true},
};
// Calibrated on the first and the last row: what is reached of the peak of matrix products, beside tiles and waves, and
// of the memory's bandwidth.
constexpr double kMatmulShare = 0.69, kMemoryShare = 0.74;

constexpr double kHalf = 2;  // bytes of fp16

// One layout of a row. Seconds are of a micro-batch on one GPU.
class Model {
 public:
  Model(const MegatronRow& row, const ClusterConfig& cluster, int64_t micro_batch)
      : row_(row), cluster_(cluster), b_(double(micro_batch)), t_(double(row.tensor)), h_(double(row.width)),
        s_(double(row.context)), blocks_again_(row.again == Again::kBlocks),
        scores_again_(row.again != Again::kNothing) {}

  double matmul(double m, double n, double k) const {
    auto units = int64_t(cluster_.gpu.multiprocessors.value);
    double slowdown = tile_use(std::llround(m), std::llround(n), units).slowdown(units);
    double arithmetic = 2 * m * n * k / (kMatmulShare * cluster_.gpu.half_flops.value) * slowdown;
    return std::max(arithmetic, memory(kHalf * (m * n + m * k + n * k)));
  }

  double memory(double bytes) const { return bytes / (kMemoryShare * cluster_.gpu.memory_bandwidth.value); }

  // Forward, maybe again, and the gradients of input and weight.
  double linear(double out, double in) const {
    return (1 + blocks_again_) * matmul(tokens(), out, in) + matmul(tokens(), in, out) + matmul(out, in, tokens());
  }

  double block_matmuls() const {
    return linear(3 * h_ / t_, h_) + linear(h_, h_ / t_) + linear(4 * h_ / t_, h_) + linear(h_, 4 * h_ / t_);
  }

  // Scores times keys or values: 2 forward, 2 again, 4 backward, over whole (s, s) matrices.
  double block_attention() const {
    double arithmetic = 2 * b_ * s_ * s_ * h_ / t_ / (kMatmulShare * cluster_.gpu.half_flops.value);
    return (6 + 2 * scores_again_) * std::max(arithmetic, memory(kHalf * (scores() + 2 * tokens() * h_ / t_)));
  }

  // Bytes an element of fused kernels. Scores: softmax reads and writes (4), and dropout, with its mask (5), maybe
  // twice; in the backward pass 6 and 5. Elements of the residual stream: two norms at 14 and two sums with dropout at
  // 15, and again at 4 and 7. Of what is divided over tensor ranks: GELU over 4 h at 10, again at 4, and 3 h that are
  // laid out anew at 8.
  double block_memory() const {
    double scores_bytes = (1 + scores_again_) * (4 + 5) + 6 + 5;
    double residual_bytes = 2 * (14 + 4 * blocks_again_) + 2 * (15 + 7 * blocks_again_);
    double divided_bytes = 4 * (10 + 4 * blocks_again_) + 3 * 8;
    if (row_.sequence) residual_bytes /= t_;
    return memory(scores_bytes * scores() + (residual_bytes + divided_bytes / t_) * tokens() * h_);
  }

  // Each of attention and MLP adds over tensor ranks forward, maybe again, and backward.
  double block_tensor() const {
    return (4 + 2 * blocks_again_) *
           all_reduce_seconds(axis_link(cluster_, 1, row_.tensor), row_.tensor, kHalf * tokens() * h_);
  }

  double head_matmuls() const { return 3 * matmul(tokens(), vocab() / t_, h_); }
  double head_memory() const { return memory(24 * tokens() * vocab() / t_); }  // of logits and loss, part in fp32

  // With the scatter/gather optimization each tensor rank sends a part of the residual stream.
  double send() const {
    if (row_.pipe == 1) return 0;
    return send_seconds(axis_link(cluster_, row_.tensor * row_.data(), row_.pipe), kHalf * tokens() * h_ / t_);
  }

  double parameters() const {
    double blocks = 12 * double(row_.layers) * h_ * h_ / double(row_.pipe);
    return (blocks + vocab() * h_) / t_;
  }

 private:
  double tokens() const { return b_ * s_; }
  double scores() const { return b_ * double(row_.heads) / t_ * s_ * s_; }
  double vocab() const { return double(row_.vocab); }

  const MegatronRow& row_;
  const ClusterConfig& cluster_;
  double b_, t_, h_, s_;
  int blocks_again_, scores_again_;
};

MegatronStep predict(const MegatronRow& row, const ClusterConfig& cluster, int64_t micro_batch, int64_t chunks) {
  Model model(row, cluster, micro_batch);
  auto runs = double(row.batch / row.data() / micro_batch);
  double blocks = double(row.layers) / double(row.pipe);
  MegatronStep step{.micro_batch = micro_batch, .chunks = chunks};
  // The last stage has the head, and the others wait for it.
  step.matmul = runs * (blocks * model.block_matmuls() + model.head_matmuls());
  step.attention = runs * blocks * model.block_attention();
  step.memory_bound = runs * (blocks * model.block_memory() + model.head_memory());
  step.tensor = runs * blocks * model.block_tensor();
  step.pipe = runs * 2 * double(chunks) * model.send();
  double stage =
      blocks * (model.block_matmuls() + model.block_attention() + model.block_memory() + model.block_tensor());
  if (row.pipe > 1) step.bubble = double(row.pipe - 1) / double(chunks) * (stage + 2 * double(chunks) * model.send());
  Link link = axis_link(cluster, row.tensor, row.data());
  step.data = all_reduce_seconds(link, row.data(), kHalf * model.parameters());
  step.optimizer =
      model.memory(36 * model.parameters());  // Adam reads and writes 16 bytes, and 4 of gradient and weight
  return step;
}

}  // namespace

std::span<const MegatronRow> megatron_rows() { return kMegatronRows; }

double MegatronStep::seconds() const {
  return matmul + attention + memory_bound + tensor + pipe + data + bubble + optimizer;
}

double MegatronStep::tera(const MegatronRow& row) const {
  ModelConfig model{.layers = row.layers, .heads = row.heads, .width = row.width};
  model.context = row.context;
  model.vocab = row.vocab;
  return step_flops(model, row.batch, true) / double(row.gpus) / seconds() * 1e-12;
}

double MegatronStep::error(const MegatronRow& row) const { return tera(row) / row.tera - 1; }

MegatronStep predict_megatron(const MegatronRow& row, const ClusterConfig& cluster) {
  MegatronStep best;
  int64_t sequences = row.batch / row.data(), blocks = row.layers / row.pipe;
  std::vector<int64_t> micro_batches = {1, 2, 4, 8};
  if (row.micro_batch > 0) micro_batches = {row.micro_batch};
  for (int64_t micro_batch : micro_batches)
    for (int64_t chunks = 1; chunks <= blocks; ++chunks) {
      if (row.chunks > 0 && chunks != row.chunks) continue;
      bool can_interleave = row.pipe > 1 && blocks % chunks == 0 && sequences / micro_batch % row.pipe == 0;
      if (sequences % micro_batch != 0 || (chunks > 1 && !can_interleave)) continue;
      MegatronStep step = predict(row, cluster, micro_batch, chunks);
      if (best.seconds() == 0 || step.seconds() < best.seconds()) best = step;
    }
  return best;
}

}  // namespace tokamak
