#include "passes/choose_recompute.h"

#include "cost/price.h"
#include "graph/rewriter.h"
#include "ops/pointwise.h"
#include "passes/apply_recompute.h"
#include "passes/gathered_parameters.h"
#include "passes/live_bytes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace tokamak {
namespace {

struct Candidate {
  std::vector<size_t> nodes;  // to compute again together: the node and what it needs that is not saved
  double bytes_per_second = 0;
};

class RecomputeChooser {
 public:
  RecomputeChooser(const Graph& graph, const PassContext& context)
      : graph_(graph), context_(context), escaping_(find_escaping(graph)), saved_(size_t(graph.num_values()), false) {
    for (const Node& node : graph.nodes()) {
      if (node.phase == Phase::kBackward)
        for (ValueId input : node.inputs) mark_saved(input);
    }
    read_ = saved_;
    for (const Node& node : graph.nodes()) {
      if (!may_be_again(node))  // computed once, whatever is made of it again
        for (ValueId output : node.outputs) saved_[size_t(output)] = true;
    }
    for (size_t n = 0; n < graph.nodes().size(); ++n) add_candidate(n);
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.bytes_per_second > b.bytes_per_second; });
  }

  // The graph in which all candidates of so many kinds are marked. When all of them are, the last ones may only take
  // more memory, as nothing is left from which they could be computed: then those are not marked.
  std::optional<Graph> choose_kinds(int64_t kinds) {
    std::vector<size_t> ends = ends_of_kinds();
    while (ends.size() > 1 && peak_of(ends.back()) >= peak_of(ends[ends.size() - 2])) ends.pop_back();
    if (kinds == 0 || ends.empty()) return {};
    return marked(ends[std::min(size_t(kinds), ends.size()) - 1]);
  }

  // The graph in which as many candidates are marked as make so many nodes.
  std::optional<Graph> choose_nodes(int64_t nodes) {
    size_t count = 0;
    while (count < candidates_.size() && num_marked(count) < nodes) ++count;
    if (count == 0) return {};
    return marked(count);
  }

  // The graph with all candidates marked but those that take a matrix product, attention or a collective (selective),
  // or that are the residual stream between blocks (full).
  std::optional<Graph> choose_named(std::string_view name) {
    std::vector<size_t> ends = ends_of_blocks();
    std::erase_if(candidates_, [&](const Candidate& candidate) {
      if (name == "full") return std::binary_search(ends.begin(), ends.end(), candidate.nodes.front());
      return std::any_of(candidate.nodes.begin(), candidate.nodes.end(),
                         [&](size_t n) { return graph_.nodes()[n].op->fusion == Fusion::kOpaque; });
    });
    if (candidates_.empty()) return {};
    return marked(candidates_.size());
  }

  // The graph with the fewest candidates marked that fits, else with those that need least.
  std::optional<Graph> choose(double budget) {
    if (double(peak_of(0)) <= budget || candidates_.empty()) return {};
    constexpr size_t kSteps = 16;
    size_t below = 0, best = 0;
    for (size_t step = 1; step <= kSteps; ++step) {
      size_t count = candidates_.size() * step / kSteps;
      if (peak_of(count) < peak_of(best)) best = count;
      if (double(peak_of(count)) <= budget) break;
      below = count;
    }
    while (double(peak_of(best)) <= budget && below + 1 < best) {
      size_t middle = (below + best) / 2;
      (double(peak_of(middle)) <= budget ? best : below) = middle;
    }
    if (best == 0) return {};
    return marked(best);
  }

 private:
  bool is_forward(size_t n) const { return graph_.nodes()[n].phase == Phase::kForward; }

  // Of what is computed, and not of a bias.
  bool is_sum_of_values(size_t n) const {
    const Node& node = graph_.nodes()[n];
    return node.op == &op::add && std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
             return graph_.producer(input) >= 0 && graph_.shape(input) == graph_.shape(node.outputs[0]);
           });
  }

  // A block adds to the residual stream twice, behind attention and behind the MLP.
  std::vector<size_t> ends_of_blocks() const {
    std::vector<size_t> sums, ends;
    for (size_t n = 0; n < graph_.nodes().size(); ++n)
      if (is_forward(n) && is_sum_of_values(n)) sums.push_back(n);
    for (size_t i = 1; i < sums.size(); i += 2) ends.push_back(sums[i]);
    return ends;
  }

  // Marks a value as kept for the backward pass; of a view, the value that it shows.
  void mark_saved(ValueId value) {
    int producer = graph_.producer(value);
    if (producer < 0 || !is_forward(size_t(producer))) return;
    saved_[size_t(value)] = true;
    const Node& node = graph_.nodes()[size_t(producer)];
    if (node.op->fusion == Fusion::kView) mark_saved(node.inputs[0]);
  }

  void collect(size_t n, std::vector<size_t>& nodes) const {
    if (std::find(nodes.begin(), nodes.end(), n) != nodes.end()) return;
    nodes.push_back(n);
    for (ValueId input : graph_.nodes()[n].inputs)
      if (int p = graph_.producer(input); p >= 0 && !saved_[size_t(input)]) collect(size_t(p), nodes);
  }

  // Bytes of operands that are computed once and would have to be kept for this candidate alone, such as the keys and
  // values of all ranks that attention over a cut sequence reads: its gradient gathers them again.
  double held_bytes(const Candidate& candidate) const {
    std::set<ValueId> held;
    for (size_t n : candidate.nodes)
      for (ValueId input : graph_.nodes()[n].inputs) {
        int producer = graph_.producer(input);
        if (producer < 0 || !is_forward(size_t(producer)) || read_[size_t(input)]) continue;
        if (!may_be_again(graph_.nodes()[size_t(producer)]) && !gathering_[size_t(producer)]) held.insert(input);
      }
    double bytes = 0;
    for (ValueId value : held) bytes += double(num_bytes(graph_.type(value)));
    return bytes;
  }

  // For each kind how many candidates come before its end; candidates that free as many bytes per second are of one.
  std::vector<size_t> ends_of_kinds() const {
    constexpr double kRounding = 1e-9;
    std::vector<size_t> ends;
    for (size_t i = 1; i <= candidates_.size(); ++i)
      if (i == candidates_.size() ||
          candidates_[i].bytes_per_second < (1 - kRounding) * candidates_[i - 1].bytes_per_second)
        ends.push_back(i);
    return ends;
  }

  void add_candidate(size_t n) {
    const Node& node = graph_.nodes()[n];
    if (!is_forward(n) || node.op->fusion == Fusion::kView || !may_be_again(node)) return;
    double bytes = 0;
    for (ValueId output : node.outputs) {
      if (escaping_[size_t(output)]) return;
      if (saved_[size_t(output)]) bytes += double(num_bytes(graph_.type(output)));
    }
    if (bytes == 0) return;
    Candidate candidate;
    collect(n, candidate.nodes);
    double time = 0;
    for (size_t member : candidate.nodes) time += price(graph_, graph_.nodes()[member], context_.target).seconds;
    bytes -= held_bytes(candidate);
    if (bytes <= 0) return;
    candidate.bytes_per_second = bytes / time;
    candidates_.push_back(std::move(candidate));
  }

  std::vector<bool> chosen_of(size_t count) const {
    std::vector<bool> chosen(graph_.nodes().size(), false);
    for (size_t i = 0; i < count; ++i)
      for (size_t n : candidates_[i].nodes) chosen[n] = true;
    return chosen;
  }

  int64_t num_marked(size_t count) const {
    std::vector<bool> chosen = chosen_of(count);
    for (size_t n = 0; n < chosen.size(); ++n) chosen[n] = chosen[n] || graph_.nodes()[n].recompute;
    return std::count(chosen.begin(), chosen.end(), true);
  }

  Graph marked(size_t count) const {
    std::vector<bool> chosen = chosen_of(count);
    Rewriter rewriter(graph_);
    for (size_t n = 0; n < chosen.size(); ++n) {
      Node node = graph_.nodes()[n];
      node.recompute = node.recompute || chosen[n];
      rewriter.copy(node);
    }
    return rewriter.finish();
  }

  int64_t peak_of(size_t count) {
    auto [at, fresh] = peaks_.try_emplace(count, 0);
    if (fresh) {
      Graph recomputed = with_recomputed(graph_, context_, chosen_of(count));
      at->second = peak_live_bytes(recomputed, context_.micro_batches_held);
    }
    return at->second;
  }

  const Graph& graph_;
  const PassContext& context_;
  std::vector<bool> escaping_;
  std::vector<bool> gathering_ = find_gathering(graph_);  // by node: of parameters, which are gathered again
  std::vector<bool> read_;                                // by value: by the backward pass
  std::vector<bool> saved_;  // by value: what is kept, forward values that the backward pass reads above all
  std::vector<Candidate> candidates_;
  std::map<size_t, int64_t> peaks_;  // by number of candidates marked
};

}  // namespace

bool choose_recompute(Graph& graph, const PassContext& context) {
  RecomputeChooser chooser(graph, context);
  const CompileConfig& options = context.options;
  double budget_gib = context.recompute_gib > 0 ? context.recompute_gib : options.memory_budget_gib;
  std::optional<Graph> chosen = options.recompute != kRecompute[0] ? chooser.choose_named(options.recompute)
                                : context.recompute_nodes >= 0     ? chooser.choose_nodes(context.recompute_nodes)
                                : context.recompute_kinds >= 0     ? chooser.choose_kinds(context.recompute_kinds)
                                                                   : chooser.choose(budget_gib * 0x1p30);
  if (chosen) graph = std::move(*chosen);
  return chosen.has_value();
}

}  // namespace tokamak
