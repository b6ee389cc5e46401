// All operations of a communicator in the CPU's memory, out of one: messages to and from other ranks at once.
#pragma once

#include "backend/communicator.h"

#include <map>

namespace tokamak {

/// What goes to one other rank and comes from it, in an order that both know.
struct Meeting {
  struct Outgoing {
    const void* data;
    int64_t bytes;
  };
  struct Incoming {
    void* data;
    int64_t bytes;
  };
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
};

class HostCommunicator : public Communicator {
 public:
  using Communicator::Communicator;

  /// Small ones travel together, so that many small tensors cost a latency once.
  void group(const std::function<void()>& calls) override;

 protected:
  using Meetings = std::map<int, Meeting>;  // by the other rank

  /// Sends and receives; on return all has arrived and what was sent may be overwritten. Checks that the other ranks'
  /// calls fit calls().
  virtual void transfer(const Meetings& meetings) = 0;
  /// Those under way, which travel together.
  const std::vector<CommunicatorCall>& calls() const { return calls_; }
  /// The same for messages: "all_gather(f32[8]) and 3 more".
  std::string calls_text() const;
  /// What is wrong with the calls of another rank that meets these; empty: they fit.
  std::string mismatch(std::span<const CommunicatorCall> theirs, int peer) const;

  void begin(const CommunicatorCall& call) override;
  void do_all_reduce(const void*, void*, int64_t, DType, Reduction, Queue) override;
  void do_reduce_scatter(const void*, void*, int64_t, DType, Reduction, Queue) override;
  void do_all_gather(const void*, void*, int64_t, DType, Queue) override;
  void do_all_to_all(const void*, void*, int64_t, DType, Queue) override;
  void do_broadcast(void*, int64_t, DType, int root, Queue) override;
  void do_send_recv(const void*, int64_t, int to_rank, void*, int64_t, int from_rank, DType, Queue) override;
  void do_barrier(Queue) override;
  void add_tree(std::span<const TreePiece>, void*, int64_t, DType, Queue) override;
  std::vector<std::string> do_exchange(std::string_view mine) override;

 private:
  /// Messages, and what is done when they are there.
  struct Round {
    Meetings meetings;
    std::function<void()> then;
  };
  /// A call: rounds, one after the other.
  struct Work {
    CommunicatorCall call;
    std::vector<Round> rounds;
  };

  // `bytes` for each other rank, those of the next one `step` further (0: the same for all), and theirs side by side.
  void add_exchange(Meetings& meetings, const std::byte* from, int64_t step, std::byte* to, int64_t bytes) const;
  /// Piece rank() of all ranks' `from`, reduced.
  Round reduce_own(const std::byte* from, void* to, int64_t count, DType dtype, Reduction reduction) const;
  /// All elements of all ranks' `from`, reduced.
  Round reduce_all(const std::byte* from, void* to, int64_t count, DType dtype, Reduction reduction) const;

  /// Runs the call that begin() told of, or keeps it until the group is run. `bytes`: of what it sends and receives.
  void perform(std::vector<Round> rounds, int64_t bytes);
  void run(const std::vector<Work>& works);
  void meet(const Meetings& meetings);
  void run_waiting();

  CommunicatorCall call_;
  std::vector<CommunicatorCall> calls_;
  bool grouping_ = false;
  std::vector<Work> waiting_;  // of a group
  int64_t waiting_bytes_ = 0;
};

}  // namespace tokamak
