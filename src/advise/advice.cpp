#include "advise/advice.h"

#include "advise/block_work.h"
#include "advise/tiles.h"
#include "base/divide.h"
#include "passes/step_mesh.h"

#include <fmt/format.h>

#include <algorithm>

namespace tokamak {
namespace {

// Less is noise between two runs.
constexpr double kLeastGain = 0.005;

// That an update of a parameter reads and writes in f32, and the gradient twice in bf16; and a cast to bf16.
constexpr double kUpdateBytes = 28, kCastBytes = 6;

constexpr const char* kClassifier = "classifier";

class Adviser {
 public:
  Adviser(const ModelConfig& model, const ParallelLayout& layout, const Target& target)
      : model_(model), layout_(layout), target_(target), block_(model, layout, target),
        matmuls_(list_matmuls(model, layout, target)) {
    auto blocks = double(model.layers) / double(layout.mesh.pipe);
    Work work = blocks * block_.forward();
    work += blocks * block_.backward();
    work += block_.classifier();
    work += block_.embedding();
    attention_ = work.attention;
    // AdamW and casts, which take the same for any batch; each is of a rank's share alone from a stage of ZeRO on.
    auto ranks = double(layout.mesh.data * layout.mesh.context);
    bool casts_shares = layout.mesh.zero == 3 || gathers_once(layout.mesh);
    double bytes = kUpdateBytes / (layout.mesh.zero >= 1 ? ranks : 1) + kCastBytes / (casts_shares ? ranks : 1);
    auto parameters = blocks * 12 * double(model.width * model.width) + block_.padded_vocab() * double(model.width);
    update_ = block_.memory_seconds(bytes * parameters / double(layout.mesh.tensor)) / double(layout.micro_batches);
    step_ = work.seconds() + update_;
  }

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
  double seconds(const MatmulShape& matmul) const { return matmul.flops() / target_.bf16_flops; }

  // Parts of tiles that lie outside of results, where rounding the width up would fill them.
  void look_at_width() {
    int64_t width = model_.width / layout_.mesh.tensor;
    if (width % 128 == 0) return;
    double padded = 0;
    for (const MatmulShape& matmul : matmuls_) {
      if (matmul.name.starts_with(kClassifier)) continue;
      padded += seconds(matmul) * tile_use(matmul.m, matmul.n, target_.units).padding;
    }
    int64_t multiple = width % 64 != 0 ? 64 : 128;
    add(padded / step_,
        fmt::format("width {}{} is no multiple of {}: tiles of matrix products are filled in part; {} would fill them",
                    model_.width, layout_.mesh.tensor > 1 ? fmt::format(" / tensor {}", layout_.mesh.tensor) : "",
                    width % 8 != 0 ? 8 : multiple, round_up(width, multiple) * layout_.mesh.tensor));
  }

  void look_at_heads() {
    int64_t size = model_.width / model_.heads, full = round_up(size, 64);
    if (size % 64 != 0)
      add(attention_ * (1 - double(size) / double(full)) / step_,
          fmt::format("heads of {} are computed as ones of {}: {} heads would have {}", size, full,
                      std::max<int64_t>(model_.width / full, 1), full));
    std::string ranks;
    for (int64_t tensor : {2, 4, 8})
      if (model_.heads % tensor != 0) ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", tensor);
    if (!ranks.empty()) add(0, fmt::format("{} heads cannot be divided over {} tensor ranks", model_.heads, ranks));
  }

  void look_at_vocabulary() {
    double padding = 1 - double(model_.vocab) / block_.padded_vocab();
    if (model_.vocab % 64 == 0) return;
    double gain = padding * block_.classifier().seconds() / step_;
    add(gain, fmt::format("vocabulary {} is no multiple of 64: it is padded to {:.0f}, which costs {:.2f}%",
                          model_.vocab, block_.padded_vocab(), 100 * gain));
  }

  void look_at_waves() {
    for (const MatmulShape& matmul : matmuls_) {
      TileUse use = tile_use(matmul.m, matmul.n, target_.units);
      double idle = double(use.waves * target_.units - use.tiles) / double(use.waves * target_.units);
      double gain = idle * seconds(matmul) / step_;
      if (gain >= kLeastGain)
        add(gain, fmt::format("{}, {} x {}: {} tiles of 256 x 128 in {} wave{} of {}, the last one {:.0f}% idle",
                              matmul.name, matmul.m, matmul.n, use.tiles, use.waves, use.waves == 1 ? "" : "s",
                              target_.units, 100 * use.idle));
    }
  }

  // Below the threshold of arithmetic intensity a product with a matrix takes as long as reading the matrix.
  void look_at_batch() {
    double threshold = target_.bf16_flops / target_.memory_bandwidth;
    if (block_.tokens() < threshold)
      add(1 - block_.tokens() / threshold,
          fmt::format(
              "a micro-batch of {:.0f} tokens is below the {:.0f} from which on products with a matrix are limited "
              "by arithmetic: {:.0f} would take as long",
              block_.tokens(), threshold, threshold));
    double share = update_ / step_;
    if (share >= 0.05)
      add(share / 2,
          fmt::format("{:.0f}% of a step of {:.0f} tokens a GPU are the update of parameters, whatever the batch; "
                      "twice the tokens would halve that",
                      100 * share, block_.tokens() * double(layout_.micro_batches)));
  }

  const ModelConfig& model_;
  const ParallelLayout& layout_;
  const Target& target_;
  BlockWork block_;
  std::vector<MatmulShape> matmuls_;
  double attention_ = 0, update_ = 0, step_ = 0;
  std::vector<Advice> list_;
};

}  // namespace

std::vector<MatmulShape> list_matmuls(const ModelConfig& model, const ParallelLayout& layout, const Target& target) {
  int64_t N = layout.micro_batch * model.context / layout.mesh.context, C = model.width, t = layout.mesh.tensor;
  int64_t blocks = ceil_div(model.layers, layout.mesh.pipe), V = round_up(model.vocab, target.vocab_multiple) / t;
  std::vector<MatmulShape> list;
  auto add = [&](const std::string& name, int64_t out, int64_t in, int64_t count) {
    list.push_back({name, N, out, in, count});
    list.push_back({name + ", gradient of its input", N, in, out, count});
    list.push_back({name + ", gradient of its weights", in, out, N, count});
  };
  add("queries, keys and values", 3 * C / t, C, blocks);
  add("attention's projection", C, C / t, blocks);
  add("MLP up", 4 * C / t, C, blocks);
  add("MLP down", C, 4 * C / t, blocks);
  add(kClassifier, V, C, 1);
  return list;
}

std::vector<Advice> advise(const ModelConfig& model, const ParallelLayout& layout, const Target& target) {
  return Adviser(model, layout, target).run();
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
