#include "plan/timeline.h"

#include <algorithm>

namespace tokamak {
namespace {

class Timeline {
 public:
  explicit Timeline(const Plan& plan)
      : plan_(plan), queues_(plan.streams.size()), finished_(plan.launches.size(), false) {
    for (size_t i = 0; i < plan.launches.size(); ++i)
      queues_[size_t(plan.launches[i].stream)].waiting.push_back(int(i));
  }

  double run() {
    for (begin_ready(); any_runs(); begin_ready()) advance();
    return now_;
  }

 private:
  struct Queue {
    std::vector<int> waiting;  // launches, in order
    size_t at = 0;
    bool running = false;
    double left = 0;  // seconds that the running launch still takes if it has its resource alone
  };

  bool is_ready(const Queue& queue) const {
    if (queue.running || queue.at == queue.waiting.size()) return false;
    const std::vector<int>& after = plan_.launches[size_t(queue.waiting[queue.at])].after;
    return std::all_of(after.begin(), after.end(), [&](int launch) { return finished_[size_t(launch)]; });
  }

  void begin_ready() {
    for (Queue& queue : queues_)
      if (is_ready(queue)) {
        queue.running = true;
        queue.left = plan_.launches[size_t(queue.waiting[queue.at])].seconds;
      }
  }

  bool any_runs() const {
    return std::any_of(queues_.begin(), queues_.end(), [](const Queue& queue) { return queue.running; });
  }

  // Among how many the resource of this stream is shared now.
  int sharers(size_t stream) const {
    int count = 0;
    for (size_t other = 0; other < queues_.size(); ++other)
      count += queues_[other].running && plan_.streams[other].resource == plan_.streams[stream].resource;
    return count;
  }

  // To the end of the launch that ends next.
  void advance() {
    std::vector<double> share(queues_.size(), 0);
    size_t next = queues_.size();
    for (size_t stream = 0; stream < queues_.size(); ++stream) {
      if (!queues_[stream].running) continue;
      share[stream] = 1.0 / sharers(stream);
      if (next == queues_.size() || queues_[stream].left / share[stream] < queues_[next].left / share[next])
        next = stream;
    }
    double step = std::max(0.0, queues_[next].left / share[next]);  // rounding may have left less than nothing
    now_ += step;
    for (size_t stream = 0; stream < queues_.size(); ++stream) queues_[stream].left -= step * share[stream];
    queues_[next].running = false;
    finished_[size_t(queues_[next].waiting[queues_[next].at++])] = true;
  }

  const Plan& plan_;
  std::vector<Queue> queues_;  // by stream
  std::vector<bool> finished_;
  double now_ = 0;
};

}  // namespace

double end_of_timeline(const Plan& plan) { return Timeline(plan).run(); }

}  // namespace tokamak
