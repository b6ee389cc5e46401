#include "advise/rough_cost.h"

#include "advise/compose.h"
#include "advise/links.h"
#include "base/divide.h"
#include "base/parallel_tasks.h"
#include "cost/price.h"
#include "passes/step_mesh.h"

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

// What is said of activations, of time where context ranks gather parameters, and of a rank's chunks is a little more
// than is sure.
constexpr double kSureGathered = 0.975, kSureActivations = 0.9, kSureChunks = 0.93;

// Of a micro-batch's time.
constexpr double kBackward = 2.0 / 3;

bool accumulates(const ParallelLayout& layout) { return layout.micro_batches > 1 || layout.mesh.pipe > 1; }

bool adds_once(const ParallelLayout& layout) { return adds_gradients_once(layout.mesh.zero) && accumulates(layout); }

// Blocks alone: one that adds gradients up, so that the update is a program by itself. Context ranks scatter gradients
// and gather parameters as ZeRO 2 and 3 say.
ParallelLayout unit_layout(const TrainingRequest& request, int64_t tensor, int64_t context, int64_t zero,
                           int64_t micro_batch) {
  ParallelLayout layout{.mesh = request.run.mesh, .micro_batch = micro_batch, .micro_batches = 2};
  layout.mesh.data = layout.mesh.pipe = 1;
  layout.mesh.context = context;
  layout.mesh.tensor = tensor;
  layout.mesh.zero = context > 1 && zero >= 2 ? zero : 0;
  layout.mesh.slots = 1;
  return layout;
}

// Blocks are divided so that the chunk that takes longest takes least; the last one has the ends, too. Which chunks a
// rank of an interleaved pipeline has together is not sure.
double slowest_stage(const MeshConfig& mesh, int64_t layers, double block, double ends) {
  int64_t chunks = mesh.pipe * mesh.interleave;
  if (chunks == 1) return double(layers) * block + ends;
  double least = double(layers) * block + ends, others = least;
  for (int64_t last = 0; last <= layers - chunks + 2; ++last) {
    double longest = double(ceil_div(layers - last, chunks - 1)) * block;
    if (std::max(longest, double(last) * block + ends) >= least) continue;
    least = std::max(longest, double(last) * block + ends);
    others = double(layers - last) / double(chunks - 1) * block;
  }
  double together = least + double(mesh.interleave - 1) * others;
  if (mesh.interleave > 1) together *= kSureChunks;
  return std::max((double(layers) * block + ends) / double(mesh.pipe), together);
}

}  // namespace

RoughCosts::Unit RoughCosts::make_unit(ParallelLayout layout, int64_t kinds) {
  constexpr double kMuch = 1 << 20;  // GiB: no budget changes anything but what is computed again
  Platform platform = with_links(platform_, request_.cluster, layout.mesh);
  BlockCosts& blocks = request_.library->of(request_.run, layout);
  auto at = [&](int64_t number) {
    return blocks.at({.blocks = number, .kinds = kinds, .budget_gib = kMuch}, platform);
  };
  int64_t few = kinds > 0 ? 2 : 1, more = 2 * few;
  parallel_tasks(2, [&](int64_t i) { at(i == 0 ? more : few); });
  auto of_blocks = [&](int64_t number) { return mix(at(few), at(more), double(number - few) / double(more - few)); };
  StageCost none = of_blocks(0), one = of_blocks(1);
  auto part_of = [&](const StageCost& cost) {
    const ProgramCost& program = cost.programs.at("micro_batch");
    return Part{program.time.total(), program.arena, cost.programs.at("update").time.total(), cost.kept};
  };
  Part of_one = part_of(one), ends = part_of(none);
  MemoryByKind kept = of_one.kept;
  kept += -1.0 * ends.kept;
  return {{of_one.seconds - ends.seconds, of_one.activations - ends.activations, of_one.update - ends.update, kept},
          ends};
}

RoughBlocks RoughBlocks::closer_to(const ParallelLayout& layout) const {
  if (context_ranks == layout.mesh.context) return {context_ranks, false};
  return {std::min(2 * context_ranks, layout.mesh.context), true};
}

// As many tokens as a rank of the layout has, in whole sequences.
RoughCosts::Alone RoughCosts::alone(const ParallelLayout& layout, const RoughBlocks& blocks) const {
  constexpr int64_t kMany = 64;
  int64_t ranks = blocks.context_ranks;
  double sequences = double(layout.micro_batch * ranks) / double(layout.mesh.context);
  int64_t whole = blocks.are_of_many ? kMany * ranks : std::max<int64_t>(int64_t(std::ceil(sequences)), 1);
  // Of a single micro-batch ZeRO 1 scatters gradients as ZeRO 2 does.
  int64_t zero = layout.mesh.zero == 1 && !accumulates(layout) ? 2 : layout.mesh.zero;
  if (blocks.are_of_many) zero = std::min<int64_t>(zero, 2);  // to gather parameters, too, takes no less
  return {unit_layout(request_, layout.mesh.tensor, ranks, zero, whole), sequences / double(whole)};
}

RoughCosts::Share RoughCosts::share_of(const ParallelLayout& layout, const RoughBlocks& blocks) {
  Alone unit = alone(layout, blocks);
  auto [at, is_new] = units_.try_emplace(block_key(unit.layout));
  if (is_new) at->second = make_unit(unit.layout, 0);
  return {at->second, unit.share};
}

bool RoughCosts::knows(const ParallelLayout& layout, const RoughBlocks& blocks) const {
  return units_.contains(block_key(alone(layout, blocks).layout));
}

void RoughCosts::prepare(const std::vector<Asked>& asked) {
  std::map<BlockKey, ParallelLayout> missing;
  for (const Asked& one : asked) {
    ParallelLayout unit = alone(*one.layout, one.blocks).layout;
    if (!knows(*one.layout, one.blocks)) missing.try_emplace(block_key(unit), unit);
  }
  std::vector<std::pair<const ParallelLayout*, Unit*>> tasks;
  for (const auto& [key, unit] : missing) tasks.emplace_back(&unit, &units_[key]);
  parallel_tasks(int64_t(tasks.size()) + 1, [&](int64_t i) {
    if (i == 0) return void(curve());
    auto [unit, made] = tasks[size_t(i) - 1];
    *made = make_unit(*unit, 0);
  });
}

// Of blocks among others; what is computed again of a single one has no other beside it.
const RecomputeCurve& RoughCosts::curve() {
  return request_.library->curve([&] {
    constexpr int64_t kKinds = 16, kSequences = 4;
    constexpr int kNoMore = 3;  // that change nothing: there are no more kinds
    int same = 0;
    ParallelLayout layout = unit_layout(request_, 1, 1, 0, kSequences);
    layout.mesh.data = 2, layout.mesh.zero = 1;  // as most of those that compute something again
    Unit whole = make_unit(layout, 0);
    std::vector<RecomputeCurve::Point> points = {{}};
    for (int64_t kinds = 1; kinds < kKinds; ++kinds) {
      Unit some = make_unit(layout, kinds);
      RecomputeCurve::Point point{some.block.activations / whole.block.activations,
                                  some.block.seconds / whole.block.seconds - 1};
      bool is_same = point.left == points.back().left && point.time == points.back().time;
      same = is_same ? same + 1 : 0;
      if (same == kNoMore) break;
      points.push_back(point);
    }
    return RecomputeCurve(std::move(points));
  });
}

std::optional<double> RoughCosts::seconds(const ParallelLayout& layout, const RoughBlocks& blocks) {
  const MeshConfig& mesh = layout.mesh;
  double room = usable_bytes(request_.cluster, mesh) - kept_bytes(layout);
  if (room <= 0) return {};
  auto [of, share] = share_of(layout, blocks);
  // What memory and the update take: a unit that gathers parameters may need more for one block than for two.
  auto [first, first_share] = share_of(layout, {});
  double block = share * of.block.seconds, ends = share * of.ends.seconds;
  auto layers = double(request_.run.model.layers), stages = double(mesh.pipe), runs = double(layout.micro_batches);
  // The first stage has as many micro-batches in flight as there are stages.
  double in_flight = std::min(runs, stages) * layers / stages;
  double activations = kSureActivations * first_share * in_flight * first.block.activations;
  double left = std::max(room - std::max(0.0, first_share * first.ends.activations), 0.0) / activations;
  std::optional<double> again = left >= 1 ? 0 : curve().time(left);
  // Operands of weights' gradients that wait stay, whatever is computed again.
  if (!again || (*again > 0 && mesh.pipe > 1 && mesh.schedule == "zero_bubble")) return {};
  block *= 1 + kSureAgain * *again;
  double whole = layers * block + ends, slowest = slowest_stage(mesh, request_.run.model.layers, block, ends);
  // The way of the first micro-batch to the last stage, which is a third of its work, and back; zero_bubble fills that.
  double way = (stages - 1) / stages * whole / double(mesh.interleave);
  double seconds = runs * slowest + (mesh.schedule == "zero_bubble" ? way / 3 : way);
  double update = (layers * first.block.update + first.ends.update) / stages;
  if (mesh.zero >= 1) update /= double(mesh.data * mesh.context);
  double sent = sent_seconds(layout, first);
  // Beside what gradients are sent: the backward pass of the last micro-batch where that is done once, in a pipeline
  // that of the first stage, else all.
  double last = mesh.pipe > 1 ? slowest : seconds / runs;
  double beside = adds_once(layout) ? kBackward * last : seconds;
  // What is hidden takes a share of the device from kernels beside it.
  double hidden = std::min(sent, beside);
  Target target = with_links(Platform(platform_.target), request_.cluster, mesh).target;
  seconds = std::max(seconds + units_taken(target, std::string(kDataAxis)) * hidden, seconds - beside + sent);
  return (mesh.context > 1 && mesh.zero == 3 ? kSureGathered : 1) * (seconds + update);
}

// Of gradients over data ranks: in f32 once, where they are added once, else in a low type in each micro-batch, and
// with ZeRO 3 parameters for each pass.
double RoughCosts::sent_seconds(const ParallelLayout& layout, const Unit& unit) const {
  const MeshConfig& mesh = layout.mesh;
  if (mesh.data == 1) return 0;
  Link link = axis_link(request_.cluster, mesh.context * mesh.tensor, mesh.data);
  auto layers = double(request_.run.model.layers);
  double all = (layers * unit.block.kept.gradients + unit.ends.kept.gradients) / double(mesh.pipe);
  if (adds_once(layout) && mesh.zero == 0) return all_reduce_seconds(link, mesh.data, all);
  auto gather = [&](double bytes) { return all_gather_seconds(link, mesh.data, bytes / double(mesh.context)); };
  if (adds_once(layout)) return gather(all);
  return (mesh.zero == 3 ? 3 : 1) * (adds_gradients_once(mesh.zero) ? 1 : double(layout.micro_batches)) *
         gather(all / 2);
}

double RoughCosts::kept_bytes(const ParallelLayout& layout) {
  const MeshConfig& mesh = layout.mesh;
  const Unit& of = share_of(layout, {}).unit;
  MemoryByKind kept = double(request_.run.model.layers) * of.block.kept;
  kept += of.ends.kept;
  kept = 1 / double(mesh.pipe) * kept;
  auto ranks = double(mesh.data * mesh.context);
  bool cuts = mesh.zero == 3 || gathers_once(mesh);
  double full = kept.gradients, low = accumulates(layout) ? mesh.zero < 3 : gathers_once(mesh);
  low *= kept.weights - full;
  double gradients = accumulates(layout) ? full / (mesh.zero >= 2 ? ranks : 1) : 0;
  return full / (cuts ? ranks : 1) + low + gradients + kept.optimizer / (mesh.zero >= 1 ? ranks : 1);
}

}  // namespace tokamak
