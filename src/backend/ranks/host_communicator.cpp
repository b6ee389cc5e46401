#include "backend/ranks/host_communicator.h"

#include "backend/ranks/host_sum.h"
#include "base/error.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

namespace tokamak {
namespace {

// A group's calls of fewer bytes travel together, until they have as many.
constexpr int64_t kJoinedBytes = int64_t(1) << 20;

const std::byte* bytes_at(const void* data, int64_t offset) { return static_cast<const std::byte*>(data) + offset; }
std::byte* bytes_at(void* data, int64_t offset) { return static_cast<std::byte*>(data) + offset; }

void copy_bytes(void* to, const void* from, int64_t bytes) {
  if (to != from && bytes > 0) std::memcpy(to, from, size_t(bytes));
}

bool is_message(const CommunicatorCall& call) {
  using Op = CommunicatorCall::Op;
  return call.op == Op::kSend || call.op == Op::kRecv || call.op == Op::kSendRecv;
}

using Bytes = std::vector<std::byte>;

std::shared_ptr<Bytes> scratch_of(int64_t bytes) { return std::make_shared<Bytes>(size_t(bytes)); }

}  // namespace

void HostCommunicator::begin(const CommunicatorCall& call) {
  check();
  call_ = call;
}

std::string HostCommunicator::calls_text() const {
  std::string first = calls_.empty() ? to_string(call_) : to_string(calls_[0]);
  return calls_.size() > 1 ? fmt::format("{} and {} more", first, calls_.size() - 1) : first;
}

std::string HostCommunicator::mismatch(std::span<const CommunicatorCall> theirs, int peer) const {
  size_t same = 0;
  while (same < std::min(calls_.size(), theirs.size()) && fit(calls_[same], rank(), theirs[same], peer)) ++same;
  if (same == calls_.size() && same == theirs.size()) return "";
  auto said = [&](std::span<const CommunicatorCall> calls) {
    return same < calls.size() ? to_string(calls[same]) : fmt::format("no more than {} calls", same);
  };
  return fmt::format("[{}] expected the same call on all ranks, got {} on {} and {} on {}", axis(), said(calls_),
                     name_of(rank()), said(theirs), name_of(peer));
}

void HostCommunicator::group(const std::function<void()>& calls) {
  struct End {
    HostCommunicator& c;
    ~End() {
      c.grouping_ = false;
      c.waiting_.clear();
      c.waiting_bytes_ = 0;
    }
  } end{*this};
  grouping_ = true;
  calls();
  run_waiting();
}

// Messages may not be the same on all ranks, so these would not agree on what waits.
void HostCommunicator::perform(std::vector<Round> rounds, int64_t bytes) {
  Work work{call_, std::move(rounds)};
  if (!grouping_ || bytes >= kJoinedBytes || is_message(call_)) return run({std::move(work)});
  waiting_.push_back(std::move(work));
  waiting_bytes_ += bytes;
  if (waiting_bytes_ >= kJoinedBytes) run_waiting();
}

void HostCommunicator::run_waiting() {
  waiting_bytes_ = 0;
  run(std::exchange(waiting_, {}));
}

void HostCommunicator::run(const std::vector<Work>& works) {
  size_t rounds = 0;
  calls_.clear();
  for (const Work& work : works) {
    calls_.push_back(work.call);
    rounds = std::max(rounds, work.rounds.size());
  }
  for (size_t r = 0; r < rounds; ++r) {
    Meetings all;
    for (const Work& work : works) {
      if (r >= work.rounds.size()) continue;
      for (const auto& [peer, meeting] : work.rounds[r].meetings) {
        all[peer].out.insert(all[peer].out.end(), meeting.out.begin(), meeting.out.end());
        all[peer].in.insert(all[peer].in.end(), meeting.in.begin(), meeting.in.end());
      }
    }
    if (!all.empty()) meet(all);
    for (const Work& work : works)
      if (r < work.rounds.size() && work.rounds[r].then) work.rounds[r].then();
  }
}

void HostCommunicator::meet(const Meetings& meetings) {
  std::optional<RankProgress::Scope> waits = wait_in([this] {
    bool decides = call_.op == CommunicatorCall::Op::kExchange;
    return decides ? "a decision of all ranks" : fmt::format("{} on axis '{}'", calls_text(), axis());
  });
  transfer(meetings);
}

void HostCommunicator::add_exchange(Meetings& meetings, const std::byte* from, int64_t step, std::byte* to,
                                    int64_t bytes) const {
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    meetings[r].out.push_back({from + r * step, bytes});
    meetings[r].in.push_back({to + r * bytes, bytes});
  }
}

HostCommunicator::Round HostCommunicator::reduce_own(const std::byte* from, void* to, int64_t count, DType dtype,
                                                     Reduction reduction) const {
  int64_t bytes = count * dtype_bytes(dtype);
  std::shared_ptr<Bytes> others = scratch_of(bytes * size());
  Round round;
  add_exchange(round.meetings, from, bytes, others->data(), bytes);
  round.then = [=, this] {
    std::vector<const void*> pieces;
    for (int r = 0; r < size(); ++r) pieces.push_back((r == rank() ? from : others->data()) + r * bytes);
    reduce_pieces(pieces, to, count, dtype, reduction);
  };
  return round;
}

HostCommunicator::Round HostCommunicator::reduce_all(const std::byte* from, void* to, int64_t count, DType dtype,
                                                     Reduction reduction) const {
  int64_t bytes = count * dtype_bytes(dtype);
  std::shared_ptr<Bytes> all = scratch_of(bytes * size());
  Round round;
  add_exchange(round.meetings, from, 0, all->data(), bytes);
  round.then = [=, this] {
    copy_bytes(all->data() + rank() * bytes, from, bytes);
    std::vector<const void*> pieces;
    for (int r = 0; r < size(); ++r) pieces.push_back(all->data() + r * bytes);
    reduce_pieces(pieces, to, count, dtype, reduction);
  };
  return round;
}

// Elements that the ranks do not divide are reduced by every rank.
void HostCommunicator::do_all_reduce(const void* from, void* to, int64_t count, DType dtype, Reduction reduction,
                                     Queue) {
  int64_t width = dtype_bytes(dtype), piece = count / size(), cut = piece * size();
  std::vector<Round> rounds;
  if (piece > 0) {
    std::byte* own = bytes_at(to, piece * rank() * width);
    rounds.push_back(reduce_own(bytes_at(from, 0), own, piece, dtype, reduction));
    add_exchange(rounds.emplace_back().meetings, own, 0, bytes_at(to, 0), piece * width);
  }
  if (cut < count)
    rounds.push_back(reduce_all(bytes_at(from, cut * width), bytes_at(to, cut * width), count - cut, dtype, reduction));
  perform(std::move(rounds), count * width);
}

void HostCommunicator::do_reduce_scatter(const void* from, void* to, int64_t count, DType dtype, Reduction reduction,
                                         Queue) {
  std::vector<Round> rounds;
  rounds.push_back(reduce_own(bytes_at(from, 0), to, count, dtype, reduction));
  perform(std::move(rounds), count * size() * dtype_bytes(dtype));
}

void HostCommunicator::do_all_gather(const void* from, void* to, int64_t count, DType dtype, Queue) {
  int64_t bytes = count * dtype_bytes(dtype);
  std::vector<Round> rounds(1);
  add_exchange(rounds[0].meetings, bytes_at(from, 0), 0, bytes_at(to, 0), bytes);
  rounds[0].then = [=, this] { copy_bytes(bytes_at(to, rank() * bytes), from, bytes); };
  perform(std::move(rounds), bytes * size());
}

void HostCommunicator::do_all_to_all(const void* from, void* to, int64_t count, DType dtype, Queue) {
  int64_t bytes = count * dtype_bytes(dtype);
  std::vector<Round> rounds(1);
  add_exchange(rounds[0].meetings, bytes_at(from, 0), bytes, bytes_at(to, 0), bytes);
  rounds[0].then = [=, this] { copy_bytes(bytes_at(to, rank() * bytes), bytes_at(from, rank() * bytes), bytes); };
  perform(std::move(rounds), bytes * size());
}

// Everyone meets everyone, so that a rank which calls something else is noticed.
void HostCommunicator::do_broadcast(void* data, int64_t count, DType dtype, int root, Queue) {
  int64_t bytes = count * dtype_bytes(dtype);
  std::vector<Round> rounds(1);
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    Meeting& meeting = rounds[0].meetings[r];
    if (rank() == root) meeting.out.push_back({data, bytes});
    if (r == root) meeting.in.push_back({data, bytes});
  }
  perform(std::move(rounds), bytes);
}

void HostCommunicator::do_send_recv(const void* from, int64_t send_count, int to_rank, void* to, int64_t recv_count,
                                    int from_rank, DType dtype, Queue) {
  if (to_rank == rank()) return copy_bytes(to, from, send_count * dtype_bytes(dtype));
  int64_t sent = send_count * dtype_bytes(dtype), received = recv_count * dtype_bytes(dtype);
  std::vector<Round> rounds(1);
  if (to_rank >= 0) rounds[0].meetings[to_rank].out.push_back({from, sent});
  if (from_rank >= 0) rounds[0].meetings[from_rank].in.push_back({to, received});
  perform(std::move(rounds), sent + received);
}

void HostCommunicator::do_barrier(Queue) {
  std::vector<Round> rounds(1);
  for (int r = 0; r < size(); ++r)
    if (r != rank()) rounds[0].meetings[r];
  perform(std::move(rounds), 0);
}

void HostCommunicator::add_tree(std::span<const TreePiece> pieces, void* to, int64_t count, DType dtype, Queue) {
  add_tree_of_pieces(pieces, to, count, dtype);
}

// The lengths first; none of it waits for a group.
std::vector<std::string> HostCommunicator::do_exchange(std::string_view mine) {
  int64_t length = int64_t(mine.size());
  std::vector<int64_t> lengths(size_t(size()), length);
  std::vector<Round> rounds(1);
  add_exchange(rounds[0].meetings, bytes_at(&length, 0), 0, bytes_at(lengths.data(), 0), sizeof length);
  run({{call_, std::move(rounds)}});
  std::vector<std::string> all;
  for (int64_t bytes : lengths) all.emplace_back(size_t(bytes), '\0');
  all[size_t(rank())] = mine;
  rounds = std::vector<Round>(1);
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    rounds[0].meetings[r].out.push_back({mine.data(), length});
    rounds[0].meetings[r].in.push_back({all[size_t(r)].data(), lengths[size_t(r)]});
  }
  run({{call_, std::move(rounds)}});
  return all;
}

}  // namespace tokamak
