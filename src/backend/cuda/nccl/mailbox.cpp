#include "backend/cuda/nccl/mailbox.h"

#include "backend/cuda/embedded_sources.h"
#include "base/divide.h"
#include "base/error.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace tokamak::cuda {
namespace {

constexpr int64_t kAlignment = 256;
constexpr int64_t kCountBytes = 4096;  // before the slots: struct Counts of kernels/meet.cu
constexpr int kHalves = 2;             // one is written while the other is read

struct Counts {
  uint32_t* of[Mailbox::kMostRanks];
};

std::string meet_source() { return "#include \"backend/cuda/kernels/meet.cu\"\n"; }

// Where a rank's memory is: of a process, the allocation. Empty: it cannot be told.
struct Handle {
  cudaIpcMemHandle_t memory;
  int64_t process;
};

const std::byte* at(const void* data, int64_t byte) { return static_cast<const std::byte*>(data) + byte; }
std::byte* at(void* data, int64_t byte) { return static_cast<std::byte*>(data) + byte; }

}  // namespace

Mailbox::Mailbox(NcclRun& run, int rank, int size)
    : run_(run), rank_(rank), size_(size),
      slot_bytes_(run.options.mailbox_bytes / (kHalves * (size - 1)) / kAlignment * kAlignment),
      own_(kCountBytes + kHalves * (size - 1) * slot_bytes_), of_ranks_(size_t(size), nullptr) {
  TOKAMAK_CUDA(cudaMemset(own_.get(), 0, size_t(kCountBytes)));
  TOKAMAK_CUDA(cudaDeviceSynchronize());
  of_ranks_[size_t(rank)] = static_cast<std::byte*>(own_.get());
}

Mailbox::~Mailbox() {
  for (int peer = 0; peer < size_; ++peer)
    if (peer != rank_ && of_ranks_[size_t(peer)]) cudaIpcCloseMemHandle(of_ranks_[size_t(peer)]);
}

std::unique_ptr<Mailbox> Mailbox::open(NcclRun& run, const std::string& key, int rank, int size) {
  std::unique_ptr<Mailbox> mailbox(new Mailbox(run, rank, size));
  bool reaches = mailbox->reach(run.store.exchange(key + "/mailbox", rank, size, mailbox->handle_text()));
  std::vector<std::string> all = run.store.exchange(key + "/reaches", rank, size, reaches ? "all" : "");
  return std::count(all.begin(), all.end(), "all") == size ? std::move(mailbox) : nullptr;
}

std::string Mailbox::handle_text() const {
  Handle handle{};
  handle.process = int64_t(::getpid());
  if (cudaIpcGetMemHandle(&handle.memory, own_.get()) != cudaSuccess) {
    cudaGetLastError();  // it is told by what is returned
    return "";
  }
  return std::string(reinterpret_cast<const char*>(&handle), sizeof handle);
}

bool Mailbox::reach(const std::vector<std::string>& handles) {
  for (int peer = 0; peer < size_; ++peer) {
    const std::string& text = handles[size_t(peer)];
    if (peer == rank_ || text.size() != sizeof(Handle)) continue;
    Handle handle;
    std::memcpy(&handle, text.data(), sizeof handle);
    if (handle.process == int64_t(::getpid())) continue;
    void* memory = nullptr;
    if (cudaIpcOpenMemHandle(&memory, handle.memory, cudaIpcMemLazyEnablePeerAccess) == cudaSuccess)
      of_ranks_[size_t(peer)] = static_cast<std::byte*>(memory);
    else
      cudaGetLastError();
  }
  return std::count(of_ranks_.begin(), of_ranks_.end(), nullptr) == 0;
}

// Of each half, one for each other rank.
std::byte* Mailbox::slot(int of, int half, int sender) const {
  int number = half * (size_ - 1) + (sender < of ? sender : sender - 1);
  return of_ranks_[size_t(of)] + kCountBytes + number * slot_bytes_;
}

// Pieces in the order of tensors, as much at a time as a slot holds.
std::vector<Mailbox::Round> Mailbox::rounds_of(const std::vector<Cut>& cuts) const {
  std::vector<Round> rounds;
  int64_t used = slot_bytes_;
  for (size_t i = 0; i < cuts.size(); ++i)
    for (int64_t begin = 0; begin < cuts[i].piece;) {
      if (used >= slot_bytes_) rounds.emplace_back(), used = 0;
      int64_t bytes = std::min(cuts[i].piece - begin, slot_bytes_ - used);
      rounds.back().push_back({i, begin, bytes, used});
      used = round_up(used + bytes, kAlignment);
      begin += bytes;
    }
  return rounds;
}

Mailbox::Range Mailbox::part_of(const Cut& cut, const Segment& segment, int rank) const {
  int64_t begin = rank * cut.piece + segment.begin;
  return {begin, std::clamp<int64_t>(cut.total - begin, 0, segment.bytes)};
}

void Mailbox::copy(void* to, const void* from, int64_t bytes, cudaStream_t queue) {
  if (bytes > 0 && to != from) TOKAMAK_CUDA(cudaMemcpyAsync(to, from, size_t(bytes), cudaMemcpyDefault, queue));
}

// What ranks have written before is there behind it, and what they have read before may be written over.
void Mailbox::meet(cudaStream_t queue) {
  Counts counts{};
  for (int peer = 0; peer < size_; ++peer)
    counts.of[peer] = reinterpret_cast<uint32_t*>(of_ranks_[size_t(peer)]);
  run_.compiler.add("meet", meet_source())
      ->launch(queue, {dim3(1), dim3(32), 0}, counts, int32_t(rank_), int32_t(size_),
               static_cast<const int32_t*>(run_.given_up()));
}

std::string Mailbox::sum_source(DType dtype, const SlotTree* tree) const {
  if (!tree) return rank_sum_source(dtype, size_);
  std::vector<TreePiece> pieces;
  for (int rank = 0; rank < size_; ++rank) pieces.push_back({nullptr, tree->parts(rank)[0].level});
  return tree_sum_source(dtype, pieces);
}

// A recording may be replayed behind any other call, so each begins with a meeting; within it halves are used in turn: a
// rank that has come to a meeting has read what it was sent before the last one.
void Mailbox::add(std::span<const MailSum> sums, const SlotTree* tree, cudaStream_t queue) {
  std::vector<Cut> cuts;
  std::vector<MailGather> gathers;
  for (const MailSum& sum : sums) {
    cuts.push_back(sum.cut);
    if (sum.gathers) gathers.push_back({at(sum.to, rank_ * sum.cut.piece), sum.to, sum.cut});
  }
  TOKAMAK_CHECK(gathers.empty() || gathers.size() == sums.size(), "of {} sums {} gather", sums.size(), gathers.size());
  meet(queue);
  int half = 0;
  for (const Round& round : rounds_of(cuts)) {
    for (int step = 1; step < size_; ++step)
      for (const Segment& segment : round) {
        int peer = (rank_ + step) % size_;
        Range part = part_of(cuts[segment.index], segment, peer);
        copy(slot(peer, half, rank_) + segment.at, at(sums[segment.index].from, part.begin), part.bytes, queue);
      }
    meet(queue);
    add_round(sums, round, half, tree, queue);
    half = 1 - half;
    if (gathers.empty()) continue;
    gather_round(gathers, round, half, queue);
    half = 1 - half;
  }
}

void Mailbox::add_round(std::span<const MailSum> sums, const Round& round, int half, const SlotTree* tree,
                        cudaStream_t queue) {
  constexpr int kThreads = 256, kMostBlocks = 1024;
  for (const Segment& segment : round) {
    const MailSum& sum = sums[segment.index];
    Range part = part_of(sum.cut, segment, rank_);
    if (part.bytes == 0) continue;
    std::vector<const void*> pieces;
    for (int rank = 0; rank < size_; ++rank)
      pieces.push_back(rank == rank_ ? at(sum.from, part.begin) : slot(rank_, half, rank) + segment.at);
    void* to = at(sum.to, sum.gathers ? part.begin : segment.begin);
    int64_t count = part.bytes / dtype_bytes(sum.dtype), vectors = ceil_div(part.bytes, int64_t(16));
    auto blocks = unsigned(std::min(ceil_div(vectors, int64_t(kThreads)), int64_t(kMostBlocks)));
    void* arguments[] = {pieces.data(), &to, &count, nullptr};
    run_.compiler.add("rank_sum", sum_source(sum.dtype, tree))
        ->launch_with(queue, {dim3(blocks), dim3(kThreads), 0}, arguments);
  }
}

void Mailbox::gather(std::span<const MailGather> tensors, cudaStream_t queue) {
  std::vector<Cut> cuts;
  for (const MailGather& tensor : tensors) cuts.push_back(tensor.cut);
  meet(queue);
  int half = 0;
  for (const Round& round : rounds_of(cuts)) {
    gather_round(tensors, round, half, queue);
    half = 1 - half;
  }
}

void Mailbox::gather_round(std::span<const MailGather> tensors, const Round& round, int half, cudaStream_t queue) {
  for (int step = 1; step < size_; ++step)
    for (const Segment& segment : round) {
      const MailGather& tensor = tensors[segment.index];
      copy(slot((rank_ + step) % size_, half, rank_) + segment.at, at(tensor.from, segment.begin),
           part_of(tensor.cut, segment, rank_).bytes, queue);
    }
  meet(queue);
  for (const Segment& segment : round)
    for (int rank = 0; rank < size_; ++rank) {
      const MailGather& tensor = tensors[segment.index];
      Range part = part_of(tensor.cut, segment, rank);
      const void* from = rank == rank_ ? at(tensor.from, segment.begin) : slot(rank_, half, rank) + segment.at;
      copy(at(tensor.to, part.begin), from, part.bytes, queue);
    }
}

}  // namespace tokamak::cuda
