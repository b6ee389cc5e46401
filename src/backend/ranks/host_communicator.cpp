#include "backend/ranks/host_communicator.h"

#include "backend/ranks/host_sum.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace tokamak {
namespace {

const std::byte* bytes_at(const void* data, int64_t offset) { return static_cast<const std::byte*>(data) + offset; }
std::byte* bytes_at(void* data, int64_t offset) { return static_cast<std::byte*>(data) + offset; }

void copy_bytes(void* to, const void* from, int64_t bytes) {
  if (to != from && bytes > 0) std::memcpy(to, from, size_t(bytes));
}

}  // namespace

void HostCommunicator::begin(const CommunicatorCall& call) {
  check();
  call_ = call;
}

void HostCommunicator::swap_pieces(const std::byte* from, std::byte* to, int64_t bytes) {
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  for (int step = 1; step < size(); ++step) {
    int next = (rank() + step) % size(), last = (rank() + size() - step) % size();
    out.push_back({next, from + next * bytes, bytes});
    in.push_back({last, to + last * bytes, bytes});
  }
  transfer(out, in);
}

void HostCommunicator::gather(const void* from, std::byte* to, int64_t bytes) {
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  for (int step = 1; step < size(); ++step) {
    int next = (rank() + step) % size(), last = (rank() + size() - step) % size();
    out.push_back({next, from, bytes});
    in.push_back({last, to + last * bytes, bytes});
  }
  transfer(out, in);
  copy_bytes(to + rank() * bytes, from, bytes);
}

void HostCommunicator::reduce_own(const std::byte* from, void* to, int64_t count, DType dtype, Reduction reduction) {
  int64_t bytes = count * dtype_bytes(dtype);
  std::vector<std::byte> others(size_t(bytes * size()));
  swap_pieces(from, others.data(), bytes);
  std::vector<const void*> pieces;
  for (int r = 0; r < size(); ++r) pieces.push_back((r == rank() ? from : others.data()) + r * bytes);
  reduce_pieces(pieces, to, count, dtype, reduction);
}

// Elements that the ranks do not divide are reduced by every rank.
void HostCommunicator::do_all_reduce(const void* from, void* to, int64_t count, DType dtype, Reduction reduction,
                                     Queue) {
  int64_t width = dtype_bytes(dtype), piece = count / size(), cut = piece * size(), rest = (count - cut) * width;
  void* own = bytes_at(to, piece * rank() * width);
  std::vector<std::byte> tails(size_t(rest * size()));
  if (rest > 0) gather(bytes_at(from, cut * width), tails.data(), rest);
  if (piece > 0) {
    reduce_own(bytes_at(from, 0), own, piece, dtype, reduction);
    gather(own, bytes_at(to, 0), piece * width);
  }
  std::vector<const void*> pieces;
  for (int r = 0; r < size(); ++r) pieces.push_back(tails.data() + r * rest);
  if (rest > 0) reduce_pieces(pieces, bytes_at(to, cut * width), count - cut, dtype, reduction);
}

void HostCommunicator::do_reduce_scatter(const void* from, void* to, int64_t count, DType dtype, Reduction reduction,
                                         Queue) {
  reduce_own(bytes_at(from, 0), to, count, dtype, reduction);
}

void HostCommunicator::do_all_gather(const void* from, void* to, int64_t count, DType dtype, Queue) {
  gather(from, bytes_at(to, 0), count * dtype_bytes(dtype));
}

void HostCommunicator::do_all_to_all(const void* from, void* to, int64_t count, DType dtype, Queue) {
  int64_t bytes = count * dtype_bytes(dtype);
  swap_pieces(bytes_at(from, 0), bytes_at(to, 0), bytes);
  copy_bytes(bytes_at(to, rank() * bytes), bytes_at(from, rank() * bytes), bytes);
}

// Everyone meets everyone, so that a rank which calls something else is noticed.
void HostCommunicator::do_broadcast(void* data, int64_t count, DType dtype, int root, Queue) {
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  int64_t bytes = count * dtype_bytes(dtype);
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    out.push_back({r, data, rank() == root ? bytes : 0});
    in.push_back({r, data, r == root ? bytes : 0});
  }
  transfer(out, in);
}

void HostCommunicator::do_send_recv(const void* from, int64_t send_count, int to_rank, void* to, int64_t recv_count,
                                    int from_rank, DType dtype, Queue) {
  if (to_rank == rank()) return copy_bytes(to, from, send_count * dtype_bytes(dtype));
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  if (to_rank >= 0) out.push_back({to_rank, from, send_count * dtype_bytes(dtype)});
  if (from_rank >= 0) in.push_back({from_rank, to, recv_count * dtype_bytes(dtype)});
  transfer(out, in);
}

void HostCommunicator::do_barrier(Queue) {
  std::byte nothing{};
  swap_pieces(&nothing, &nothing, 0);
}

void HostCommunicator::add_tree(std::span<const TreePiece> pieces, void* to, int64_t count, DType dtype, Queue) {
  add_tree_of_pieces(pieces, to, count, dtype);
}

std::vector<std::string> HostCommunicator::do_exchange(std::string_view mine) {
  int64_t length = int64_t(mine.size());
  std::vector<int64_t> lengths(size_t(size()), 0);
  gather(&length, bytes_at(lengths.data(), 0), sizeof length);
  std::vector<std::string> all;
  for (int64_t bytes : lengths) all.emplace_back(size_t(bytes), '\0');
  all[size_t(rank())] = mine;
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    out.push_back({r, mine.data(), length});
    in.push_back({r, all[size_t(r)].data(), lengths[size_t(r)]});
  }
  transfer(out, in);
  return all;
}

}  // namespace tokamak
