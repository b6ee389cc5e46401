// Ranks that exchange tensors: what a backend is to memory and kernels, a communicator is to the other ranks of one
// axis of the mesh. It holds no policy: which tensors lie where, and who calls what when, is decided elsewhere. All
// ranks of a communicator make the same calls in the same order, each from one thread at a time; that holds for each
// communicator by itself. Tests: tests/backend/ranks, one suite for all of them.
#pragma once

#include "backend/queue.h"
#include "backend/slot_tree.h"
#include "base/communication_error.h"
#include "base/rank_progress.h"
#include "graph/reduction.h"
#include "graph/type.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

/// One call, as far as it must fit the calls of other ranks.
struct CommunicatorCall {
  enum class Op {
    kAllReduce,
    kReduceScatter,
    kAllGather,
    kAllToAll,
    kBroadcast,
    kSend,
    kRecv,
    kSendRecv,
    kBarrier,
    kExchange
  };
  Op op = Op::kBarrier;
  DType dtype = DType::kF32;
  int64_t count = 0;  // elements, as the operation counts them
  Reduction reduction = Reduction::kSum;
  int root = 0;          // of a broadcast; where a message goes
  int source = 0;        // where a message comes from
  int64_t received = 0;  // its elements

  bool operator==(const CommunicatorCall&) const = default;
};

/// "all_reduce(f32[8], max)".
std::string to_string(const CommunicatorCall& call);

/// Whether two ranks may meet in these calls: equal ones, or a message and its receipt.
bool fit(const CommunicatorCall& mine, int my_rank, const CommunicatorCall& theirs, int their_rank);

/// One of the sums that are taken at once: as the operands of ordered_all_reduce or ordered_reduce_scatter.
struct OrderedSum {
  std::span<const void* const> parts;
  void* to;
  int64_t count;
  void* scratch;
};

/// Which ranks of the world a communicator joins, and which of them this is.
struct Membership {
  std::string axis;                                  // of the mesh, for messages: "data"
  std::vector<int> ranks;                            // of the world, in the order of this communicator's own ranks
  int rank = 0;                                      // this one's index in it
  std::shared_ptr<RankProgress> progress = nullptr;  // of this rank, which notes there what it waits for; null: nowhere
};

/// Texts between the same ranks, on a thread of its own beside the calls of their communicator. All make the same calls
/// in the same order; a wait ends only with the run.
class TextChannel {
 public:
  virtual ~TextChannel() = default;
  /// What each rank has to say, in the order of ranks.
  virtual std::vector<std::string> exchange(std::string_view mine) = 0;
};

/// Pointers are in the backend's memory. Calls throw CommunicationError; so do those that would wait for a rank that is
/// gone. Every operation may be recorded (Backend::record) where its queue may. All ranks get the same bits from
/// all_reduce. The order of its sum is the library's; those that Tokamak adds itself (on the CPU) are added in the
/// order of ranks, in f32 for bf16 and f16, and rounded once.
class Communicator {
 public:
  explicit Communicator(Membership membership) : membership_(std::move(membership)) {}
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  const std::string& axis() const { return membership_.axis; }
  int rank() const { return membership_.rank; }
  int size() const { return int(membership_.ranks.size()); }
  const Membership& membership() const { return membership_; }
  /// Where this rank notes what it does; null: nowhere.
  RankProgress* progress() const { return membership_.progress.get(); }

  /// to[i] = sum or maximum of all ranks' from[i], for `count` elements. `to` may be `from`.
  void all_reduce(const void* from, void* to, int64_t count, DType dtype, Reduction reduction, Queue queue = nullptr);
  /// The same of size() pieces of `count` elements, of which rank r gets piece r. `to` may be that piece of `from`.
  void reduce_scatter(const void* from, void* to, int64_t count, DType dtype, Reduction reduction,
                      Queue queue = nullptr);
  /// All ranks' `count` elements, one rank after the other. `from` may be the rank's own piece of `to`.
  void all_gather(const void* from, void* to, int64_t count, DType dtype, Queue queue = nullptr);
  /// Piece r of `from` becomes piece rank() of rank r's `to`; each of `count` elements. They must not overlap.
  void all_to_all(const void* from, void* to, int64_t count, DType dtype, Queue queue = nullptr);
  /// `data` of rank `root`, to all.
  void broadcast(void* data, int64_t count, DType dtype, int root, Queue queue = nullptr);
  /// Waits for the receiver to receive; two ranks that both send first wait for ever (or get an error): see send_recv.
  void send(const void* from, int64_t count, DType dtype, int to_rank, Queue queue = nullptr);
  void recv(void* to, int64_t count, DType dtype, int from_rank, Queue queue = nullptr);
  /// Both at once, for rings and pipelines.
  void send_recv(const void* from, int64_t send_count, int to_rank, void* to, int64_t recv_count, int from_rank,
                 DType dtype, Queue queue = nullptr);
  /// On return (or, on a queue, after it) all ranks have called it.
  void barrier(Queue queue = nullptr);

  /// Calls of this communicator on one queue, of which none reads what another gives: they may go out as one. Ordered
  /// sums do not belong there.
  virtual void group(const std::function<void()>& calls) { calls(); }

  /// The sum over slots in their one order (backend/slot_tree.h): the same bits on any number of ranks that hold them.
  /// `parts` are this rank's subtrees, tree.parts(rank()), each of `count` elements. Each addition rounds to `dtype`,
  /// as the op add does. `scratch` has ordered_scratch_bytes(). `to` may be parts[0].
  void ordered_all_reduce(std::span<const void* const> parts, void* to, int64_t count, DType dtype,
                          const SlotTree& tree, void* scratch, Queue queue = nullptr);
  /// The same of size() pieces of `count` elements, of which rank r gets piece r.
  void ordered_reduce_scatter(std::span<const void* const> parts, void* to, int64_t count, DType dtype,
                              const SlotTree& tree, void* scratch, Queue queue = nullptr);
  /// The same of many at once, each with scratch memory of its own: each step of the sum is one group.
  void ordered_all_reduce(std::span<const OrderedSum> sums, DType dtype, const SlotTree& tree, Queue queue = nullptr);
  void ordered_reduce_scatter(std::span<const OrderedSum> sums, DType dtype, const SlotTree& tree,
                              Queue queue = nullptr);
  /// Enough for either, of parts of `elements` in all.
  int64_t ordered_scratch_bytes(int64_t elements, DType dtype, const SlotTree& tree) const;

  /// What each rank has to say, in the order of ranks: texts of any length, between hosts. Waits.
  std::vector<std::string> exchange(std::string_view mine);
  /// A communicator of some of these ranks; `members` are ranks of this one and contain rank(). All ranks call it at
  /// the same time, each with its own list, which its members share.
  std::unique_ptr<Communicator> split(const std::string& axis, std::span<const int64_t> members);

  /// All ranks call it at the same time; it must not outlive this.
  std::unique_ptr<TextChannel> open_channel(const std::string& name);

  /// From any thread: calls under way and all later ones, of all ranks of the world, fail with this reason.
  virtual void abort(std::string_view why) = 0;
  /// Throws if the world was aborted, or if work on a queue has failed meanwhile; to be called where results of the
  /// queue are waited for.
  virtual void check() = 0;

  /// Whether the world has failed because the process of its first rank is gone.
  virtual bool has_lost_leader() const { return false; }

  /// Whether calls are compared with those of other ranks before they are queued, where that takes time (nccl; at first
  /// they are). All ranks call it at the same place.
  virtual void compare_calls(bool /*on*/) {}

  /// "rank 3", as the world counts: for messages.
  std::string name_of(int rank) const;

 protected:
  /// Before each call, also one of no elements.
  virtual void begin(const CommunicatorCall& call) = 0;
  virtual void do_all_reduce(const void* from, void* to, int64_t count, DType dtype, Reduction reduction, Queue) = 0;
  virtual void do_reduce_scatter(const void* from, void* to, int64_t count, DType dtype, Reduction reduction,
                                 Queue) = 0;
  virtual void do_all_gather(const void* from, void* to, int64_t count, DType dtype, Queue) = 0;
  virtual void do_all_to_all(const void* from, void* to, int64_t count, DType dtype, Queue) = 0;
  virtual void do_broadcast(void* data, int64_t count, DType dtype, int root, Queue) = 0;
  /// A rank below 0: nothing in that direction.
  virtual void do_send_recv(const void* from, int64_t send_count, int to_rank, void* to, int64_t recv_count,
                            int from_rank, DType dtype, Queue) = 0;
  virtual void do_barrier(Queue) = 0;
  /// Ordered sums; what scatters leaves each rank its piece. By exchanges and add_tree, unless there is a better way.
  virtual void do_ordered_sums(std::span<const OrderedSum> sums, bool scatters, DType dtype, const SlotTree& tree,
                               Queue);
  /// The pieces, each of `count` elements and with its level, folded as SlotTree::order says.
  virtual void add_tree(std::span<const TreePiece> pieces, void* to, int64_t count, DType dtype, Queue) = 0;
  /// While the result lives this rank waits for others. `text` says in which call.
  [[nodiscard]] std::optional<RankProgress::Scope> wait_in(std::function<std::string()> text) const;
  virtual std::vector<std::string> do_exchange(std::string_view mine) = 0;
  virtual std::unique_ptr<Communicator> do_split(Membership membership) = 0;
  /// By a communicator of its own, unless there is a better way.
  virtual std::unique_ptr<TextChannel> do_open_channel(Membership membership);
  /// From now on this rank waits for another one as long as that, where waits have an end.
  virtual void wait_up_to(double /*seconds*/) {}

 private:
  void start(const CommunicatorCall& call);
  void exchange_parts(const OrderedSum& sum, int64_t piece, DType dtype, const SlotTree& tree, Queue queue);
  void scatter_ordered(std::span<const OrderedSum> sums, DType dtype, const SlotTree& tree, Queue queue);
  void reduce_ordered(std::span<const OrderedSum> sums, DType dtype, const SlotTree& tree, Queue queue);

  Membership membership_;
};

}  // namespace tokamak
