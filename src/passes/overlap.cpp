#include "passes/overlap.h"

#include "cost/price.h"
#include "cost/stream_clock.h"
#include "graph/rewriter.h"
#include "ops/collective.h"
#include "passes/gathered_parameters.h"
#include "passes/last_gradient.h"
#include "passes/weight_products.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tokamak {
namespace {

constexpr ptrdiff_t kMostWaitingProducts = 4;  // as many as a block has: each keeps its operands in memory
constexpr size_t kMostUnsentGradients = 4;     // of products that did not wait, or no longer
constexpr double kLeastShareOfWait = 0.25;     // that must be left of a wait for another product to be taken

bool computes(const Node& node) { return node.op->fusion != Fusion::kView && !node.op->together; }

// By node: whether it is a message, a collective whose result a kernel reads before the update, through views and other
// collectives. Parameters are gathered ahead of what reads them (passes/bucket.h), so none waits for those.
std::vector<bool> find_messages(const Graph& graph) {
  Users users(graph);
  std::vector<std::optional<int>> gathers = count_gathers(graph);
  std::vector<bool> waited(users.size(), false), messages(graph.nodes().size(), false);
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    bool is_read = false;
    for (ValueId output : node.outputs)
      for (int user : users[size_t(output)]) {
        const Node& reader = graph.nodes()[size_t(user)];
        is_read |= reader.phase != Phase::kUpdate && (computes(reader) || waited[size_t(reader.outputs[0])]);
      }
    waited[size_t(node.outputs[0])] = is_read;
    messages[n] = is_read && node.op->together && !gathers[size_t(node.outputs[0])];
  }
  return messages;
}

// The clock of an order of nodes: kernels on one stream, what ranks send on another. Kernels are priced by their
// arithmetic, as most of the others will be in groups, whose values never reach memory; and memory's bandwidth is
// measured when a run begins, which an order that a run goes on with must not depend on.
class OrderClock {
 public:
  OrderClock(const Graph& graph, const Target& target, const std::vector<bool>& messages)
      : graph_(graph), target_(target), messages_(messages), gathers_(count_gathers(graph)),
        task_(size_t(graph.num_values()), -1) {}

  double seconds_of(int n) const { return price(graph_, node(n), target_).arithmetic; }

  // Seconds from when all that was taken is computed until what node n reads has been sent.
  double wait_of(int n) {
    clock_.run_until_idle(kKernels);
    double there = clock_.now();
    for (ValueId input : node(n).inputs)
      if (int task = task_[size_t(input)]; task >= 0) there = std::max(there, clock_.end_of(task));
    return there - clock_.now();
  }

  // The next node.
  void take(int n) {
    order_.push_back(n);
    const Node& next = node(n);
    int task = next.op->fusion == Fusion::kView ? task_[size_t(next.inputs[0])] : -1;
    if (computes(next))
      task = clock_.add({kKernels, seconds_of(n), 0, tasks_before(next)});
    else if (next.op->together && !gathers_[size_t(next.outputs[0])])
      task = clock_.add(message(n));
    for (ValueId output : next.outputs) task_[size_t(output)] = task;
  }

  std::vector<int> order() && { return std::move(order_); }

 private:
  static constexpr int kKernels = 0, kLinks = 1;

  const Node& node(int n) const { return graph_.nodes()[size_t(n)]; }

  std::vector<int> tasks_before(const Node& node) const {
    std::vector<int> tasks;
    for (ValueId input : node.inputs)
      if (int task = task_[size_t(input)]; task >= 0) tasks.push_back(task);
    return tasks;
  }

  // What nobody waits for shares a collective with others (passes/bucket.h), and so pays no latency of its own.
  StreamTask message(int n) const {
    Price p = price(graph_, node(n), target_);
    double units = units_taken(target_, node(n).attrs.get_string("axis"));
    return {kLinks, p.link + (messages_[size_t(n)] ? p.fixed : 0), units, tasks_before(node(n))};
  }

  const Graph& graph_;
  const Target& target_;
  const std::vector<bool>& messages_;
  std::vector<std::optional<int>> gathers_;  // by value: see count_gathers
  std::vector<int> task_;                    // by value: what makes it; -1: it is there
  std::vector<int> order_;
  StreamClock clock_{{0, 1}};
};

class Scheduler {
 public:
  Scheduler(const Graph& graph, const PassContext& context)
      : graph_(graph), products_(find_weight_products(graph)), of_product_(graph.nodes().size(), false),
        messages_(find_messages(graph)), gathering_(messages_.size(), false),
        last_(find_last_gradient(graph, products_, context)), clock_(graph, context.target, messages_) {
    for (const std::vector<int>& product : products_)
      for (int n : product) of_product_[size_t(n)] = true;
    find_gatherings();
    find_waits();
  }

  /// All nodes of the graph, in the order in which they are to run.
  std::vector<int> run() {
    for (int n = 0; n < int(graph_.nodes().size()); ++n) {
      if (!products_[size_t(n)].empty())
        place(n);
      else if (!of_product_[size_t(n)] && !is_ahead(n))
        go_on(n);
    }
    take_all();
    return std::move(clock_).order();
  }

 private:
  // A message that can be sent at any time of the backward pass, as it was made before, and the first that reads it.
  struct EarlyGather {
    int node, reader;
  };

  const Node& node(int n) const { return graph_.nodes()[size_t(n)]; }
  bool is_backward(int n) const { return node(n).phase == Phase::kBackward; }
  bool is_message(int n, const OpDef& op) const { return messages_[size_t(n)] && is_backward(n) && node(n).op == &op; }

  // Where the chain of gradients waits for messages.
  void find_waits() {
    std::vector<int> sent(size_t(graph_.num_values()), -1);  // by value: the message that it is, perhaps through views
    for (int n = 0; n < int(graph_.nodes().size()); ++n) {
      int message = messages_[size_t(n)] ? n : -1;
      for (ValueId input : node(n).inputs) {
        int read = sent[size_t(input)];
        if (node(n).op->fusion == Fusion::kView) message = read;
        if (read < 0 || !is_backward(n) || of_product_[size_t(n)] || !computes(node(n))) continue;
        last_wait_ = n;
        bool is_new = early_.empty() || early_.back().node != read;
        if (is_new && is_message(read, op::all_gather) && can_be_early(read)) early_.push_back({read, n});
      }
      for (ValueId output : node(n).outputs) sent[size_t(output)] = message;
    }
  }
  bool can_be_early(int gather) const {
    int maker = graph_.producer(node(gather).inputs[0]);
    return maker < 0 || node(maker).phase == Phase::kForward;
  }
  // The gathers behind which gradients of products are sent: those of the chain; where it has none, those that can be
  // early, behind which there is less to do until the next message.
  void find_gatherings() {
    std::array<std::vector<int>, 2> gatherings;
    for (int n = 0; n < int(graph_.nodes().size()); ++n)
      if (is_message(n, op::all_gather)) gatherings[can_be_early(n)].push_back(n);
    for (int n : gatherings[gatherings[0].empty()]) gathering_[size_t(n)] = true, ++gatherings_left_;
  }

  bool is_ahead(int n) const {
    return std::any_of(early_.begin(), early_.begin() + long(num_early_),
                       [&](const EarlyGather& e) { return e.node == n; });
  }

  bool may_be_last(int product) const { return last_.behind[size_t(product)]; }

  // A product for weights waits, if there is something to wait for.
  void place(int product) {
    if (product > last_wait_ && !may_be_last(product)) return take_product(product);
    late_.push_back(product);
    auto is_bound = [&](int other) { return !may_be_last(other); };
    if (std::count_if(late_.begin(), late_.end(), is_bound) > kMostWaitingProducts)
      take_late(size_t(std::find_if(late_.begin(), late_.end(), is_bound) - late_.begin()));
  }

  // A node that is no product for weights keeps its place; what waits is taken before it where there is time.
  void go_on(int n) {
    if (node(n).phase == Phase::kUpdate) take_all();
    if (computes(node(n))) fill_wait(n);
    take(n);
    if (is_message(n, op::reduce_scatter)) gather_ahead(n);
    if (n == last_.node || (n == last_wait_ && last_.node < n)) take_products();
  }

  void take(int n) {
    clock_.take(n);
    if (num_early_ < early_.size() && early_[num_early_].node == n) ++num_early_;
    if (!gathering_[size_t(n)]) return;
    --gatherings_left_;
    send_gradients();
  }

  // The next gather of what the forward pass made, if the one of the layer above was read.
  void gather_ahead(int n) {
    if (num_early_ > 0 && num_early_ < early_.size() && early_[num_early_ - 1].reader < n)
      take(early_[num_early_].node);
  }

  void fill_wait(int n) {
    if (late_.empty()) return;
    double rest = clock_.wait_of(n), least = kLeastShareOfWait * rest;
    for (; rest > least; rest = clock_.wait_of(n)) {
      size_t which = choose(rest);
      if (which == late_.size()) return;
      take_late(which);
    }
  }

  // Of the products that wait, the shortest that lasts for `rest`, else the longest; the number of them: none. What can
  // stand behind the last gradient only fills a wait that is as long.
  size_t choose(double rest) const {
    size_t best = late_.size();
    double best_seconds = 0;
    for (size_t i = 0; i < late_.size(); ++i) {
      double seconds = clock_.seconds_of(late_[i]);
      if (may_be_last(late_[i]) && seconds > rest) continue;
      bool lasts = seconds >= rest, best_lasts = best_seconds >= rest;
      bool is_better = lasts != best_lasts ? lasts : lasts ? seconds < best_seconds : seconds > best_seconds;
      if (best == late_.size() || is_better) best = i, best_seconds = seconds;
    }
    return best;
  }

  void take_late(size_t which) {
    int product = late_[which];
    late_.erase(late_.begin() + ptrdiff_t(which));
    take_product(product);
  }

  // Its gradient is sent when the residual stream has next been gathered, not before that: the chain waits for it.
  void take_product(int product) {
    const std::vector<int>& nodes = products_[size_t(product)];
    auto sent = std::find_if(nodes.begin(), nodes.end(), [&](int n) { return node(n).op->together; });
    std::for_each(nodes.begin(), sent, [&](int n) { clock_.take(n); });
    if (sent == nodes.end()) return;
    sends_.emplace_back(sent, nodes.end());
    if (gatherings_left_ == 0 || sends_.size() > kMostUnsentGradients) send_gradients();
  }

  void send_gradients() {
    for (const std::vector<int>& nodes : std::exchange(sends_, {}))
      for (int n : nodes) clock_.take(n);
  }

  void take_products() {
    while (!late_.empty()) take_late(0);
  }
  void take_all() {
    take_products();
    send_gradients();
  }

  const Graph& graph_;
  std::vector<std::vector<int>> products_;
  std::vector<bool> of_product_, messages_, gathering_;  // by node
  LastGradient last_;
  std::vector<EarlyGather> early_;
  size_t num_early_ = 0;  // that were taken
  int last_wait_ = -1;    // the last of the chain that waits for a message
  int gatherings_left_ = 0;
  std::vector<int> late_;                // products that wait
  std::vector<std::vector<int>> sends_;  // of products that were taken: the nodes from their collectives on
  OrderClock clock_;
};

}  // namespace

bool overlap(Graph& graph, const PassContext& context) {
  std::vector<int> order = Scheduler(graph, context).run();
  if (std::is_sorted(order.begin(), order.end())) return false;
  Rewriter rewriter(graph);
  for (int n : order) rewriter.copy(graph.nodes()[size_t(n)]);
  graph = rewriter.finish();
  return true;
}

}  // namespace tokamak
