// The clock of what runs side by side within a step: streams of tasks, each in its order. The planner's timeline, how
// long operands keep their place and the order of collectives are all read from it.
// Tests: tests/cost/stream_clock_test.cpp.
#pragma once

#include "base/short_list.h"

#include <cstddef>
#include <vector>

namespace tokamak {

/// When a task runs, in seconds from the beginning.
struct Span {
  double begin = 0, end = 0;
};

struct StreamTask {
  int stream = 0;
  double seconds = 0;         // alone on the resource of its stream
  double taken_share = 0;     // of other resources' work while it runs
  ShortList<int, 4> after{};  // tasks that must be done before, of those that were added before it
};

/// A task begins when its stream is free and what it waits for is done. Tasks that run at the same time on streams of
/// one resource get equal shares of it. Beside a task of another resource they go on at the rate that its taken_share
/// leaves them; it is not slowed down by them.
class StreamClock {
 public:
  /// By stream, what its tasks keep busy.
  explicit StreamClock(const std::vector<int>& resources);

  /// Behind the others of its stream; its number, from 0.
  int add(StreamTask task);

  /// How far the tasks have run.
  double now() const { return state_.now; }
  /// Until the stream has done all of its tasks.
  void run_until_idle(int stream);
  /// When a task is done, if nothing more is added.
  double end_of(int task) const;
  /// When each task runs, to the end of the last.
  std::vector<Span> run() &&;

 private:
  struct Stream {
    size_t at = 0;         // the task that runs or is next
    bool running = false;  // whether it runs
    double left = 0;       // seconds that it still takes if it has its resource alone
  };
  struct State {
    std::vector<Stream> streams;
    double now = 0;
  };

  const StreamTask& next(const State& state, size_t stream) const {
    return tasks_[size_t(queues_[stream][state.streams[stream].at])];
  }
  bool is_done(const State& state, int task) const;
  bool is_ready(const State& state, size_t stream) const;
  void begin_ready(State& state, std::vector<Span>* spans) const;
  double rate(const State& state, size_t stream) const;
  bool advance(State& state, std::vector<Span>* spans) const;

  std::vector<int> resources_;            // by stream
  std::vector<std::vector<int>> queues_;  // by stream, its tasks in order
  std::vector<StreamTask> tasks_;
  std::vector<size_t> place_;  // by task, in its queue
  std::vector<Span> spans_;    // by task
  State state_;
};

}  // namespace tokamak
