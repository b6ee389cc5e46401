#include "passes/overlap_halves.h"

#include "graph/op_def.h"
#include "ops/matmul.h"
#include "passes/halves.h"
#include "passes/link_clock.h"
#include "passes/overlap_tensor.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <utility>

namespace tokamak {
namespace {

constexpr int kBoth = 3;

class Order {
 public:
  Order(const Graph& graph, const std::vector<int>& halves, const PassContext& context)
      : graph_(graph), halves_(halves), users_(find_users(graph)), taken_(halves.size(), false),
        waits_(halves.size(), false), until_sent_(halves.size(), 0), clock_(graph, context) {
    for (int n = 0; n < num_nodes(); ++n) waits_[size_t(n)] = is_for_weight(n);
    for (int half : {1, 2}) count_until_sent(half);
  }

  /// All nodes.
  std::vector<int> run() {
    for (Phase phase : {Phase::kForward, Phase::kBackward}) {
      for (int half : {1, 2}) rest_[half - 1] = nodes_of(half, phase);
      while (!rest_[0].empty() || !rest_[1].empty()) go_on();
    }
    while (!late_.empty()) take_late(0);
    take_sends();
    for (int n = 0; n < num_nodes(); ++n) take(n);
    return std::move(clock_).order();
  }

 private:
  const Node& node(int n) const { return graph_.nodes()[size_t(n)]; }
  int num_nodes() const { return int(graph_.nodes().size()); }

  // A product of which a half needs nothing more.
  bool is_for_weight(int n) const {
    if (node(n).op != &op::matmul || node(n).phase != Phase::kBackward || halves_[size_t(n)] == kBoth) return false;
    std::vector<int> nodes = {n};
    for (size_t i = 0; i < nodes.size(); ++i)
      for (ValueId output : node(nodes[i]).outputs)
        for (int reader : users_[size_t(output)]) {
          if (halves_[size_t(reader)] == kBoth) continue;
          if (node(reader).inputs.size() != 1) return false;
          nodes.push_back(reader);
        }
    return true;
  }

  std::deque<int> nodes_of(int half, Phase phase) const {
    std::deque<int> nodes;
    for (int n = 0; n < num_nodes(); ++n)
      if (halves_[size_t(n)] == half && node(n).phase == phase) nodes.push_back(n);
    return nodes;
  }

  // By node of a half: what it computes from there to its next message.
  void count_until_sent(int half) {
    double seconds = 0;
    for (int n = num_nodes(); n-- > 0;) {
      if (halves_[size_t(n)] != half || waits_[size_t(n)]) continue;
      seconds = node(n).op->together ? 0 : seconds + (clock_.computes(n) ? clock_.seconds_of(n) : 0);
      until_sent_[size_t(n)] = seconds;
    }
  }

  void go_on() {
    for (std::deque<int>& rest : rest_)
      while (!rest.empty() && skip(rest.front())) rest.pop_front();
    double ready[2];
    for (size_t i : {0, 1})
      ready[i] = rest_[i].empty() ? kNever : std::max(clock_.ready_at(rest_[i].front()), clock_.now());
    double rest = std::min(ready[0], ready[1]) - clock_.now();
    if (rest == kNever) return;
    if (size_t late = choose_late(rest); late < late_.size()) return take_late(late);
    turn_ = choose(ready);
    take(rest_[turn_].front());
  }

  size_t choose(const double (&ready)[2]) const {
    bool may_stay = !rest_[turn_].empty() && ready[turn_] == clock_.now();
    if (may_stay && node(rest_[turn_].front()).op->fusion != Fusion::kOpaque) return turn_;  // one kernel, perhaps
    if (ready[0] != ready[1]) return ready[1] < ready[0];
    return until_sent_[size_t(rest_[1].front())] < until_sent_[size_t(rest_[0].front())];
  }

  // Whether node n needs no turn: it was taken, it waits, or it takes no time.
  bool skip(int n) {
    if (taken_[size_t(n)]) return true;
    if (waits_[size_t(n)]) {
      if (late_.size() == kMostWaitingProducts) take_late(0);
      late_.push_back(n);
      return true;
    }
    if (clock_.computes(n)) return false;
    take(n);
    return true;
  }

  // Of the products that wait one that fills the time until a half can go on; their number: none.
  size_t choose_late(double rest) const {
    if (late_.empty() || rest <= 0) return late_.size();
    std::vector<double> seconds;
    for (int product : late_) seconds.push_back(clock_.seconds_of(product));
    size_t late = choose_product(seconds, rest);
    return rest > kLeastShareOfWait * seconds[late] ? late : late_.size();
  }
  void take_late(size_t which) {
    int product = late_[which];
    late_.erase(late_.begin() + long(which));
    take(product);
  }

  void take(int n) {
    if (taken_[size_t(n)]) return;
    taken_[size_t(n)] = true;
    for (ValueId input : node(n).inputs)
      if (int producer = graph_.producer(input); producer >= 0) take(producer);
    clock_.take(n);
    if (clock_.is_gathering(n) && halves_[size_t(n)] != kBoth) take_sends();
    for (ValueId output : node(n).outputs)
      for (int reader : users_[size_t(output)])
        if (node(reader).phase == node(n).phase) take_at_once(reader);
  }

  // What needs nothing more: messages, and what both halves have gone into.
  void take_at_once(int n) {
    bool is_of_both = halves_[size_t(n)] == kBoth, sends = node(n).op->together != nullptr;
    if (taken_[size_t(n)] || node(n).phase == Phase::kUpdate || !(is_of_both || sends)) return;
    if (!std::all_of(node(n).inputs.begin(), node(n).inputs.end(), [&](ValueId input) { return is_there(input); }))
      return;
    if (is_of_both && sends)
      sends_.push_back(n);
    else
      take(n);
  }
  bool is_there(ValueId value) const {
    int producer = graph_.producer(value);
    return producer < 0 || taken_[size_t(producer)] || halves_[size_t(producer)] == 0;
  }

  void take_sends() {
    for (int n : std::exchange(sends_, {})) take(n);
  }

  static constexpr double kNever = std::numeric_limits<double>::infinity();

  const Graph& graph_;
  const std::vector<int>& halves_;
  std::vector<std::vector<int>> users_;
  std::vector<bool> taken_, waits_;  // by node: products for weights do
  std::vector<double> until_sent_;
  std::deque<int> rest_[2];  // of the halves
  size_t turn_ = 0;          // whose it was last
  std::deque<int> late_;     // products that wait
  std::vector<int> sends_;   // of what both have gone into
  LinkClock clock_;
};

}  // namespace

bool overlap_halves(Graph& graph, const PassContext& context) {
  std::vector<int> halves = find_halves(graph);
  if (std::find(halves.begin(), halves.end(), 1) == halves.end()) return false;
  return reorder(graph, Order(graph, halves, context).run());
}

}  // namespace tokamak
