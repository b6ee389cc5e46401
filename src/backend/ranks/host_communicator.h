// All operations of a communicator in the CPU's memory, out of one: messages to and from some of the ranks at once.
#pragma once

#include "backend/communicator.h"

namespace tokamak {

class HostCommunicator : public Communicator {
 public:
  using Communicator::Communicator;

 protected:
  struct Outgoing {
    int to;
    const void* data;
    int64_t bytes;
  };
  struct Incoming {
    int from;
    void* data;
    int64_t bytes;
  };

  /// Sends and receives, each at most one message to and from a rank, none to itself; on return all have arrived and
  /// what was sent may be overwritten. Checks that the other ranks' calls fit call().
  virtual void transfer(std::span<const Outgoing> out, std::span<const Incoming> in) = 0;
  /// The one under way.
  const CommunicatorCall& call() const { return call_; }

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
  /// Sends piece r of `from` to rank r and receives piece r of `to` from it, for all others; `bytes` a piece.
  void swap_pieces(const std::byte* from, std::byte* to, int64_t bytes);
  /// Sends `from` to all others, piece r of `to` comes from rank r; this one's own is copied.
  void gather(const void* from, std::byte* to, int64_t bytes);
  /// Piece rank() of all ranks' `from`, reduced.
  void reduce_own(const std::byte* from, void* to, int64_t count, DType dtype, Reduction reduction);

  CommunicatorCall call_;
};

}  // namespace tokamak
