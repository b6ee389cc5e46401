#include "backend/communicator.h"

#include "base/error.h"

#include <algorithm>
#include <cstddef>

namespace tokamak {
namespace {

using Op = CommunicatorCall::Op;

constexpr double kEndlessSeconds = 1e6;

class CommunicatorChannel : public TextChannel {
 public:
  explicit CommunicatorChannel(std::unique_ptr<Communicator> ranks) : ranks_(std::move(ranks)) {}
  std::vector<std::string> exchange(std::string_view mine) override { return ranks_->exchange(mine); }

 private:
  std::unique_ptr<Communicator> ranks_;
};

std::string_view op_name(Op op) {
  switch (op) {
    case Op::kAllReduce: return "all_reduce";
    case Op::kReduceScatter: return "reduce_scatter";
    case Op::kAllGather: return "all_gather";
    case Op::kAllToAll: return "all_to_all";
    case Op::kBroadcast: return "broadcast";
    case Op::kSend: return "send";
    case Op::kRecv: return "recv";
    case Op::kSendRecv: return "send_recv";
    case Op::kBarrier: return "barrier";
    case Op::kExchange: return "exchange";
  }
  return "";
}

bool is_message(const CommunicatorCall& call) {
  return call.op == Op::kSend || call.op == Op::kRecv || call.op == Op::kSendRecv;
}

// Elements that `call` sends to, or receives from, a rank; -1: nothing.
int64_t sent_to(const CommunicatorCall& call, int rank) {
  return call.op != Op::kRecv && call.root == rank ? call.count : -1;
}
int64_t received_from(const CommunicatorCall& call, int rank) {
  return call.op != Op::kSend && call.source == rank ? call.received : -1;
}

const std::byte* at(const void* data, int64_t element, DType dtype) {
  return static_cast<const std::byte*>(data) + element * dtype_bytes(dtype);
}
std::byte* at(void* data, int64_t element, DType dtype) {
  return static_cast<std::byte*>(data) + element * dtype_bytes(dtype);
}

// What comes of an ordered sum's parts: those of all ranks lie in scratch memory as [part][rank][count].
std::vector<TreePiece> pieces_of_all(const SlotTree& tree, const void* received, int64_t count, DType dtype) {
  std::vector<TreePiece> pieces;
  for (int rank = 0; rank < tree.ranks; ++rank) {
    std::vector<Subtree> parts = tree.parts(rank);
    for (size_t part = 0; part < parts.size(); ++part)
      pieces.push_back({at(received, (int64_t(part) * tree.ranks + rank) * count, dtype), parts[part].level});
  }
  return pieces;
}

}  // namespace

std::string to_string(const CommunicatorCall& call) {
  std::string_view name = op_name(call.op), type = dtype_name(call.dtype);
  std::string sent = fmt::format("{}[{}] to rank {}", type, call.count, call.root);
  std::string received = fmt::format("{}[{}] from rank {}", type, call.received, call.source);
  switch (call.op) {
    case Op::kAllReduce:
    case Op::kReduceScatter:
      return fmt::format("{}({}[{}], {})", name, type, call.count, reduction_name(call.reduction));
    case Op::kAllGather:
    case Op::kAllToAll: return fmt::format("{}({}[{}])", name, type, call.count);
    case Op::kBroadcast: return fmt::format("{}({}[{}] of rank {})", name, type, call.count, call.root);
    case Op::kSend: return fmt::format("{}({})", name, sent);
    case Op::kRecv: return fmt::format("{}({})", name, received);
    case Op::kSendRecv: return fmt::format("{}({}, {})", name, sent, received);
    case Op::kBarrier:
    case Op::kExchange: return std::string(name);
  }
  return "";
}

bool fit(const CommunicatorCall& mine, int my_rank, const CommunicatorCall& theirs, int their_rank) {
  if (!is_message(mine) || !is_message(theirs)) return mine == theirs;
  return mine.dtype == theirs.dtype && sent_to(mine, their_rank) == received_from(theirs, my_rank) &&
         received_from(mine, their_rank) == sent_to(theirs, my_rank);
}

std::string Communicator::name_of(int rank) const { return fmt::format("rank {}", membership_.ranks[size_t(rank)]); }

std::optional<RankProgress::Scope> Communicator::wait_in(std::function<std::string()> text) const {
  return progress() ? std::optional(progress()->wait_in(std::move(text))) : std::nullopt;
}

void Communicator::start(const CommunicatorCall& call) {
  TOKAMAK_CHECK(call.count >= 0 && call.received >= 0, "[{}] {}", axis(), to_string(call));
  TOKAMAK_CHECK(call.root < size() && call.source < size(), "[{}] {}: there are {} ranks", axis(), to_string(call),
                size());
  begin(call);
}

void Communicator::all_reduce(const void* from, void* to, int64_t count, DType dtype, Reduction reduction,
                              Queue queue) {
  start({.op = Op::kAllReduce, .dtype = dtype, .count = count, .reduction = reduction});
  if (count > 0) do_all_reduce(from, to, count, dtype, reduction, queue);
}

void Communicator::reduce_scatter(const void* from, void* to, int64_t count, DType dtype, Reduction reduction,
                                  Queue queue) {
  start({.op = Op::kReduceScatter, .dtype = dtype, .count = count, .reduction = reduction});
  if (count > 0) do_reduce_scatter(from, to, count, dtype, reduction, queue);
}

void Communicator::all_gather(const void* from, void* to, int64_t count, DType dtype, Queue queue) {
  start({.op = Op::kAllGather, .dtype = dtype, .count = count});
  if (count > 0) do_all_gather(from, to, count, dtype, queue);
}

void Communicator::all_to_all(const void* from, void* to, int64_t count, DType dtype, Queue queue) {
  start({.op = Op::kAllToAll, .dtype = dtype, .count = count});
  if (count > 0) do_all_to_all(from, to, count, dtype, queue);
}

void Communicator::broadcast(void* data, int64_t count, DType dtype, int root, Queue queue) {
  TOKAMAK_CHECK(root >= 0, "[{}] broadcast of rank {}", axis(), root);
  start({.op = Op::kBroadcast, .dtype = dtype, .count = count, .root = root});
  if (count > 0) do_broadcast(data, count, dtype, root, queue);
}

void Communicator::send(const void* from, int64_t count, DType dtype, int to_rank, Queue queue) {
  TOKAMAK_CHECK(to_rank >= 0 && to_rank != rank(), "[{}] rank {} sends to rank {}", axis(), rank(), to_rank);
  start({.op = Op::kSend, .dtype = dtype, .count = count, .root = to_rank});
  do_send_recv(from, count, to_rank, nullptr, 0, -1, dtype, queue);
}

void Communicator::recv(void* to, int64_t count, DType dtype, int from_rank, Queue queue) {
  TOKAMAK_CHECK(from_rank >= 0 && from_rank != rank(), "[{}] rank {} receives from rank {}", axis(), rank(), from_rank);
  start({.op = Op::kRecv, .dtype = dtype, .source = from_rank, .received = count});
  do_send_recv(nullptr, 0, -1, to, count, from_rank, dtype, queue);
}

void Communicator::send_recv(const void* from, int64_t send_count, int to_rank, void* to, int64_t recv_count,
                             int from_rank, DType dtype, Queue queue) {
  TOKAMAK_CHECK(std::min(to_rank, from_rank) >= 0, "[{}] send_recv to {} and from {}", axis(), to_rank, from_rank);
  TOKAMAK_CHECK((to_rank == rank()) == (from_rank == rank()), "[{}] a message from {} to {}", axis(), from_rank,
                to_rank);
  start({.op = Op::kSendRecv,
         .dtype = dtype,
         .count = send_count,
         .root = to_rank,
         .source = from_rank,
         .received = recv_count});
  do_send_recv(from, send_count, to_rank, to, recv_count, from_rank, dtype, queue);
}

void Communicator::barrier(Queue queue) {
  start({.op = Op::kBarrier});
  do_barrier(queue);
}

int64_t Communicator::ordered_scratch_bytes(int64_t elements, DType dtype, const SlotTree& tree) const {
  // Parts in whole pieces, and less than size() elements more from each rank.
  return tree.max_parts() * (elements + int64_t(size()) * size()) * dtype_bytes(dtype);
}

void Communicator::ordered_reduce_scatter(std::span<const OrderedSum> sums, DType dtype, const SlotTree& tree,
                                          Queue queue) {
  do_ordered_sums(sums, true, dtype, tree, queue);
}

void Communicator::ordered_all_reduce(std::span<const OrderedSum> sums, DType dtype, const SlotTree& tree,
                                      Queue queue) {
  do_ordered_sums(sums, false, dtype, tree, queue);
}

void Communicator::do_ordered_sums(std::span<const OrderedSum> sums, bool scatters, DType dtype, const SlotTree& tree,
                                   Queue queue) {
  scatters ? scatter_ordered(sums, dtype, tree, queue) : reduce_ordered(sums, dtype, tree, queue);
}

// Every rank gets its piece of what all ranks have.
void Communicator::exchange_parts(const OrderedSum& sum, int64_t piece, DType dtype, const SlotTree& tree,
                                  Queue queue) {
  TOKAMAK_CHECK(tree.ranks == size() && sum.parts.size() == tree.parts(rank()).size(), "[{}] {} parts of {} slots",
                axis(), sum.parts.size(), tree.slots);
  // Ranks with fewer parts than others send their first again, which nobody reads.
  for (int part = 0, most = tree.max_parts(); part < most; ++part)
    all_to_all(sum.parts[size_t(part) < sum.parts.size() ? size_t(part) : 0],
               at(sum.scratch, part * size() * piece, dtype), piece, dtype, queue);
}

void Communicator::scatter_ordered(std::span<const OrderedSum> sums, DType dtype, const SlotTree& tree, Queue queue) {
  group([&] {
    for (const OrderedSum& sum : sums) exchange_parts(sum, sum.count, dtype, tree, queue);
  });
  for (const OrderedSum& sum : sums)
    if (sum.count > 0) add_tree(pieces_of_all(tree, sum.scratch, sum.count, dtype), sum.to, sum.count, dtype, queue);
}

void Communicator::reduce_ordered(std::span<const OrderedSum> sums, DType dtype, const SlotTree& tree, Queue queue) {
  auto piece_of = [&](const OrderedSum& sum) { return sum.count / size(); };
  auto cut_of = [&](const OrderedSum& sum) { return piece_of(sum) * size(); };
  auto rest_of = [&](const OrderedSum& sum) { return sum.count - cut_of(sum); };
  auto own_piece = [&](const OrderedSum& sum) { return at(sum.to, piece_of(sum) * rank(), dtype); };
  // Fewer elements than ranks: each rank adds them all.
  auto received_rest = [&](const OrderedSum& sum) { return at(sum.scratch, tree.max_parts() * cut_of(sum), dtype); };
  auto gather_rest = [&](const OrderedSum& sum) {
    for (int part = 0, most = tree.max_parts(); part < most && rest_of(sum) > 0; ++part)
      all_gather(at(sum.parts[size_t(part) < sum.parts.size() ? size_t(part) : 0], cut_of(sum), dtype),
                 at(received_rest(sum), part * size() * rest_of(sum), dtype), rest_of(sum), dtype, queue);
  };
  group([&] {
    for (const OrderedSum& sum : sums) exchange_parts(sum, piece_of(sum), dtype, tree, queue), gather_rest(sum);
  });
  for (const OrderedSum& sum : sums) {
    int64_t piece = piece_of(sum), rest = rest_of(sum);
    if (piece > 0) add_tree(pieces_of_all(tree, sum.scratch, piece, dtype), own_piece(sum), piece, dtype, queue);
    if (rest > 0)
      add_tree(pieces_of_all(tree, received_rest(sum), rest, dtype), at(sum.to, cut_of(sum), dtype), rest, dtype,
               queue);
  }
  group([&] {
    for (const OrderedSum& sum : sums) all_gather(own_piece(sum), sum.to, piece_of(sum), dtype, queue);
  });
}

void Communicator::ordered_reduce_scatter(std::span<const void* const> parts, void* to, int64_t count, DType dtype,
                                          const SlotTree& tree, void* scratch, Queue queue) {
  OrderedSum sum{parts, to, count, scratch};
  ordered_reduce_scatter({&sum, 1}, dtype, tree, queue);
}

void Communicator::ordered_all_reduce(std::span<const void* const> parts, void* to, int64_t count, DType dtype,
                                      const SlotTree& tree, void* scratch, Queue queue) {
  OrderedSum sum{parts, to, count, scratch};
  ordered_all_reduce({&sum, 1}, dtype, tree, queue);
}

std::vector<std::string> Communicator::exchange(std::string_view mine) {
  start({.op = Op::kExchange});
  std::optional<RankProgress::Scope> waits = wait_in([] { return std::string("a decision of all ranks"); });
  return do_exchange(mine);
}

std::unique_ptr<Communicator> Communicator::split(const std::string& axis, std::span<const int64_t> members) {
  std::string mine = fmt::format("split('{}'", axis);
  for (int64_t member : members) mine += fmt::format(" {}", member);
  std::vector<std::string> said = exchange(mine + ")");
  Membership membership{.axis = axis, .ranks = {}, .rank = -1, .progress = membership_.progress};
  for (int64_t member : members) {
    TOKAMAK_CHECK(0 <= member && member < size(), "[{}] {} names a rank that is not there", this->axis(), mine);
    if (said[size_t(member)] != said[size_t(rank())]) {
      std::string why = fmt::format("[{}] expected the same split on {} and {}, got {} and {}", this->axis(),
                                    name_of(rank()), name_of(int(member)), said[size_t(rank())], said[size_t(member)]);
      abort(why);
      throw CommunicationError(why);
    }
    if (member == rank()) membership.rank = int(membership.ranks.size());
    membership.ranks.push_back(membership_.ranks[size_t(member)]);
  }
  TOKAMAK_CHECK(membership.rank >= 0, "[{}] {} lacks rank {}, which calls it", this->axis(), mine, rank());
  return do_split(std::move(membership));
}

std::unique_ptr<TextChannel> Communicator::open_channel(const std::string& name) {
  Membership membership = membership_;
  membership.axis = name;
  membership.progress = nullptr;  // who is awaited there hangs nobody
  return do_open_channel(std::move(membership));
}

std::unique_ptr<TextChannel> Communicator::do_open_channel(Membership membership) {
  std::unique_ptr<Communicator> ranks = do_split(std::move(membership));
  ranks->wait_up_to(kEndlessSeconds);
  return std::make_unique<CommunicatorChannel>(std::move(ranks));
}

}  // namespace tokamak
