#include "plan/streams.h"

#include "graph/op_def.h"
#include "plan/storage.h"  // find_roots

#include <algorithm>
#include <deque>
#include <numeric>

namespace tokamak {
namespace {

enum class Lane : uint8_t { kCompute, kSide, kCommunication };

// Of the run's seconds, by which a collective may end later than predicted before anyone waits for its operands' place:
// ranks are not equally fast, and what runs beside it slows it down. In a step of 110 ms stream 0 waited up to 0.9 ms
// for such places, 3.4 ms in all.
constexpr double kLate = 0.02;

// Finds the lane of every node.
class Chooser {
 public:
  Chooser(const Graph& graph, StreamChoice choice)
      : graph_(graph), choice_(choice), roots_(find_roots(graph)), readers_(graph.nodes().size()),
        lane_(graph.nodes().size(), Lane::kCompute), leads_(graph.nodes().size(), false) {
    for (int n = 0; n < int(readers_.size()); ++n) {
      if (!works(n)) continue;
      for (int producer : producers(n)) readers_[size_t(producer)].push_back(n);
    }
  }

  std::vector<Lane> run() {
    for (int n = int(readers_.size()) - 1; n >= 0; --n) {
      if (!works(n)) continue;
      leads_[size_t(n)] = is_backward(n) && leads_to_update(n);
      if (choice_.communication && graph_.nodes()[size_t(n)].op->together)
        lane_[size_t(n)] = Lane::kCommunication;
      else if (choice_.side && leads_[size_t(n)] && !graph_.nodes()[size_t(n)].op->effects)
        lane_[size_t(n)] = Lane::kSide;
    }
    return lane_;
  }

 private:
  bool works(int n) const { return graph_.nodes()[size_t(n)].op->fusion != Fusion::kView; }
  bool is_backward(int n) const { return graph_.nodes()[size_t(n)].phase == Phase::kBackward; }

  // Nodes that made the operands, through views.
  std::vector<int> producers(int n) const {
    std::vector<int> found;
    for (ValueId input : graph_.nodes()[size_t(n)].inputs)
      if (int producer = graph_.producer(roots_[size_t(input)]); producer >= 0) found.push_back(producer);
    return found;
  }

  // What else of the backward pass reads it does not hold up stream 0 either: it is beside already, and on the side
  // stream reads nothing else of the backward pass.
  bool leads_to_update(int n) const {
    const std::vector<int>& readers = readers_[size_t(n)];
    return std::all_of(readers.begin(), readers.end(), [&](int reader) {
      if (!is_backward(reader)) return true;
      if (lane_[size_t(reader)] == Lane::kCommunication) return bool(leads_[size_t(reader)]);
      std::vector<int> sources = producers(reader);
      return lane_[size_t(reader)] == Lane::kSide &&
             std::all_of(sources.begin(), sources.end(), [&](int s) { return s == n || !is_backward(s); });
    });
  }

  const Graph& graph_;
  StreamChoice choice_;
  std::vector<ValueId> roots_;
  std::vector<std::vector<int>> readers_;
  std::vector<Lane> lane_;   // by node
  std::vector<bool> leads_;  // by node: only the update needs it
};

// Lets all streams run at one pace and notes with which node of stream 0 each launch beside it is done.
class Pacer {
 public:
  Pacer(const Graph& graph, StreamSchedule& schedule)
      : graph_(graph), schedule_(schedule), roots_(find_roots(graph)), end_(graph.nodes().size(), 0),
        running_(schedule.streams.size()), free_(schedule.streams.size(), 0) {}

  void run(const std::vector<Launch>& launches) {
    for (const Launch& launch : launches) late_ += kLate * launch.seconds;
    for (const Launch& launch : launches) stream_of(launch.node) ? begin(launch) : pass(launch);
    for (const auto& running : running_)
      for (int node : running) schedule_.done[size_t(node)] = int(graph_.nodes().size());
  }

 private:
  size_t stream_of(int node) const { return size_t(schedule_.stream[size_t(node)]); }

  // Nodes beside stream 0 that made the operands.
  std::vector<int> producers_beside(int node) const {
    std::vector<int> found;
    for (ValueId input : graph_.nodes()[size_t(node)].inputs)
      if (int producer = graph_.producer(roots_[size_t(input)]); producer >= 0 && stream_of(producer))
        found.push_back(producer);
    return found;
  }

  void begin(const Launch& launch) {
    double& free = free_[stream_of(launch.node)];
    free = std::max(free, now_);
    for (int producer : producers_beside(launch.node)) free = std::max(free, end_[size_t(producer)]);
    free += launch.seconds;
    end_[size_t(launch.node)] = free;
    running_[stream_of(launch.node)].push_back(launch.node);
  }

  void pass(const Launch& launch) {
    now_ += launch.seconds;
    for (int producer : producers_beside(launch.node)) finish(producer, launch.node);
    for (auto& running : running_)
      while (!running.empty() && surely_done(running.front()) <= now_) finish(running.front(), launch.node);
  }

  double surely_done(int node) const {
    bool meets_others = graph_.nodes()[size_t(node)].op->together;
    return end_[size_t(node)] + (meets_others ? late_ : 0);
  }

  // By the end of node `with` of stream 0, this one beside it is done, and so is what came before it.
  void finish(int node, int with) {
    std::deque<int>& running = running_[stream_of(node)];
    while (!running.empty() && running.front() <= node) {
      int done = running.front();
      running.pop_front();
      schedule_.done[size_t(done)] = with;
      for (int producer : producers_beside(done)) finish(producer, with);
    }
  }

  const Graph& graph_;
  StreamSchedule& schedule_;
  std::vector<ValueId> roots_;
  std::vector<double> end_;               // by node beside stream 0, in seconds of that
  std::vector<std::deque<int>> running_;  // by stream, in order
  std::vector<double> free_;              // by stream: when its last launch ends
  double now_ = 0;
  double late_ = 0;  // seconds
};

}  // namespace

StreamSchedule schedule_streams(const Graph& graph, const std::vector<Launch>& launches, StreamChoice choice) {
  StreamSchedule schedule{
      {{"compute"}}, std::vector<int>(graph.nodes().size(), 0), std::vector<int>(graph.nodes().size())};
  std::iota(schedule.done.begin(), schedule.done.end(), 0);
  std::vector<Lane> lanes = Chooser(graph, choice).run();
  const std::pair<Lane, PlannedStream> beside[] = {{Lane::kSide, {"side"}},
                                                   {Lane::kCommunication, {.name = "communication", .resource = 1}}};
  for (const auto& [lane, stream] : beside) {
    if (std::count(lanes.begin(), lanes.end(), lane) == 0) continue;
    for (size_t n = 0; n < lanes.size(); ++n)
      if (lanes[n] == lane) schedule.stream[n] = int(schedule.streams.size());
    schedule.streams.push_back(stream);
  }
  Pacer(graph, schedule).run(launches);
  return schedule;
}

}  // namespace tokamak
