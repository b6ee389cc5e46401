#include "plan/timeline.h"

#include <algorithm>

namespace tokamak {
namespace {

// However much collectives take, what runs beside them goes on.
constexpr double kLeastRate = 0.1;

bool is_collective(const Plan& plan, size_t launch) {
  return plan.graph.nodes()[size_t(plan.launches[launch].node)].op->together;
}

class Simulation {
 public:
  explicit Simulation(const Plan& plan, bool silent = false)
      : plan_(plan), silent_(silent), queues_(plan.streams.size()), finished_(plan.launches.size(), false),
        spans_(plan.launches.size()) {
    for (size_t i = 0; i < plan.launches.size(); ++i)
      queues_[size_t(plan.launches[i].stream)].waiting.push_back(int(i));
  }

  std::vector<Span> run() {
    for (begin_ready(); any_runs(); begin_ready()) advance();
    return std::move(spans_);
  }

 private:
  struct Queue {
    std::vector<int> waiting;  // launches, in order
    size_t at = 0;
    bool running = false;
    double left = 0;  // seconds that the running launch still takes if it has its resource alone

    int next() const { return waiting[at]; }
  };

  bool is_ready(const Queue& queue) const {
    if (queue.running || queue.at == queue.waiting.size()) return false;
    const std::vector<int>& after = plan_.launches[size_t(queue.next())].after;
    return std::all_of(after.begin(), after.end(), [&](int launch) { return finished_[size_t(launch)]; });
  }

  void begin_ready() {
    for (Queue& queue : queues_)
      if (is_ready(queue)) {
        queue.running = true;
        bool counts = !silent_ || !is_collective(plan_, size_t(queue.next()));
        queue.left = counts ? plan_.launches[size_t(queue.next())].seconds : 0;
        spans_[size_t(queue.next())].begin = now_;
      }
  }

  bool any_runs() const {
    return std::any_of(queues_.begin(), queues_.end(), [](const Queue& queue) { return queue.running; });
  }

  // Seconds of its work that the stream's launch does in a second now.
  double rate(size_t stream) const {
    int sharers = 0;
    double left = 1;
    for (size_t other = 0; other < queues_.size(); ++other) {
      if (!queues_[other].running) continue;
      bool shares = plan_.streams[other].resource == plan_.streams[stream].resource;
      sharers += shares;
      if (!shares) left -= plan_.launches[size_t(queues_[other].next())].taken_share;
    }
    return std::max(left, kLeastRate) / sharers;
  }

  // To the end of the launch that ends next.
  void advance() {
    std::vector<double> rates(queues_.size(), 0);
    size_t next = queues_.size();
    for (size_t stream = 0; stream < queues_.size(); ++stream) {
      if (!queues_[stream].running) continue;
      rates[stream] = rate(stream);
      if (next == queues_.size() || queues_[stream].left / rates[stream] < queues_[next].left / rates[next])
        next = stream;
    }
    double step = std::max(0.0, queues_[next].left / rates[next]);  // rounding may have left less than nothing
    now_ += step;
    for (size_t stream = 0; stream < queues_.size(); ++stream) queues_[stream].left -= step * rates[stream];
    queues_[next].running = false;
    int launch = queues_[next].waiting[queues_[next].at++];
    finished_[size_t(launch)] = true;
    spans_[size_t(launch)].end = now_;
  }

  const Plan& plan_;
  bool silent_;                // collectives take no time
  std::vector<Queue> queues_;  // by stream
  std::vector<bool> finished_;
  std::vector<Span> spans_;  // by launch
  double now_ = 0;
};

}  // namespace

std::vector<Span> simulate(const Plan& plan) { return Simulation(plan).run(); }

double seconds_without_collectives(const Plan& plan) { return end_of_timeline(Simulation(plan, true).run()); }

double end_of_timeline(const std::vector<Span>& timeline) {
  double end = 0;
  for (const Span& span : timeline) end = std::max(end, span.end);
  return end;
}

std::vector<std::vector<Span>> exposed_spans(const Plan& plan, const std::vector<Span>& timeline) {
  std::vector<Span> others;
  for (size_t i = 0; i < timeline.size(); ++i)
    if (!is_collective(plan, i)) others.push_back(timeline[i]);
  std::sort(others.begin(), others.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::vector<std::vector<Span>> exposed(timeline.size());
  for (size_t i = 0; i < timeline.size(); ++i) {
    if (!is_collective(plan, i)) continue;
    double covered_to = timeline[i].begin;
    for (const Span& other : others) {
      if (other.begin >= timeline[i].end) break;
      if (other.begin > covered_to) exposed[i].push_back({covered_to, other.begin});
      covered_to = std::max(covered_to, other.end);
    }
    if (timeline[i].end > covered_to) exposed[i].push_back({covered_to, timeline[i].end});
  }
  return exposed;
}

std::vector<double> exposed_seconds(const Plan& plan, const std::vector<Span>& timeline) {
  std::vector<double> seconds;
  for (const std::vector<Span>& spans : exposed_spans(plan, timeline)) {
    double& sum = seconds.emplace_back(0);
    for (const Span& span : spans) sum += span.end - span.begin;
  }
  return seconds;
}

}  // namespace tokamak
