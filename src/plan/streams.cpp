#include "plan/streams.h"

#include "cost/stream_clock.h"
#include "graph/op_def.h"
#include "ops/movement.h"
#include "plan/storage.h"  // find_roots

#include <algorithm>
#include <numeric>

namespace tokamak {
namespace {

enum class Lane : uint8_t { kCompute, kSide, kCommunication };

// Of the run's seconds, by which a collective may end later than predicted before anyone waits for its operands' place:
// ranks are not equally fast, and what runs beside it slows it down. In a step of 110 ms stream 0 waited up to 0.9 ms
// for such places, 3.4 ms in all.
constexpr double kLate = 0.02;

using Nodes = ShortList<int, 4>;

// Nodes that made the operands of node n, through views.
Nodes find_producers(const Graph& graph, const std::vector<ValueId>& roots, int n) {
  Nodes found;
  for (ValueId input : graph.nodes()[size_t(n)].inputs)
    if (int producer = graph.producer(roots[size_t(input)]); producer >= 0) found.push_back(producer);
  return found;
}

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
      if (choice_.communication && (graph_.nodes()[size_t(n)].op->together || is_made_to_be_sent(n)))
        lane_[size_t(n)] = Lane::kCommunication;
      else if (choice_.side && leads_[size_t(n)] && !graph_.nodes()[size_t(n)].op->effects)
        lane_[size_t(n)] = Lane::kSide;
    }
    return lane_;
  }

 private:
  // A copy for a collective is made when the collective's turn comes: on stream 0 all of them would be made long
  // before, and take memory until then.
  bool is_made_to_be_sent(int n) const {
    const std::vector<int>& readers = readers_[size_t(n)];
    return graph_.nodes()[size_t(n)].op == &op::pad && !readers.empty() &&
           std::all_of(readers.begin(), readers.end(), [&](int r) { return lane_[size_t(r)] == Lane::kCommunication; });
  }

  bool works(int n) const { return graph_.nodes()[size_t(n)].op->fusion != Fusion::kView; }
  bool is_backward(int n) const { return graph_.nodes()[size_t(n)].phase == Phase::kBackward; }

  Nodes producers(int n) const { return find_producers(graph_, roots_, n); }

  // What else of the backward pass reads it does not hold up stream 0 either: it is beside already, and on the side
  // stream reads nothing else of the backward pass.
  bool leads_to_update(int n) const {
    const std::vector<int>& readers = readers_[size_t(n)];
    return std::all_of(readers.begin(), readers.end(), [&](int reader) {
      if (!is_backward(reader)) return true;
      if (lane_[size_t(reader)] == Lane::kCommunication) return bool(leads_[size_t(reader)]);
      Nodes sources = producers(reader);
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

// Finds with which node of stream 0 each launch beside it is done.
class Pacer {
 public:
  Pacer(const Graph& graph, const std::vector<Launch>& launches, StreamAssignment& assignment)
      : graph_(graph), launches_(launches), assignment_(assignment), roots_(find_roots(graph)), spans_(run_clock()) {}

  // Backwards: what comes before a launch on its stream, and what made its operands, is done when it is.
  void run() {
    double late = 0;
    for (const Span& span : spans_) late = std::max(late, kLate * span.end);
    std::vector<int> next(assignment_.streams.size(), int(graph_.nodes().size()));
    for (size_t i = launches_.size(); i-- > 0;) {
      int node = launches_[i].node;
      int& done = assignment_.done[size_t(node)];
      if (size_t stream = stream_of(node)) {
        bool meets_others = graph_.nodes()[size_t(node)].op->together;
        done = std::min({done, next[stream], first_of_stream_0(i, spans_[i].end + (meets_others ? late : 0))});
        next[stream] = done;
      }
      for (int producer : producers(node))
        if (stream_of(producer))
          assignment_.done[size_t(producer)] = std::min(assignment_.done[size_t(producer)], done);
    }
  }

 private:
  size_t stream_of(int node) const { return size_t(assignment_.stream[size_t(node)]); }

  Nodes producers(int node) const { return find_producers(graph_, roots_, node); }

  // By launch.
  std::vector<Span> run_clock() const {
    std::vector<int> resources, task(graph_.nodes().size(), -1);
    for (const PlannedStream& stream : assignment_.streams) resources.push_back(stream.resource);
    StreamClock clock(resources);
    for (const Launch& launch : launches_) {
      Nodes after = producers(launch.node);
      for (int& producer : after) producer = task[size_t(producer)];
      task[size_t(launch.node)] =
          clock.add({int(stream_of(launch.node)), launch.seconds, launch.taken_share, std::move(after)});
    }
    return std::move(clock).run();
  }

  // Behind launch i, the node of stream 0 that ends then or later.
  int first_of_stream_0(size_t i, double seconds) const {
    for (++i; i < launches_.size(); ++i)
      if (!stream_of(launches_[i].node) && spans_[i].end >= seconds) return launches_[i].node;
    return int(graph_.nodes().size());
  }

  const Graph& graph_;
  const std::vector<Launch>& launches_;
  StreamAssignment& assignment_;
  std::vector<ValueId> roots_;
  std::vector<Span> spans_;  // by launch
};

}  // namespace

StreamAssignment assign_streams(const Graph& graph, const std::vector<Launch>& launches, StreamChoice choice) {
  StreamAssignment assignment{
      {{"compute"}}, std::vector<int>(graph.nodes().size(), 0), std::vector<int>(graph.nodes().size())};
  std::iota(assignment.done.begin(), assignment.done.end(), 0);
  std::vector<Lane> lanes = Chooser(graph, choice).run();
  const std::pair<Lane, PlannedStream> beside[] = {{Lane::kSide, {"side"}},
                                                   {Lane::kCommunication, {.name = "communication", .resource = 1}}};
  for (const auto& [lane, stream] : beside) {
    if (std::count(lanes.begin(), lanes.end(), lane) == 0) continue;
    for (size_t n = 0; n < lanes.size(); ++n)
      if (lanes[n] == lane) {
        assignment.stream[n] = int(assignment.streams.size());
        assignment.done[n] = int(lanes.size());
      }
    assignment.streams.push_back(stream);
  }
  if (assignment.streams.size() > 1) Pacer(graph, launches, assignment).run();
  return assignment;
}

}  // namespace tokamak
