#include "advise/examples.h"

#include "advise/day.h"
#include "advise/flops.h"
#include "advise/megatron.h"
#include "base/bytes.h"
#include "config/cluster.h"
#include "config/gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

// 300 billion tokens on A100s.
Example gpt3_days(const char* model, double parameters, double tera, double known, int gpus = 480) {
  std::string machines = gpus == 480 ? "480 A100" : fmt::format("{} DGX A100", gpus / 8);
  return {fmt::format("GPT-3 {} on {} at {:.0f} TFLOP/s, 300 B tokens", model, machines, tera), "8 T P / (n x)",
          training_seconds(300e9, parameters, gpus, tera * 1e12) / kDay, known, "days"};
}

// At the rates of 480 GPUs, for comparison: no days of so few are published with them.
void add_small_clusters(std::vector<Example>& list) {
  list.push_back(gpt3_days("2.7B", 2.7e9, 127, 73.8, 8));
  list.push_back(gpt3_days("2.7B", 2.7e9, 127, 18.5, 32));
  list.push_back(gpt3_days("6.7B", 6.7e9, 130, 179, 8));
  list.push_back(gpt3_days("6.7B", 6.7e9, 130, 44.7, 32));
}

// Of T5 with 3 billion parameters, as Hugging Face's "Model memory anatomy" has them.
Example t5_optimizer(const char* name, double bytes, double known) {
  return {fmt::format("T5-3B: {}", name), fmt::format("3e9 x {:.0f} bytes", bytes), 3e9 * bytes * 1e-9, known, "GB"};
}

void add_optimizers(std::vector<Example>& list) {
  list.push_back({"AdamW's state", "2 moments x 4 bytes", 2 * 4, 8, "bytes a parameter"});
  list.push_back({"8-bit AdamW's state", "2 moments x 1 byte", 2 * 1, 2, "bytes a parameter"});
  list.push_back({"Adafactor's state, and a row and a column of each matrix", "1 moment x 4 bytes", 1 * 4, 4,
                  "bytes a parameter"});
  list.push_back({"SGD with momentum", "1 moment x 4 bytes", 1 * 4, 4, "bytes a parameter"});
  list.push_back(t5_optimizer("AdamW's state", 8, 24));
  list.push_back(t5_optimizer("Adafactor's state, and some more", 4, 12));
  list.push_back(t5_optimizer("8-bit AdamW's state", 2, 6));
  list.push_back(t5_optimizer("state of SGD with momentum", 4, 12));
}

// What a kernel computes of each byte that it moves, and what an A100 does of both.
void add_intensities(std::vector<Example>& list, const GpuConfig& a100) {
  constexpr double kSide = 1024, kMultiplyAdds = 4 * 128, kClock = 1.41e9;
  list.push_back({"an addition of two tensors in fp16", "1 FLOP / (3 x 2 bytes): two read, one written", 1.0 / (3 * 2),
                  0.167, "FLOP/byte"});
  list.push_back({"a product of matrices of 1024 x 1024 in fp16", "2 n^3 / (3 n^2 x 2 bytes)",
                  2 * std::pow(kSide, 3) / (3 * kSide * kSide * 2), 341, "FLOP/byte"});
  list.push_back({"A100: TF32 from its units",
                  fmt::format("{:.0f} multiprocessors x 4 tensor cores x 128 multiply-adds x 2 x 1.41 GHz",
                              a100.multiprocessors.value),
                  a100.multiprocessors.value * kMultiplyAdds * 2 * kClock * 1e-12, 156, "TFLOP/s"});
}

std::string megatron_table() {
  ClusterConfig cluster = read_cluster("dgx-a100");
  std::string text = fmt::format("{:>8}{:>6}{:>4}{:>4}{:>5}{:>7}{:>4}{:>3}{:>10}{:>11}{:>8}   {}\n", "billions", "GPUs",
                                 "t", "p", "d", "batch", "b", "v", "measured", "predicted", "error",
                                 "share of matmul, attention, memory-bound, tensor, pipe, data, bubble, optimizer");
  double worst = 0;
  for (const MegatronRow& row : megatron_rows()) {
    MegatronStep step = predict_megatron(row, cluster);
    auto share = [&](double seconds) { return 100 * seconds / step.seconds(); };
    text += fmt::format(
        "{:>8.1f}{:>6}{:>4}{:>4}{:>5}{:>7}{:>4}{:>3}{:>10.0f}{:>11.1f}{:>+7.1f}%{} {:5.1f}{:5.1f}{:5.1f}{:5.1f}{:5.1f}"
        "{:5.1f}{:5.1f}{:5.1f}\n",
        row.billions, row.gpus, row.tensor, row.pipe, row.data(), row.batch, step.micro_batch, step.chunks, row.tera,
        step.tera(row), 100 * step.error(row), row.calibrates ? "*" : " ", share(step.matmul), share(step.attention),
        share(step.memory_bound), share(step.tensor), share(step.pipe), share(step.data), share(step.bubble),
        share(step.optimizer));
    worst = std::max(worst, std::abs(step.error(row)));
  }
  return text + fmt::format(
                    "TFLOP/s of a GPU. * two constants are calibrated on these two rows, none on a single row; the "
                    "largest error is {:.1f}%\n",
                    100 * worst);
}

}  // namespace

std::vector<Example> plan_examples() {
  GpuConfig a100 = gpu_model("a100-80gb");
  std::vector<Example> list = {
      gpt3_days("2.7B", 2.7e9, 127, 1.2),
      gpt3_days("6.7B", 6.7e9, 130, 3.0),
      gpt3_days("13B", 13e9, 135, 5.6),
      gpt3_days("175B", 175e9, 140, 72.3),
      {"1B parameters with Adam in fp16", "P x (2 + 2 + 4 + 4 + 4) bytes: weight, gradient; weight, moments in fp32",
       1e9 * 16 / kGiB, 14.90, "GiB"},
      {"175B parameters in fp32", "P x 4 bytes", 175e9 * 4 / kGiB, 651.9, "GiB"},
  };
  add_small_clusters(list);
  add_optimizers(list);
  add_intensities(list, a100);
  list.push_back(
      {"A100: below this a kernel is limited by memory",
       fmt::format("{:.0f} TFLOP/s / {:.0f} GB/s", a100.half_flops.value * 1e-12, a100.memory_bandwidth.value * 1e-9),
       a100.half_flops.value / a100.memory_bandwidth.value, 153, "FLOP/byte"});
  return list;
}

std::string format_examples() {
  std::string text =
      "FLOPs of a step of B sequences of s tokens, l blocks of width h, V tokens in the vocabulary (arXiv "
      "2104.04473):\n"
      "  F = 96 B s l h^2 (1 + s / (6 h) + V / (16 l h))   each block's forward pass computed again\n"
      "  F = 72 B s l h^2 (1 + s / (6 h) + V / (12 l h))   without that\n\n";
  for (const Example& example : plan_examples())
    text += fmt::format("{:<58}{:>8.2f} {:<18}{}\n", example.what, example.value, example.unit, example.formula);
  text +=
      "The slides that give the days, 1.2, 3.0, 5.6 and 72.3, have their labels one size off: these are the sizes "
      "that\n"
      "the rates 127, 130, 135 and 140 TFLOP/s belong to.\n\n"
      "Megatron-LM's weak scaling, table 1 of arXiv 2104.04473, predicted for --cluster=dgx-a100 from its layouts: t\n"
      "tensor, p pipe and d data ranks; micro-batches of b sequences and v chunks a stage are what the prediction "
      "finds\n"
      "fastest, as the paper does not name them.\n";
  return text + megatron_table();
}

}  // namespace tokamak
