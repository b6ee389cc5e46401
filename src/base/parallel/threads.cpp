// parallel.h on std::thread alone: a pool of sleeping workers, for builds under ThreadSanitizer (which does not know
// libgomp's synchronisation) and for systems without OpenMP.
#include "base/parallel.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "base/system.h"

namespace tokamak {
namespace {

int available_cores() { return usable_cpus(std::max(1, int(std::thread::hardware_concurrency()))); }

// True on a thread that is inside a loop's body.
bool& inside_loop() {
  thread_local bool inside = false;
  return inside;
}

class Pool {
 public:
  ~Pool() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    start_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  // Runs piece(0) on this thread and piece(i) on worker i - 1; loops of several threads take turns.
  void run(int64_t pieces, const std::function<void(int64_t)>& piece) {
    std::lock_guard one_loop(loop_mutex_);
    while (int64_t(workers_.size()) + 1 < pieces) add_worker();
    {
      std::lock_guard lock(mutex_);
      piece_ = &piece;
      pieces_ = pieces;
      running_ = pieces - 1;
      ++round_;
    }
    start_.notify_all();
    inside_loop() = true;
    piece(0);
    inside_loop() = false;
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return running_ == 0; });
  }

 private:
  void add_worker() {
    std::lock_guard lock(mutex_);
    workers_.emplace_back([this, index = int64_t(workers_.size()) + 1, seen = round_] { work(index, seen); });
  }

  void work(int64_t index, uint64_t seen) {
    inside_loop() = true;
    std::unique_lock lock(mutex_);
    while (true) {
      start_.wait(lock, [&] { return stop_ || round_ != seen; });
      if (stop_) return;
      seen = round_;
      if (index >= pieces_) continue;
      const auto* piece = piece_;
      lock.unlock();
      (*piece)(index);
      lock.lock();
      if (--running_ == 0) done_.notify_one();
    }
  }

  std::mutex loop_mutex_, mutex_;
  std::condition_variable start_, done_;
  std::vector<std::thread> workers_;
  const std::function<void(int64_t)>* piece_ = nullptr;
  int64_t pieces_ = 0, running_ = 0;
  uint64_t round_ = 0;
  bool stop_ = false;
};

struct State {
  std::atomic<int> threads{available_cores()};
  Pool pool;
};

State& state() {
  static State instance;
  return instance;
}

}  // namespace

int num_threads() { return state().threads; }

void set_num_threads(int n) { state().threads = n < 1 ? available_cores() : n; }

void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t, int)>& body) {
  if (count <= 0) return;
  if (inside_loop()) return body(0, count, 0);
  Split split(count, grain, num_threads());
  if (split.pieces == 1) return body(0, count, 0);
  state().pool.run(split.pieces, [&](int64_t i) { body(split.begin(i), split.end(i), int(i)); });
}

void on_this_thread_only(const std::function<void()>& body) { body(); }

}  // namespace tokamak
