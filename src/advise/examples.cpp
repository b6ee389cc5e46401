#include "advise/examples.h"

#include "advise/flops.h"
#include "advise/megatron.h"
#include "config/cluster.h"
#include "config/gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

constexpr double kGiB = double(int64_t(1) << 30), kDay = 24 * 3600;

// 300 billion tokens on 480 A100.
Example gpt3_days(const char* model, double parameters, double tera, double known) {
  return {fmt::format("GPT-3 {} on 480 A100 at {:.0f} TFLOP/s, 300 B tokens", model, tera), "8 T P / (n x)",
          training_seconds(300e9, parameters, 480, tera * 1e12) / kDay, known, "days"};
}

void add_optimizers(std::vector<Example>& list) {
  list.push_back({"AdamW's state", "2 moments x 4 bytes", 2 * 4, 8, "bytes a parameter"});
  list.push_back({"8-bit AdamW's state", "2 moments x 1 byte", 2 * 1, 2, "bytes a parameter"});
  list.push_back({"Adafactor's state, and a row and a column of each matrix", "1 moment x 4 bytes", 1 * 4, 4,
                  "bytes a parameter"});
  list.push_back({"SGD with momentum", "1 moment x 4 bytes", 1 * 4, 4, "bytes a parameter"});
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
  add_optimizers(list);
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
