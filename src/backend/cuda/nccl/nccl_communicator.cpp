#include "backend/cuda/nccl/mailbox.h"
#include "backend/cuda/nccl/nccl_run.h"
#include "backend/cuda/nccl/rank_sum_launch.h"
#include "base/divide.h"
#include "base/error.h"
#include "base/system.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace tokamak::cuda {
namespace {

ncclDataType_t nccl_type(DType dtype) {
  switch (dtype) {
    case DType::kF32: return ncclFloat32;
    case DType::kBF16: return ncclBfloat16;
    case DType::kF16: return ncclFloat16;
    case DType::kI32: return ncclInt32;
    case DType::kF8E4M3:  // moved, never summed
    case DType::kF8E5M2:
    case DType::kU8: return ncclUint8;
  }
  return ncclFloat32;
}

// Of a kernel of NCCL where what is large goes by mail: its buffers take memory for each.
constexpr int kBlocksBesideMail = 4;

ncclRedOp_t nccl_op(Reduction reduction) { return reduction == Reduction::kSum ? ncclSum : ncclMax; }

cudaStream_t stream_of(Queue queue) { return static_cast<cudaStream_t>(queue); }

const std::byte* piece_at(const void* data, int64_t element, DType dtype) {
  return static_cast<const std::byte*>(data) + element * dtype_bytes(dtype);
}
std::byte* piece_at(void* data, int64_t element, DType dtype) {
  return static_cast<std::byte*>(data) + element * dtype_bytes(dtype);
}

// Ranks that a call meets, of `size`.
std::vector<int> peers_of(const CommunicatorCall& call, int rank, int size) {
  using Op = CommunicatorCall::Op;
  std::vector<int> peers;
  for (int peer = 0; peer < size; ++peer) {
    bool sends = (call.op == Op::kSend || call.op == Op::kSendRecv) && call.root == peer;
    bool receives = (call.op == Op::kRecv || call.op == Op::kSendRecv) && call.source == peer;
    bool message = call.op == Op::kSend || call.op == Op::kRecv || call.op == Op::kSendRecv;
    if (peer != rank && (!message || sends || receives)) peers.push_back(peer);
  }
  return peers;
}

// Through the run's store, without a device.
class StoreChannel : public TextChannel {
 public:
  StoreChannel(std::shared_ptr<NcclRun> run, std::string key, int rank, int size)
      : run_(std::move(run)), key_(std::move(key)), rank_(rank), size_(size) {}

  std::vector<std::string> exchange(std::string_view mine) override {
    constexpr double kEndlessSeconds = 1e6;
    return run_->store.exchange(fmt::format("{}/{}", key_, exchanges_++), rank_, size_, std::string(mine),
                                kEndlessSeconds);
  }

 private:
  std::shared_ptr<NcclRun> run_;
  std::string key_;
  int rank_, size_;
  int64_t exchanges_ = 0;
};

class NcclCommunicator : public Communicator {
 public:
  // `key` is this communicator's own, and the same on all its ranks. `mails`: its ranks will send each other
  // much; else it finds out.
  NcclCommunicator(std::shared_ptr<NcclRun> run, std::string key, Membership membership, bool mails)
      : Communicator(std::move(membership)), run_(std::move(run)), key_(std::move(key)), met_(size_t(size()), 0),
        nothing_(int64_t(sizeof(int32_t))) {
    run_->add(handle_);
    try {
      find_hosts();
      if (mails) open_mailbox();
      connect();
    } catch (...) {
      run_->remove(handle_);
      throw;
    }
  }
  ~NcclCommunicator() override { run_->remove(handle_); }

  void abort(std::string_view why) override { run_->store.fail(std::string(why)); }
  void check() override {
    run_->store.check();
    ncclResult_t state = handle_.state();
    if (state != ncclSuccess && state != ncclInProgress) give_up(handle_.describe(state));
  }
  void compare_calls(bool on) override { compare_ = on; }

  void group(const std::function<void()>& calls) override {
    grouped_.emplace();
    ncclResult_t result = ncclGroupStart();
    try {
      calls();
    } catch (...) {
      grouped_.reset();
      ncclGroupEnd();
      throw;
    }
    bool mails = !grouped_->exchanges.empty() && goes_by_mail(grouped_->exchanges);
    if (!mails)
      for (const Exchange& one : grouped_->exchanges) by_nccl(one, grouped_->queue);
    Grouped done = std::move(*grouped_);
    grouped_.reset();
    note(result, done.result);
    note(result, handle_.call([](ncclComm_t) { return ncclGroupEnd(); }));
    settle(result);
    if (mails) mail_alike(std::move(done.exchanges), done.queue);
    if (done.queue) expect(done.queue);  // else there was no call
  }

 protected:
  void begin(const CommunicatorCall& call) override {
    run_->store.check();
    call_ = call;
    if (compare_) compare();
  }

  void do_all_reduce(const void* from, void* to, int64_t count, DType dtype, Reduction reduction,
                     Queue queue) override {
    if (reduction == Reduction::kSum)
      return exchange({CommunicatorCall::Op::kAllReduce, from, to, count, dtype}, queue);
    enqueue(queue, [&](ncclComm_t comm, cudaStream_t stream) {
      return ncclAllReduce(from, to, size_t(count), nccl_type(dtype), nccl_op(reduction), comm, stream);
    });
  }
  void do_reduce_scatter(const void* from, void* to, int64_t count, DType dtype, Reduction reduction,
                         Queue queue) override {
    if (reduction == Reduction::kSum)
      return exchange({CommunicatorCall::Op::kReduceScatter, from, to, count, dtype}, queue);
    enqueue(queue, [&](ncclComm_t comm, cudaStream_t stream) {
      return ncclReduceScatter(from, to, size_t(count), nccl_type(dtype), nccl_op(reduction), comm, stream);
    });
  }
  void do_all_gather(const void* from, void* to, int64_t count, DType dtype, Queue queue) override {
    exchange({CommunicatorCall::Op::kAllGather, from, to, count, dtype}, queue);
  }
  void do_broadcast(void* data, int64_t count, DType dtype, int root, Queue queue) override {
    enqueue(queue, [&](ncclComm_t comm, cudaStream_t stream) {
      return ncclBroadcast(data, data, size_t(count), nccl_type(dtype), root, comm, stream);
    });
  }
  void do_all_to_all(const void* from, void* to, int64_t count, DType dtype, Queue queue) override {
    enqueue_group(queue, [&](ncclComm_t comm, cudaStream_t stream, ncclResult_t& result) {
      for (int r = 0; r < size(); ++r) {
        note(result, ncclSend(piece_at(from, r * count, dtype), size_t(count), nccl_type(dtype), r, comm, stream));
        note(result, ncclRecv(piece_at(to, r * count, dtype), size_t(count), nccl_type(dtype), r, comm, stream));
      }
    });
  }
  void do_send_recv(const void* from, int64_t send_count, int to_rank, void* to, int64_t recv_count, int from_rank,
                    DType dtype, Queue queue) override {
    int64_t mail_sent = mailed(send_count, dtype, to_rank), mail_received = mailed(recv_count, dtype, from_rank);
    if (mail_sent + mail_received > 0) {
      mailbox_->send_recv(from, mail_sent, to_rank, to, mail_received, from_rank, stream_of(queue));
      expect(queue);
    }
    bool sends = to_rank >= 0 && send_count > 0 && mail_sent == 0;
    bool receives = from_rank >= 0 && recv_count > 0 && mail_received == 0;
    if (!sends && !receives) return;
    enqueue_group(queue, [&](ncclComm_t comm, cudaStream_t stream, ncclResult_t& result) {
      if (sends) note(result, ncclSend(from, size_t(send_count), nccl_type(dtype), to_rank, comm, stream));
      if (receives) note(result, ncclRecv(to, size_t(recv_count), nccl_type(dtype), from_rank, comm, stream));
    });
  }
  void do_barrier(Queue queue) override {
    do_all_reduce(nothing_.get(), nothing_.get(), 1, DType::kI32, Reduction::kMax, queue);
  }

  void do_ordered_sums(std::span<const OrderedSum> sums, bool scatters, DType dtype, const SlotTree& tree,
                       Queue queue) override {
    using Op = CommunicatorCall::Op;
    std::vector<Exchange> parts;
    for (const OrderedSum& sum : sums)
      parts.push_back({scatters ? Op::kReduceScatter : Op::kAllReduce, sum.parts[0], sum.to, sum.count, dtype});
    if (tree.max_parts() > 1 || !has_mailbox(queue) || !goes_by_mail(parts))
      return Communicator::do_ordered_sums(sums, scatters, dtype, tree, queue);
    for (const Exchange& part : parts) begin({.op = part.op, .dtype = dtype, .count = part.count});
    mail(parts, &tree, queue);
    expect(queue);
  }

  void add_tree(std::span<const TreePiece> pieces, void* to, int64_t count, DType dtype, Queue queue) override {
    PieceSum sum{{}, to, count};
    for (const TreePiece& piece : pieces) sum.pieces.push_back(piece.data);
    add_pieces(run_->compiler, tree_sum_source(dtype, pieces), dtype, {&sum, 1}, stream_of(queue));
  }

  std::vector<std::string> do_exchange(std::string_view mine) override {
    return run_->store.exchange(fmt::format("{}/exchange{}", key_, exchanges_++), rank(), size(), std::string(mine));
  }
  std::unique_ptr<TextChannel> do_open_channel(Membership membership) override {
    return std::make_unique<StoreChannel>(run_, fmt::format("{}.{}.{}", key_, splits_++, membership.axis), rank(),
                                          size());
  }
  std::unique_ptr<Communicator> do_split(Membership membership) override {
    std::string key = fmt::format("{}.{}.{}", key_, splits_++, membership.ranks[0]);
    auto made = std::make_unique<NcclCommunicator>(run_, std::move(key), std::move(membership), true);
    made->compare_ = compare_;
    return made;
  }

 private:
  // A sum or a gathering, of this many elements as CommunicatorCall counts them.
  struct Exchange {
    CommunicatorCall::Op op;
    const void* from;
    void* to;
    int64_t count;
    DType dtype;
  };

  void exchange(const Exchange& one, Queue queue) {
    if (!has_mailbox(queue)) return by_nccl(one, queue);
    if (grouped_) return grouped_->exchanges.push_back(one), void(grouped_->queue = queue);
    if (!goes_by_mail({&one, 1})) return by_nccl(one, queue);
    mail({&one, 1}, nullptr, queue);
    expect(queue);
  }

  // Of many tensors NCCL's own all_gather takes five times as long as the messages by themselves, which all go at once;
  // between hosts it sends less.
  void by_nccl(const Exchange& one, Queue queue) {
    using Op = CommunicatorCall::Op;
    if (one.op == Op::kAllGather && grouped_ && one_host_) return gather_by_messages(one, queue);
    enqueue(queue, [&](ncclComm_t comm, cudaStream_t stream) {
      ncclDataType_t type = nccl_type(one.dtype);
      auto number = size_t(one.count);
      if (one.op == Op::kAllGather) return ncclAllGather(one.from, one.to, number, type, comm, stream);
      if (one.op == Op::kAllReduce) return ncclAllReduce(one.from, one.to, number, type, ncclSum, comm, stream);
      return ncclReduceScatter(one.from, one.to, number, type, ncclSum, comm, stream);
    });
  }

  void gather_by_messages(const Exchange& one, Queue queue) {
    enqueue_group(queue, [&](ncclComm_t comm, cudaStream_t stream, ncclResult_t& result) {
      auto count = size_t(one.count);
      for (int r = 0; r < size(); ++r) {
        std::byte* part = piece_at(one.to, r * one.count, one.dtype);
        if (r == rank() && one.from == part) continue;
        note(result, ncclSend(one.from, count, nccl_type(one.dtype), r, comm, stream));
        note(result, ncclRecv(part, count, nccl_type(one.dtype), r, comm, stream));
      }
    });
  }

  void connect() {
    call_ = {};
    ncclUniqueId id;
    if (rank() == 0) {
      settle(ncclGetUniqueId(&id));
      run_->store.set(key_ + "/id", std::string(id.internal, sizeof id.internal));
    } else {
      std::string text = run_->store.get(key_ + "/id");
      TOKAMAK_CHECK(text.size() == sizeof id.internal, "an id of {} bytes", text.size());
      std::memcpy(id.internal, text.data(), text.size());
    }
    settle(handle_.join(size(), id, rank(), mailbox_ ? kBlocksBesideMail : 0));
  }

  void find_hosts() {
    std::vector<std::string> hosts = run_->store.exchange(key_ + "/hosts", rank(), size(), host_name());
    one_host_ = std::count(hosts.begin(), hosts.end(), hosts[0]) == size();
  }

  void open_mailbox() {
    bool may = one_host_ && size() > 1 && size() <= Mailbox::kMostRanks && run_->options.mailbox_bytes > 0;
    if (may) mailbox_ = Mailbox::open(*run_, key_, rank(), size());
    asked_for_mailbox_ = true;
  }

  // Each rank leaves its call for those that it meets, and takes theirs.
  void compare() {
    std::vector<int> peers = peers_of(call_, rank(), size());
    auto key = [&](int from, int to, int64_t n) { return fmt::format("{}/call{}-{}-{}", key_, from, to, n); };
    std::string mine(reinterpret_cast<const char*>(&call_), sizeof call_);
    std::optional<RankProgress::Scope> waits = wait_in([this] { return to_string(call_); });
    for (int peer : peers) run_->store.set(key(rank(), peer, met_[size_t(peer)]), mine);
    for (int peer : peers) {
      std::string text = run_->store.take(key(peer, rank(), met_[size_t(peer)]++));
      CommunicatorCall theirs;
      TOKAMAK_CHECK(text.size() == sizeof theirs, "a call of {} bytes", text.size());
      std::memcpy(&theirs, text.data(), sizeof theirs);
      if (!fit(call_, rank(), theirs, peer))
        fail(fmt::format("[{}] expected the same call on all ranks, got {} on {} and {} on {}", axis(),
                         to_string(call_), name_of(rank()), to_string(theirs), name_of(peer)));
    }
  }

  // Pieces of `count` elements,
  MailCut cut_at(int64_t count, DType dtype) const {
    int64_t piece = count * dtype_bytes(dtype);
    return {.piece = piece, .stride = piece, .total = piece * size()};
  }
  // and of a whole, about as many for each rank, which begin at multiples of 16 bytes. Two ranks both add all: they
  // send the same, and in one go.
  MailCut cut_evenly(int64_t count, DType dtype) const {
    int64_t bytes = count * dtype_bytes(dtype);
    if (size() == 2) return {.piece = bytes, .stride = 0, .total = bytes};
    int64_t piece = round_up(ceil_div(bytes, int64_t(size())), int64_t(16));
    return {.piece = piece, .stride = piece, .total = bytes};
  }

  // All ranks find the same. What cannot be made while a queue is recorded was made by its first run.
  bool has_mailbox(Queue queue) {
    if (!asked_for_mailbox_ && !is_recorded(stream_of(queue))) open_mailbox();
    return mailbox_ != nullptr;
  }

  // Bytes of a message to or from one rank; 0: there is none, or NCCL sends it.
  int64_t mailed(int64_t count, DType dtype, int peer) const {
    int64_t bytes = count * dtype_bytes(dtype);
    bool mails = mailbox_ && !grouped_ && peer >= 0 && peer != rank() && bytes >= run_->options.least_mail_bytes;
    return mails ? bytes : 0;
  }

  // By what is for one other rank, of all that goes out as one: beside a large tensor a small one costs little, but a
  // call of NCCL a kernel that waits.
  bool goes_by_mail(std::span<const Exchange> exchanges) const {
    int64_t bytes = 0;
    for (const Exchange& one : exchanges) {
      int64_t own = one.count * dtype_bytes(one.dtype);
      bytes += one.op == CommunicatorCall::Op::kAllReduce ? own / size() : own;
    }
    return bytes >= run_->options.least_mail_bytes;
  }

  // Of one kind and type.
  void mail(std::span<const Exchange> exchanges, const SlotTree* tree, Queue queue) {
    using Op = CommunicatorCall::Op;
    std::vector<MailSum> sums;
    std::vector<MailGather> gathers;
    for (const auto& [op, from, to, count, dtype] : exchanges)
      if (op == Op::kAllGather)
        gathers.push_back({from, to, cut_at(count, dtype)});
      else
        sums.push_back({.from = from,
                        .to = to,
                        .cut = op == Op::kAllReduce ? cut_evenly(count, dtype) : cut_at(count, dtype),
                        .dtype = dtype,
                        .gathers = op == Op::kAllReduce});
    if (!sums.empty()) mailbox_->add(sums, tree, stream_of(queue));
    if (!gathers.empty()) mailbox_->gather(gathers, stream_of(queue));
  }

  void mail_alike(std::vector<Exchange> exchanges, Queue queue) {
    while (!exchanges.empty()) {
      auto others = std::stable_partition(
          exchanges.begin(), exchanges.end(),
          [&, first = exchanges[0]](const auto& one) { return one.op == first.op && one.dtype == first.dtype; });
      mail({exchanges.begin(), others}, nullptr, queue);
      exchanges.erase(exchanges.begin(), others);
    }
  }

  // The first that is neither success nor on its way.
  static void note(ncclResult_t& result, ncclResult_t next) {
    if (result == ncclSuccess || result == ncclInProgress) result = next == ncclSuccess ? result : next;
  }

  template <class Work>
  void enqueue(Queue queue, const Work& work) {
    ncclResult_t result = handle_.call([&](ncclComm_t comm) { return work(comm, stream_of(queue)); });
    if (grouped_) {
      note(grouped_->result, result);
      grouped_->queue = queue;
      return;
    }
    settle(result);
    expect(queue);
  }
  void expect(Queue queue) {
    handle_.expect(stream_of(queue), fmt::format("{} on axis '{}'", to_string(call_), axis()),
                   run_->options.timeout_seconds);
  }
  template <class Work>
  void enqueue_group(Queue queue, const Work& work) {
    enqueue(queue, [&](ncclComm_t comm, cudaStream_t stream) {
      ncclResult_t result = ncclGroupStart();
      work(comm, stream, result);
      note(result, ncclGroupEnd());
      return result;
    });
  }

  // Waits until NCCL has done what it was asked for on the host: what comes after in the queue must come after it.
  void settle(ncclResult_t result) {
    for (Deadline deadline = deadline_in(run_->options.timeout_seconds); result == ncclInProgress;) {
      run_->store.check();
      if (milliseconds_left(deadline) == 0)
        fail(fmt::format("[{}] {} has waited {} s for NCCL in {}", axis(), name_of(rank()),
                         run_->options.timeout_seconds, to_string(call_)));
      std::this_thread::yield();
      result = handle_.state();
    }
    if (result != ncclSuccess) give_up(handle_.describe(result));
  }

  [[noreturn]] void fail(const std::string& why) {
    run_->store.fail(why);
    throw CommunicationError(run_->store.failure());
  }

  // The store knows better than NCCL which rank is gone, but may learn of it a moment later.
  [[noreturn]] void give_up(const std::string& what) {
    for (Deadline deadline = deadline_in(3); milliseconds_left(deadline) > 0 && run_->store.failure().empty();)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    fail(fmt::format("[{}] {} on {} with {} failed: {}", axis(), to_string(call_), name_of(rank()), name_others(),
                     what));
  }

  // NCCL does not say which of them it cannot reach.
  std::string name_others() const {
    constexpr int kMost = 7;
    std::string names;
    for (int peer = 0, named = 0; peer < size() && named < kMost; ++peer)
      if (peer != rank()) names += (named++ ? ", " : "") + name_of(peer);
    return size() - 1 > kMost ? fmt::format("{} and {} more", names, size() - 1 - kMost) : names;
  }

  // Calls that go out as one, so far.
  struct Grouped {
    ncclResult_t result = ncclSuccess;
    Queue queue = nullptr;
    std::vector<Exchange> exchanges;  // that may go by mail
  };

  std::shared_ptr<NcclRun> run_;
  std::string key_;
  std::vector<int64_t> met_;  // how often each rank
  DeviceBuffer nothing_;      // for barriers
  NcclHandle handle_;
  CommunicatorCall call_;
  std::optional<Grouped> grouped_;
  std::unique_ptr<Mailbox> mailbox_;
  bool asked_for_mailbox_ = false;
  bool compare_ = true, one_host_ = false;
  int exchanges_ = 0, splits_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> make_nccl_world(StoreClient& store, const NcclOptions& options) {
  TOKAMAK_CUDA(cudaSetDevice(options.device));
  Membership membership{.axis = "world", .ranks = {}, .rank = store.rank(), .progress = options.progress};
  for (int rank = 0; rank < store.world(); ++rank) membership.ranks.push_back(rank);
  return std::make_unique<NcclCommunicator>(std::make_shared<NcclRun>(store, options), "nccl", std::move(membership),
                                            false);
}

}  // namespace tokamak::cuda
