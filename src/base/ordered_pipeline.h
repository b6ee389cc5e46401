// A stream of items that several threads work on, with the results in the order of the input and a bound on how many
// items exist at a time. Tests: tests/base/ordered_pipeline_test.cpp.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/start_threads.h"

namespace tokamak {

/// Each thread in turn fills the next item, then works on it while others fill theirs. Items are used again, so their
/// memory is too. What `fill` or `work` throws comes out of next() in its item's place, after all items before it.
template <class Item>
class OrderedPipeline {
 public:
  using Fill = std::function<bool(Item&)>;       // the next item, false at the end; one thread at a time, in order
  using Work = std::function<void(Item&, int)>;  // by several threads at once; the number is the thread's

  OrderedPipeline(int threads, Fill fill, Work work)
      : fill_(std::move(fill)), work_(std::move(work)), slots_(size_t(2 * threads + 2)) {
    threads_ = start_threads(threads, [this](int i) { run(i); });
  }
  OrderedPipeline(const OrderedPipeline&) = delete;
  OrderedPipeline& operator=(const OrderedPipeline&) = delete;

  ~OrderedPipeline() {
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
    }
    may_fill_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  /// Swaps the next finished item in; false at the end.
  bool next(Item& item) {
    std::unique_lock lock(mutex_);
    Slot& slot = slots_[size_t(taken_) % slots_.size()];
    done_.wait(lock, [&] { return slot.done || (ended_ && taken_ == filled_); });
    if (!slot.done) return false;
    if (slot.error) std::rethrow_exception(slot.error);
    std::swap(item, slot.item);
    slot.done = false;
    ++taken_;
    may_fill_.notify_one();
    return true;
  }

  /// The most items that exist at a time, beside the one that next() gave.
  int64_t capacity() const { return int64_t(slots_.size()); }

 private:
  struct Slot {
    Item item;
    bool done = false;
    std::exception_ptr error;
  };

  void run(int thread) {
    std::unique_lock lock(mutex_);
    for (;;) {
      may_fill_.wait(lock, [&] { return ended_ || (!filling_ && filled_ - taken_ < capacity()); });
      if (ended_) return;
      Slot& slot = slots_[size_t(filled_) % slots_.size()];
      filling_ = true;
      bool more = false;
      unlocked(lock, slot, [&] { more = fill_(slot.item); });
      filling_ = false;
      if (slot.error || !more) {
        ended_ = true;
        if (slot.error) slot.done = true, ++filled_;
        may_fill_.notify_all();
        done_.notify_all();
        return;
      }
      ++filled_;
      may_fill_.notify_one();
      unlocked(lock, slot, [&] { work_(slot.item, thread); });
      slot.done = true;
      done_.notify_one();
    }
  }

  template <class Function>
  static void unlocked(std::unique_lock<std::mutex>& lock, Slot& slot, Function function) {
    lock.unlock();
    try {
      function();
    } catch (...) {
      slot.error = std::current_exception();
    }
    lock.lock();
  }

  Fill fill_;
  Work work_;
  std::vector<Slot> slots_;  // item i is in slot i modulo their number
  std::mutex mutex_;
  std::condition_variable may_fill_, done_;
  int64_t filled_ = 0;  // items that were begun
  int64_t taken_ = 0;
  bool filling_ = false;
  bool ended_ = false;  // no more items are begun
  std::vector<std::thread> threads_;
};

}  // namespace tokamak
