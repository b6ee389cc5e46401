#include "advise/advice.h"

#include "advise/tiles.h"
#include "base/divide.h"

#include <fmt/format.h>

#include <algorithm>

namespace tokamak {
namespace {

// Less is noise between two runs.
constexpr double kLeastGain = 0.005;

class Adviser {
 public:
  Adviser(const RunConfig& run, const ParallelLayout& layout, const Platform& platform)
      : model_(run.model), layout_(layout), target_(platform.target), work_(rank_work(run, layout, platform)) {}

  std::vector<Advice> run() {
    look_at_width();
    look_at_heads();
    look_at_vocabulary();
    look_at_waves();
    look_at_batch();
    std::stable_sort(list_.begin(), list_.end(), [](const Advice& a, const Advice& b) { return a.gain > b.gain; });
    return std::move(list_);
  }

 private:
  void add(double gain, std::string text) { list_.push_back({std::move(text), gain}); }

  // Parts of tiles that lie outside of results, where rounding the width up would fill them.
  void look_at_width() {
    int64_t width = model_.width / layout_.mesh.tensor;
    if (width % 128 == 0) return;
    double padded = 0;
    for (const MatmulShape& matmul : work_.matmuls)
      if (!matmul.is_table) padded += matmul.seconds * tile_use(matmul.m, matmul.n, target_.units).padding;
    int64_t multiple = width % 64 != 0 ? 64 : 128;
    add(padded / work_.seconds,
        fmt::format("width {}{} is no multiple of {}: tiles of matrix products are filled in part; {} would fill them",
                    model_.width, layout_.mesh.tensor > 1 ? fmt::format(" / tensor {}", layout_.mesh.tensor) : "",
                    width % 8 != 0 ? 8 : multiple, round_up(width, multiple) * layout_.mesh.tensor));
  }

  void look_at_heads() {
    int64_t size = model_.width_of_head(), full = round_up(size, 64);
    if (size % 64 != 0)
      add(work_.attention * (1 - double(size) / double(full)) / work_.seconds,
          fmt::format("heads of {} are computed as ones of {}: {} heads would have {}", size, full,
                      std::max<int64_t>(model_.width / full, 1), full));
    std::string ranks;
    for (int64_t tensor : {2, 4, 8})
      if (model_.num_kv_heads() % tensor != 0) ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", tensor);
    if (!ranks.empty())
      add(0, fmt::format("{} heads do not divide over {} tensor ranks: heads of zeros would be added",
                         model_.num_kv_heads(), ranks));
  }

  void look_at_vocabulary() {
    if (model_.vocab % 64 == 0) return;
    auto padded = double(round_up(model_.vocab, target_.vocab_multiple));
    double tables = 0;
    for (const MatmulShape& matmul : work_.matmuls) tables += matmul.is_table ? matmul.seconds : 0;
    double gain = (1 - double(model_.vocab) / padded) * tables / work_.seconds;
    add(gain, fmt::format("vocabulary {} is no multiple of 64: it is padded to {:.0f}, which costs {:.2f}%",
                          model_.vocab, padded, 100 * gain));
  }

  void look_at_waves() {
    for (const MatmulShape& matmul : work_.matmuls) {
      TileUse use = tile_use(matmul.m, matmul.n, target_.units);
      double idle = double(use.waves * target_.units - use.tiles) / double(use.waves * target_.units);
      double gain = idle * matmul.seconds / work_.seconds;
      if (gain >= kLeastGain)
        add(gain, fmt::format("{}, {} x {}: {} tiles of 256 x 128 in {} wave{} of {}, the last one {:.0f}% idle",
                              matmul.name, matmul.m, matmul.n, use.tiles, use.waves, use.waves == 1 ? "" : "s",
                              target_.units, 100 * use.idle));
    }
  }

  // Below the threshold of arithmetic intensity a product with a matrix takes as long as reading the matrix.
  void look_at_batch() {
    double threshold = target_.bf16_flops / target_.memory_bandwidth;
    double tokens = double(layout_.micro_batch * model_.context / layout_.mesh.context);
    if (tokens < threshold)
      add(1 - tokens / threshold,
          fmt::format(
              "a micro-batch of {:.0f} tokens is below the {:.0f} from which on products with a matrix are limited "
              "by arithmetic: {:.0f} would take as long",
              tokens, threshold, threshold));
    double share = work_.update / work_.seconds;
    if (share >= 0.05)
      add(share / 2,
          fmt::format("{:.0f}% of a step of {:.0f} tokens a GPU are the update of parameters, whatever the batch; "
                      "twice the tokens would halve that",
                      100 * share, tokens * double(layout_.micro_batches)));
  }

  const ModelConfig& model_;
  const ParallelLayout& layout_;
  const Target& target_;
  RankWork work_;
  std::vector<Advice> list_;
};

}  // namespace

std::vector<Advice> advise(const RunConfig& run, const ParallelLayout& layout, const Platform& platform) {
  return Adviser(run, layout, platform).run();
}

std::string format_advice(const std::vector<Advice>& advice) {
  std::string text;
  for (const Advice& one : advice)
    text += fmt::format("  {:>5}  {}\n", one.gain >= 0.0005 ? fmt::format("{:.1f}%", 100 * one.gain) : "-", one.text);
  return text.empty() ? "" : "advice, with the share of a step's time that it would save\n" + text;
}

ParallelLayout layout_of(const RunConfig& config) {
  ParallelLayout layout{.mesh = config.mesh};
  layout.mesh.data = std::max<int64_t>(config.mesh.data, 1);
  layout.micro_batch = std::max<int64_t>(config.train.batch / layout.mesh.data, 1);
  int64_t tokens = config.train.batch * config.model.context;
  layout.micro_batches = std::max<int64_t>(config.train.total_batch / tokens, 1);
  layout.budget_gib = config.compile.memory_budget_gib;
  return layout;
}

}  // namespace tokamak
