#include "backend/ranks/inprocess.h"

#include "backend/ranks/host_communicator.h"
#include "base/error.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

namespace tokamak {
namespace {

// What all groups of a run share.
struct World {
  explicit World(const InProcessOptions& o) : options(o) {}

  // The first reason stays. Under the mutex.
  void fail(std::string why) {
    if (failure.empty()) failure = std::move(why);
    changed.notify_all();
  }

  const InProcessOptions options;
  std::mutex mutex;
  std::condition_variable changed;
  std::string failure;  // empty: none
};

// What one rank leaves for another one to read: its own calls and memory, while it is in them.
struct Post {
  bool full = false;
  bool reading = false;  // by the other rank, outside of the mutex
  const std::vector<CommunicatorCall>* calls = nullptr;
  const std::vector<Meeting::Outgoing>* messages = nullptr;
};

struct Group {
  Group(std::shared_ptr<World> w, int size)
      : world(std::move(w)), posts(size_t(size) * size_t(size)), left(size_t(size), false) {}

  Post& post(int from, int to) { return posts[size_t(from) * left.size() + size_t(to)]; }

  std::shared_ptr<World> world;
  std::vector<Post> posts;
  std::vector<bool> left;  // ranks whose communicator is gone
  // Splits that some of their members have not come to yet: by the number of the split and its first member.
  std::map<std::pair<int64_t, int>, std::shared_ptr<Group>> splits;
  std::map<std::pair<int64_t, int>, int> came;
};

class InProcess : public HostCommunicator {
 public:
  InProcess(std::shared_ptr<Group> group, Membership membership)
      : HostCommunicator(std::move(membership)), group_(std::move(group)), world_(*group_->world) {}
  ~InProcess() override {
    std::lock_guard lock(world_.mutex);
    group_->left[size_t(rank())] = true;
    world_.changed.notify_all();
  }

  void abort(std::string_view why) override {
    std::lock_guard lock(world_.mutex);
    world_.fail(std::string(why));
  }
  void check() override {
    std::lock_guard lock(world_.mutex);
    throw_if_failed();
  }

 protected:
  void transfer(const Meetings& meetings) override {
    std::unique_lock lock(world_.mutex);
    for (const auto& [peer, meeting] : meetings) group_->post(rank(), peer) = {true, false, &calls(), &meeting.out};
    world_.changed.notify_all();
    try {
      for (const auto& [peer, meeting] : meetings) meet(lock, peer);
      for (const auto& [peer, meeting] : meetings) read(lock, peer, meeting.in);
      for (const auto& [peer, meeting] : meetings) group_->post(peer, rank()).full = false;
      world_.changed.notify_all();
      for (const auto& [peer, meeting] : meetings)
        wait(lock, peer, [this, mine = peer] { return !group_->post(rank(), mine).full; });
    } catch (...) {
      withdraw(lock, meetings);
      throw;
    }
  }

  std::unique_ptr<Communicator> do_split(Membership membership) override {
    std::lock_guard lock(world_.mutex);
    std::pair<int64_t, int> key{splits_++, membership.ranks[0]};
    std::shared_ptr<Group>& group = group_->splits[key];
    int size = int(membership.ranks.size());
    if (!group) group = std::make_shared<Group>(group_->world, size);
    auto made = std::make_unique<InProcess>(group, std::move(membership));
    if (++group_->came[key] == size) group_->splits.erase(key), group_->came.erase(key);
    return made;
  }
  void wait_up_to(double seconds) override { timeout_seconds_ = seconds; }

 private:
  void meet(std::unique_lock<std::mutex>& lock, int peer) {
    const Post& theirs = group_->post(peer, rank());
    wait(lock, peer, [&] { return theirs.full; });
    std::string wrong = mismatch(*theirs.calls, peer);
    if (wrong.empty()) return;
    world_.fail(std::move(wrong));
    throw_if_failed();
  }

  void read(std::unique_lock<std::mutex>& lock, int peer, const std::vector<Meeting::Incoming>& messages) {
    Post& theirs = group_->post(peer, rank());
    auto alike = [](const Meeting::Outgoing& sent, const Meeting::Incoming& awaited) {
      return sent.bytes == awaited.bytes;
    };
    throw_if_failed();
    TOKAMAK_CHECK(theirs.full && std::equal(theirs.messages->begin(), theirs.messages->end(), messages.begin(),
                                            messages.end(), alike),
                  "[{}] {}: other messages came than were expected", axis(), calls_text());
    theirs.reading = true;
    lock.unlock();
    for (size_t i = 0; i < messages.size(); ++i)
      if (messages[i].bytes > 0) std::memcpy(messages[i].data, (*theirs.messages)[i].data, size_t(messages[i].bytes));
    lock.lock();
    theirs.reading = false;
    world_.changed.notify_all();
  }

  // Of a call that failed: nobody reads this rank's memory any more when it returns.
  void withdraw(std::unique_lock<std::mutex>& lock, const Meetings& meetings) {
    for (const auto& [peer, meeting] : meetings) {
      Post& mine = group_->post(rank(), peer);
      world_.changed.wait(lock, [&] { return !mine.reading; });
      mine.full = false;
    }
  }

  template <class Ready>
  void wait(std::unique_lock<std::mutex>& lock, int peer, const Ready& ready) {
    using namespace std::chrono;
    auto deadline = steady_clock::now() + duration_cast<nanoseconds>(duration<double>(timeout_seconds_));
    auto over = [&] { return !world_.failure.empty() || ready() || group_->left[size_t(peer)]; };
    bool in_time = world_.changed.wait_until(lock, deadline, over);
    throw_if_failed();
    if (ready()) return;
    world_.fail(in_time ? fmt::format("[{}] {} waits in {} for {}, which has ended", axis(), name_of(rank()),
                                      calls_text(), name_of(peer))
                        : fmt::format("[{}] {} has waited {} s in {} for {}", axis(), name_of(rank()), timeout_seconds_,
                                      calls_text(), name_of(peer)));
    throw_if_failed();
  }

  void throw_if_failed() const {
    if (!world_.failure.empty()) throw CommunicationError(world_.failure);
  }

  std::shared_ptr<Group> group_;
  World& world_;
  double timeout_seconds_ = world_.options.timeout_seconds;
  int64_t splits_ = 0;
};

// What was thrown first, by any rank: an error of its own before those of ranks that waited for it, which may learn
// that it leaves before it has told why.
class FirstError {
 public:
  // Both are kept until all threads have ended: one that is replaced would be freed while its own rank reads its text,
  // which only the count inside libstdc++ orders, and that a thread sanitizer does not see.
  void take(std::exception_ptr error, bool is_own) {
    std::lock_guard lock(mutex_);
    std::exception_ptr& first = is_own ? own_ : of_waiting_;
    if (!first) first = std::move(error);
  }
  void rethrow() const {
    if (own_) std::rethrow_exception(own_);
    if (of_waiting_) std::rethrow_exception(of_waiting_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr own_;
  std::exception_ptr of_waiting_;
};

void run_rank(Communicator& world, const std::function<void(Communicator&)>& body, FirstError& first) {
  try {
    body(world);
  } catch (const CommunicationError& error) {
    first.take(std::current_exception(), false);
    world.abort(error.what());
  } catch (const std::exception& error) {
    first.take(std::current_exception(), true);
    world.abort(fmt::format("{} failed: {}", world.name_of(world.rank()), error.what()));
  }
  if (world.progress()) world.progress()->ended();
}

}  // namespace

void run_ranks(int ranks, const std::function<void(Communicator& world)>& body, const InProcessOptions& options) {
  TOKAMAK_CHECK(ranks > 0, "{} ranks", ranks);
  auto group = std::make_shared<Group>(std::make_shared<World>(options), ranks);
  if (options.on_start)
    options.on_start([world = group->world](const std::string& why) {
      std::lock_guard lock(world->mutex);
      world->fail(why);
    });
  Membership membership{.axis = "world", .ranks = {}, .rank = 0};
  for (int rank = 0; rank < ranks; ++rank) membership.ranks.push_back(rank);
  std::vector<std::unique_ptr<InProcess>> worlds;
  for (; membership.rank < ranks; ++membership.rank) {
    if (!options.progress.empty()) membership.progress = options.progress[size_t(membership.rank)];
    worlds.push_back(std::make_unique<InProcess>(group, membership));
  }
  FirstError first;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    try {
      threads.emplace_back([&first, &body, world = std::move(worlds[size_t(rank)])] { run_rank(*world, body, first); });
    } catch (const std::system_error& error) {
      group->world->mutex.lock();
      group->world->fail("not all ranks could be started");
      group->world->mutex.unlock();
      for (std::thread& thread : threads) thread.join();
      user_error("[mesh] cannot start {} threads: {}; use fewer ranks, or allow more threads (ulimit -u)", ranks,
                 error.code().message());
    }
  }
  for (std::thread& thread : threads) thread.join();
  first.rethrow();
}

}  // namespace tokamak
