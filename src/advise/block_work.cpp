#include "advise/block_work.h"

#include "base/divide.h"
#include "cost/flop_rate.h"

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

constexpr double kLow = 2, kFull = 4;  // bytes of bf16 and f32

// On one tensor rank the classifier takes so many tokens at a time (passes/chunked_classifier.h).
constexpr double kChunk = 16384;

// Over context, what a block of one rank reads and writes beside attention, so many times the bf16 stream: keys and
// values before they are sent, their gradients when these are put to the queries', and the sums of all three.
constexpr double kContextCopies = 4 + 6 + 3;

// And where attention is computed in parts (ops/context_attention_parts.h), for each rank of the axis, as compiled
// plans of 2, 4 and 8 have it: copies of the stream, and kernels that make them.
constexpr double kPartCopies = 80, kPartKernels = 18;

// Whether there is one kernel for it: Hopper's, of heads of 64 or 128, whose tiles lie within the piece of a sequence
// that a rank has (backend/cuda/hopper_attention.cpp).
bool is_of_hopper(const ModelConfig& model, double compute_capability) {
  int64_t head_dim = model.width / model.heads;
  return compute_capability == 9.0 && (head_dim == 64 || head_dim == 128);
}
bool is_one_kernel(const ModelConfig& model, int64_t context, double compute_capability) {
  int64_t tile = model.width / model.heads == 64 ? 256 : 128;
  return is_of_hopper(model, compute_capability) && model.context % (2 * context * tile) == 0;
}

// Of the scores that cuDNN's gradient of attention writes, so many bytes at a time, if a sequence has no more
// (backend/cuda/cudnn_attention.cpp).
constexpr double kMostScores = 1 << 30;

}  // namespace

Work& Work::operator+=(const Work& other) {
  matmul += other.matmul;
  attention += other.attention;
  memory_bound += other.memory_bound;
  return *this;
}

Work operator*(double times, const Work& work) {
  return {times * work.matmul, times * work.attention, times * work.memory_bound};
}

BlockWork::BlockWork(const ModelConfig& model, const ParallelLayout& layout, const Target& target)
    : model_(model), target_(target), tokens_(double(layout.micro_batch * model.context) / double(layout.mesh.context)),
      width_(double(model.width)), tensor_(double(layout.mesh.tensor)), context_(layout.mesh.context) {
  int64_t tensor = layout.mesh.tensor, positions = model.context / layout.mesh.context;
  divided_ = layout.micro_batch % tensor == 0 || positions % tensor == 0 ? tensor_ : 1;
  stream_ = tensor > 1 ? kFull : kLow;  // terms are summed over tensor ranks before they are rounded
}

double BlockWork::memory_seconds(double bytes) const {
  return bytes / target_.memory_bandwidth + target_.launch_seconds;
}

// `functions`: evaluations an element of the result before it is stored.
double BlockWork::matmul(double m, double n, double k, double functions) const {
  double arithmetic = 2 * m * n * k / target_.bf16_flops + functions * m * n / target_.pointwise_flops;
  return std::max(arithmetic, kLow * (m * n + m * k + n * k) / target_.memory_bandwidth) + target_.launch_seconds;
}

// So many products, each of half of the scores.
double BlockWork::attention(double products, double bytes) const {
  auto positions = double(model_.context);
  double pairs = tokens_ * positions / 2, rate = attention_rate(target_, positions);
  return std::max(products * 2 * pairs * width_ / tensor_ / rate, bytes / target_.memory_bandwidth) +
         dropout(pairs * double(model_.heads) / tensor_) + target_.launch_seconds;
}

double BlockWork::dropout(double elements) const {
  return draw_seconds({.draws = model_.dropout > 0 ? elements : 0}, target_);
}

// A kernel that reads and writes so many bytes for each element of the stream.
double BlockWork::rows(double bytes) const { return memory_seconds(bytes * tokens_ * width_ / divided_); }
double BlockWork::dropout_of_stream() const { return dropout(tokens_ * width_ / divided_); }

ForwardParts BlockWork::forward_parts() const {
  double N = tokens_, C = width_, t = tensor_;
  return {.qkv = matmul(N, 3 * C / t, C, 1),
          .attention = attention(2, kLow * N * 4 * C / t),
          .projection = matmul(N, C, C / t, 1),
          .up = matmul(N, 4 * C / t, C, 2),
          .down = matmul(N, C, 4 * C / t, 1),
          .norm = rows(2 * stream_ + 2 * kLow) + dropout_of_stream()};  // a sum and the norm behind it, fused
}

Work BlockWork::forward() const {
  ForwardParts parts = forward_parts();
  return {.matmul = parts.qkv + parts.projection + parts.up + parts.down,
          .attention = parts.attention,
          .memory_bound = 2 * parts.norm};
}

BackwardParts BlockWork::backward_parts() const {
  double N = tokens_, C = width_, t = tensor_;
  return {.down_weight = matmul(4 * C / t, C, N),
          .down_input = matmul(N, 4 * C / t, C, 3),
          .up_weight = matmul(C, 4 * C / t, N),
          .up_input = matmul(N, C, 4 * C / t),
          .projection_weight = matmul(C / t, C, N),
          .projection_input = matmul(N, C / t, C),
          .qkv_weight = matmul(C, 3 * C / t, N),
          .qkv_input = matmul(N, C, 3 * C / t),
          .attention = attention(5, kLow * N * 8 * C / t),
          .norm = rows(tensor_ > 1 ? 3 * stream_ + 2 * kLow : 4 * kLow) + dropout_of_stream()};
}

Work BlockWork::backward() const {
  BackwardParts parts = backward_parts();
  return {.matmul = parts.matmul(), .attention = parts.attention, .memory_bound = 2 * parts.norm};
}

double BlockWork::input_bytes() const { return stream_ * tokens_ * width_ / divided_; }

double BlockWork::gradient_bytes() const { return kLow * tokens_ * width_ * (7 / tensor_ + 2); }

// Over tensor ranks the stream is a sum over them, and norms are gathered. Over context attention reads keys and values
// of all ranks, which would have to stay for it.
std::vector<KeptValue> BlockWork::kept() const {
  double N = tokens_, C = width_, t = tensor_;
  bool is_sent = tensor_ > 1;
  std::vector<KeptValue> values = {
      {kLow * N * 4 * C / t, {.memory_bound = memory_seconds(kLow * 8 * N * C / t)}, false, true},  // GELU
      {2 * kLow * N * C, {.memory_bound = 2 * rows(stream_ + kLow)}, is_sent, true},                // norms
      {input_bytes(), {.matmul = matmul(N, C, C / t, 1)}, is_sent},  // the stream between the halves
      {kLow * N * 4 * C / t, {.matmul = matmul(N, 4 * C / t, C)}},   // before GELU
      {kLow * N * 3 * C / t, {.matmul = matmul(N, 3 * C / t, C)}},   // queries, keys, values
      {kLow * N * C / t, {.attention = attention(2, 0)}, context_ > 1, true},
  };
  // Over context also keys and values by themselves, as they are sent.
  double keys = kLow * N * 2 * C / t;
  if (context_ > 1) values.push_back({.bytes = keys, .again = {.memory_bound = memory_seconds(2 * keys)}});
  std::stable_sort(values.begin(), values.end(), [](const KeptValue& a, const KeptValue& b) {
    return a.bytes * b.again.seconds() > b.bytes * a.again.seconds();
  });
  return values;
}

bool BlockWork::has_context_kernel(double compute_capability) const {
  return is_one_kernel(model_, context_, compute_capability);
}

double BlockWork::context_seconds(double compute_capability) const {
  double seconds = memory_seconds(kContextCopies * stream_bytes());
  if (has_context_kernel(compute_capability)) return seconds;
  return seconds + double(context_) *
                       (memory_seconds(kPartCopies * stream_bytes() / tensor_) + kPartKernels * target_.launch_seconds);
}

double BlockWork::scratch_bytes(double compute_capability) const {
  if (is_of_hopper(model_, compute_capability) || model_.dropout > 0) return 0;
  auto positions = double(model_.context), sequences = tokens_ * double(context_) / positions;
  if (context_ > 1) {  // in parts, the pairs of chunks as sequences
    positions /= 2 * double(context_);
    sequences *= double(context_);
  }
  double scores = double(model_.heads) / tensor_ * positions * positions * kLow;
  return scores * std::clamp(std::floor(kMostScores / scores), 1.0, sequences);
}

double BlockWork::padded_vocab() const { return double(round_up(model_.vocab, target_.vocab_multiple)); }

double BlockWork::logits_bytes() const {
  return kLow * (tensor_ > 1 ? tokens_ : std::min(tokens_, kChunk)) * padded_vocab() / tensor_;
}

Work BlockWork::classifier() const {
  double N = tokens_, V = padded_vocab() / tensor_, C = width_;
  Work work;
  work.matmul = 2 * matmul(N, V, C) + matmul(V, C, N);
  // Over tensor ranks the loss is put together from a maximum and two sums a row, and the gradient is one more pass.
  if (tensor_ > 1) work.memory_bound = memory_seconds(5 * kLow * N * V);
  return work;
}

Work BlockWork::embedding() const {
  double N = tokens_, C = width_, V = padded_vocab() / tensor_;
  return {.memory_bound = memory_seconds(kLow * 6 * N * C) + memory_seconds(kFull * V * C + kLow * 2 * N * C) +
                          2 * dropout_of_stream()};
}

double BlockWork::stream_bytes() const { return kLow * tokens_ * width_; }

}  // namespace tokamak
