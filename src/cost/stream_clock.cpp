#include "cost/stream_clock.h"

#include <algorithm>

namespace tokamak {
namespace {

// However much collectives take, what runs beside them goes on.
constexpr double kLeastRate = 0.1;

}  // namespace

StreamClock::StreamClock(const std::vector<int>& resources) : resources_(resources), queues_(resources.size()) {
  state_.streams.resize(resources.size());
}

int StreamClock::add(StreamTask task) {
  std::vector<int>& queue = queues_[size_t(task.stream)];
  place_.push_back(queue.size());
  queue.push_back(int(tasks_.size()));
  tasks_.push_back(std::move(task));
  spans_.emplace_back();
  return queue.back();
}

void StreamClock::run_until_idle(int stream) {
  while (state_.streams[size_t(stream)].at < queues_[size_t(stream)].size() && advance(state_, &spans_)) continue;
}

double StreamClock::end_of(int task) const {
  if (is_done(state_, task)) return spans_[size_t(task)].end;
  State ahead = state_;
  while (!is_done(ahead, task) && advance(ahead, nullptr)) continue;
  return ahead.now;
}

std::vector<Span> StreamClock::run() && {
  while (advance(state_, &spans_)) continue;
  return std::move(spans_);
}

bool StreamClock::is_done(const State& state, int task) const {
  return place_[size_t(task)] < state.streams[size_t(tasks_[size_t(task)].stream)].at;
}

bool StreamClock::is_ready(const State& state, size_t stream) const {
  const Stream& at = state.streams[stream];
  if (at.running || at.at == queues_[stream].size()) return false;
  const ShortList<int, 4>& after = next(state, stream).after;
  return std::all_of(after.begin(), after.end(), [&](int task) { return is_done(state, task); });
}

void StreamClock::begin_ready(State& state, std::vector<Span>* spans) const {
  for (size_t stream = 0; stream < queues_.size(); ++stream) {
    if (!is_ready(state, stream)) continue;
    Stream& begun = state.streams[stream];
    begun.running = true;
    begun.left = next(state, stream).seconds;
    if (spans) (*spans)[size_t(queues_[stream][begun.at])].begin = state.now;
  }
}

// Seconds of its work that the stream's task does in a second now.
double StreamClock::rate(const State& state, size_t stream) const {
  int sharers = 0;
  double left = 1;
  for (size_t other = 0; other < queues_.size(); ++other) {
    if (!state.streams[other].running) continue;
    bool shares = resources_[other] == resources_[stream];
    sharers += shares;
    if (!shares) left -= next(state, other).taken_share;
  }
  return std::max(left, kLeastRate) / sharers;
}

// To the end of the task that ends next; whether there was one.
bool StreamClock::advance(State& state, std::vector<Span>* spans) const {
  begin_ready(state, spans);
  std::vector<double> rates(queues_.size(), 0);
  size_t first = queues_.size();
  for (size_t stream = 0; stream < queues_.size(); ++stream) {
    const Stream& running = state.streams[stream];
    if (!running.running) continue;
    rates[stream] = rate(state, stream);
    if (first == queues_.size() || running.left / rates[stream] < state.streams[first].left / rates[first])
      first = stream;
  }
  if (first == queues_.size()) return false;
  double step = std::max(0.0, state.streams[first].left / rates[first]);  // rounding may have left less than nothing
  state.now += step;
  for (size_t stream = 0; stream < queues_.size(); ++stream) state.streams[stream].left -= step * rates[stream];
  Stream& done = state.streams[first];
  if (spans) (*spans)[size_t(queues_[first][done.at])].end = state.now;
  done.running = false;
  ++done.at;
  return true;
}

}  // namespace tokamak
