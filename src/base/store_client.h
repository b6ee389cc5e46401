// One rank's connection to the store of a run (base/store_server.h). Tests: tests/base/store_test.cpp.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/communication_error.h"
#include "base/file.h"
#include "base/frames.h"
#include "base/socket.h"

namespace tokamak {

/// For any thread.
class StoreClient {
 public:
  struct Options {
    std::string host;
    int port = 0;
    int rank = 0;
    int world = 1;
    std::string token;
    double join_seconds = 300;     // to reach rank 0, which may start later
    double timeout_seconds = 300;  // of every wait behind that
  };

  /// Connects, trying for join_seconds while nobody serves or the store drops it, and joins. UserError when it is
  /// turned away.
  explicit StoreClient(Options options);
  /// Leaves; while an exception is under way it breaks the connection instead, so that others learn of it.
  ~StoreClient();
  StoreClient(const StoreClient&) = delete;
  StoreClient& operator=(const StoreClient&) = delete;

  int rank() const { return options_.rank; }
  int world() const { return options_.world; }

  void set(const std::string& key, const std::string& value);
  /// Waits until it is set.
  std::string get(const std::string& key);
  /// The same, and removes it.
  std::string take(const std::string& key);
  /// Waits until `size` ranks have called it with this key, each with another index below `size`; their values in the
  /// order of indices. The key is free again afterwards. `seconds`: of this wait, instead of the usual.
  std::vector<std::string> exchange(const std::string& key, int index, int size, const std::string& value,
                                    std::optional<double> seconds = {});

  /// Ends the run: every wait of every rank fails with this reason.
  void fail(const std::string& reason);
  /// Why the run has failed; empty: it has not.
  std::string failure() const;
  /// Throws CommunicationError if it has.
  void check() const;
  /// Whether it has failed because rank 0, which serves the store, is gone.
  bool has_lost_leader() const;

  /// Is called once, on a thread of the client, when the run fails, or at once if it has. It must not wait for the
  /// store. After unsubscribe() it is not running and is not called any more.
  int on_failure(std::function<void(const std::string& reason)> call);
  void unsubscribe(int subscription);

  /// What this rank answers when one asks all where they stand; on a thread of the client, so also while all others of
  /// this process hang. It must not wait. Empty: it answers nothing but that it is there.
  void answer_roll_call(std::function<std::string()> answer);
  /// What all ranks answer, by rank; nothing of those that do not within `seconds`. A rank that has left or has not
  /// joined answers an empty text. Where rank 0, which asks them, does not answer itself, nobody else is known.
  std::vector<std::optional<std::string>> roll_call(double seconds);
  /// Ends the run for this rank, where rank 0 is alive and cannot tell the others.
  void lose_leader(const std::string& reason) { fail_locally(reason, true); }

  /// What proves to other clients, on connections of their own, that this one knows the run's token (store_proof).
  std::string proof(const std::string& role, const std::string& listener_nonce, const std::string& caller_nonce,
                    const std::string& who) const;

  /// This machine's address, as the connection has it.
  std::string address() const;

 private:
  void join_in_time(Deadline deadline);
  bool join();
  std::optional<Frame> receive_one();
  // Nothing: there is no answer in time.
  std::optional<Frame> try_ask(const std::string& kind, const std::string& key, Frame rest, double seconds);
  Frame ask(const std::string& kind, const std::string& key, Frame rest, double seconds);
  std::string value_of(const std::string& kind, const std::string& key);
  void listen();
  void handle(Frame frame);
  void answer_where(const std::string& round);
  void fail_locally(const std::string& reason, bool lost_leader = false);
  void send(const Frame& frame);

  Options options_;
  FileDescriptor socket_;
  FrameReader reader_;
  int exceptions_;  // under way when this was made
  std::mutex sending_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int64_t, std::optional<Frame>> replies_;  // by request; none yet while it is waited for
  int64_t requests_ = 0;
  std::string failure_;
  bool lost_leader_ = false;
  bool leaving_ = false;
  std::recursive_mutex calling_;  // while subscribers are called
  std::map<int, std::function<void(const std::string&)>> subscribers_;
  int subscriptions_ = 0;
  std::function<std::string()> roll_answer_;
  std::thread listener_;
};

}  // namespace tokamak
