#include "plan/streams.h"

#include "graph/op_def.h"
#include "plan/storage.h"  // find_roots

#include <algorithm>
#include <deque>
#include <numeric>

namespace tokamak {
namespace {

// Finds the nodes for stream 1.
class Chooser {
 public:
  explicit Chooser(const Graph& graph) : graph_(graph), roots_(find_roots(graph)), readers_(graph.nodes().size()) {
    for (int n = 0; n < int(readers_.size()); ++n) {
      if (!works(n)) continue;
      for (int producer : producers(n)) readers_[size_t(producer)].push_back(n);
    }
  }

  std::vector<int> run() const {
    std::vector<int> stream(readers_.size(), 0);
    for (int n = int(readers_.size()) - 1; n >= 0; --n)
      if (works(n) && !has_effects(n) && is_backward(n) && leads_to_update(n, stream)) stream[size_t(n)] = 1;
    return stream;
  }

 private:
  bool works(int n) const { return graph_.nodes()[size_t(n)].op->fusion != Fusion::kView; }
  bool has_effects(int n) const { return graph_.nodes()[size_t(n)].op->effects; }
  bool is_backward(int n) const { return graph_.nodes()[size_t(n)].phase == Phase::kBackward; }

  // Nodes that made the operands, through views.
  std::vector<int> producers(int n) const {
    std::vector<int> found;
    for (ValueId input : graph_.nodes()[size_t(n)].inputs)
      if (int producer = graph_.producer(roots_[size_t(input)]); producer >= 0) found.push_back(producer);
    return found;
  }

  // What else of the backward pass reads it is on stream 1 already, and reads nothing else of the backward pass.
  bool leads_to_update(int n, const std::vector<int>& stream) const {
    const std::vector<int>& readers = readers_[size_t(n)];
    return std::all_of(readers.begin(), readers.end(), [&](int reader) {
      if (!is_backward(reader)) return true;
      std::vector<int> sources = producers(reader);
      return stream[size_t(reader)] == 1 &&
             std::all_of(sources.begin(), sources.end(), [&](int s) { return s == n || !is_backward(s); });
    });
  }

  const Graph& graph_;
  std::vector<ValueId> roots_;
  std::vector<std::vector<int>> readers_;
};

// Lets both streams run at one pace and notes with which node of stream 0 each launch of stream 1 is done.
class Pacer {
 public:
  Pacer(const Graph& graph, StreamSchedule& schedule) : graph_(graph), schedule_(schedule), roots_(find_roots(graph)) {}

  void run(const std::vector<Launch>& launches) {
    for (const Launch& launch : launches) schedule_.stream[size_t(launch.node)] ? begin(launch) : pass(launch);
    for (const Running& running : running_) schedule_.done[size_t(running.node)] = int(graph_.nodes().size());
  }

 private:
  struct Running {
    int node;
    double end;  // seconds of stream 0
  };

  void begin(const Launch& launch) {
    beside_ = std::max(beside_, now_) + launch.seconds;
    running_.push_back({launch.node, beside_});
  }

  void pass(const Launch& launch) {
    now_ += launch.seconds;
    int read = last_read_beside(launch.node);
    for (; !running_.empty() && (running_.front().end <= now_ || running_.front().node <= read); running_.pop_front())
      schedule_.done[size_t(running_.front().node)] = launch.node;
  }

  // The last node of stream 1 whose outputs the node reads; -1: none.
  int last_read_beside(int node) const {
    int last = -1;
    for (ValueId input : graph_.nodes()[size_t(node)].inputs)
      if (int producer = graph_.producer(roots_[size_t(input)]); producer >= 0 && schedule_.stream[size_t(producer)])
        last = std::max(last, producer);
    return last;
  }

  const Graph& graph_;
  StreamSchedule& schedule_;
  std::vector<ValueId> roots_;
  std::deque<Running> running_;  // in order
  double now_ = 0, beside_ = 0;
};

}  // namespace

StreamSchedule schedule_streams(const Graph& graph, const std::vector<Launch>& launches, int streams) {
  StreamSchedule schedule{
      {{"compute"}}, std::vector<int>(graph.nodes().size(), 0), std::vector<int>(graph.nodes().size())};
  std::iota(schedule.done.begin(), schedule.done.end(), 0);
  if (streams < 2) return schedule;
  schedule.stream = Chooser(graph).run();
  if (std::count(schedule.stream.begin(), schedule.stream.end(), 1) == 0) return schedule;
  schedule.streams.push_back({"side"});
  Pacer(graph, schedule).run(launches);
  return schedule;
}

}  // namespace tokamak
