#include "base/parallel_tasks.h"

#include "base/parallel.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

namespace tokamak {
namespace {

// The tasks of one call. Its numbers are guarded by the board's mutex: tasks are long.
struct Group {
  Group(int64_t count, const std::function<void(int64_t)>& task)
      : task(task), count(count), errors(static_cast<size_t>(count)) {}

  const std::function<void(int64_t)>& task;
  int64_t count, begun = 0, ended = 0;
  std::vector<std::exception_ptr> errors;
};

// All groups that are not done: the outer call's, and those of calls within its tasks.
class Board {
 public:
  // The caller's part of a group: its tasks as long as any is left, and then others until the group is done.
  void run(Group& group) {
    std::unique_lock lock(mutex_);
    open_.push_back(&group);
    changed_.notify_all();
    while (group.begun < group.count) run_one(group, lock);
    help(group, lock);
  }

  // Takes tasks of any group until this one is done.
  void help(const Group& group) {
    std::unique_lock lock(mutex_);
    help(group, lock);
  }

 private:
  void help(const Group& group, std::unique_lock<std::mutex>& lock) {
    while (group.ended < group.count)
      if (open_.empty())
        changed_.wait(lock);
      else
        run_one(*open_.back(), lock);
  }

  void run_one(Group& group, std::unique_lock<std::mutex>& lock) {
    int64_t i = group.begun++;
    if (group.begun == group.count) std::erase(open_, &group);
    lock.unlock();
    std::exception_ptr error;
    try {
      group.task(i);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    group.errors[size_t(i)] = error;
    if (++group.ended == group.count) changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Group*> open_;  // with tasks that nobody has begun
};

// The board whose tasks this thread runs; null: none.
Board*& current_board() {
  thread_local Board* board = nullptr;
  return board;
}

void run_outer(Group& group) {
  Board board;
  parallel_for(num_threads(), 1, [&](int64_t begin, int64_t, int) {
    Board* before = std::exchange(current_board(), &board);
    begin == 0 ? board.run(group) : board.help(group);
    current_board() = before;
  });
}

}  // namespace

void parallel_tasks(int64_t count, const std::function<void(int64_t)>& task) {
  if (count <= 0) return;
  Group group(count, task);
  if (Board* board = current_board())
    board->run(group);
  else
    run_outer(group);
  for (const std::exception_ptr& error : group.errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace tokamak
