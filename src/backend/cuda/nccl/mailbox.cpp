#include "backend/cuda/nccl/mailbox.h"

#include "backend/cuda/nccl/rank_sum_launch.h"
#include "base/divide.h"
#include "base/error.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace tokamak::cuda {
namespace {

constexpr int64_t kAlignment = 256;
constexpr int kOwnWords = 2 * Mailbox::kBuffers * Mailbox::kMostRanks;  // free, then arrived
constexpr int64_t kWordBytes = Mailbox::kMostRanks * kOwnWords * int64_t(sizeof(uint32_t));

// Where a rank's memory is, as other processes can find it.
struct Handle {
  cudaIpcMemHandle_t memory;
  int64_t process;
};

const std::byte* at(const void* data, int64_t byte) { return static_cast<const std::byte*>(data) + byte; }
std::byte* at(void* data, int64_t byte) { return static_cast<std::byte*>(data) + byte; }

CUstreamBatchMemOpParams wait_for_one(CUdeviceptr word) {
  CUstreamBatchMemOpParams operation{};
  operation.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  operation.waitValue.address = word;
  operation.waitValue.value = 1;
  operation.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  return operation;
}

// What was done before on the queue is seen by whoever sees it.
CUstreamBatchMemOpParams write(CUdeviceptr word, uint32_t value) {
  CUstreamBatchMemOpParams operation{};
  operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  operation.writeValue.address = word;
  operation.writeValue.value = value;
  operation.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
  return operation;
}

std::vector<MailCut> cuts_of(const auto& tensors) {
  std::vector<MailCut> cuts;
  for (const auto& tensor : tensors) cuts.push_back(tensor.cut);
  return cuts;
}

}  // namespace

Mailbox::Mailbox(NcclRun& run, int rank, int size)
    : run_(run), rank_(rank), size_(size),
      buffer_bytes_(run.options.mailbox_bytes / (kBuffers * (size - 1)) / kAlignment * kAlignment),
      own_(kBuffers * (size - 1) * buffer_bytes_), of_ranks_(size_t(size), nullptr) {
  of_ranks_[size_t(rank)] = static_cast<std::byte*>(own_.get());
}

Mailbox::~Mailbox() {
  run_.remove(*this);
  for (int peer = 0; peer < size_; ++peer)
    if (peer != rank_ && of_ranks_[size_t(peer)]) cudaIpcCloseMemHandle(of_ranks_[size_t(peer)]);
  if (words_address_ != 0) cudaHostUnregister(words_->data());
}

std::unique_ptr<Mailbox> Mailbox::open(NcclRun& run, const std::string& key, int rank, int size) {
  std::unique_ptr<Mailbox> mailbox(new Mailbox(run, rank, size));
  bool shares = mailbox->share_words(key);
  bool reaches = mailbox->reach(run.store.exchange(key + "/mailbox", rank, size, mailbox->handle_text()));
  std::vector<std::string> all = run.store.exchange(key + "/reaches", rank, size, shares && reaches ? "all" : "");
  if (mailbox->words_) mailbox->words_->forget_name();
  if (std::count(all.begin(), all.end(), "all") < size) return nullptr;
  run.add(*mailbox);
  return mailbox;
}

// Rank 0 makes them, with all buffers free.
bool Mailbox::share_words(const std::string& key) {
  if (rank_ == 0) words_ = SharedMemory::create(kWordBytes);
  if (words_)
    for (int of = 0; of < size_; ++of)
      for (int buffer = 0; buffer < kBuffers; ++buffer)
        for (int from = 0; from < size_; ++from)
          reinterpret_cast<uint32_t*>(words_->data())[word_number(of, Word::kFree, buffer, from)] = 1;
  std::string name = run_.store.exchange(key + "/words", rank_, size_, words_ ? words_->name() : "")[0];
  if (rank_ != 0) words_ = SharedMemory::open(name, kWordBytes);
  if (!words_ || cudaHostRegister(words_->data(), size_t(kWordBytes), cudaHostRegisterMapped) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  void* address = nullptr;
  TOKAMAK_CUDA(cudaHostGetDevicePointer(&address, words_->data(), 0));
  words_address_ = reinterpret_cast<CUdeviceptr>(address);
  return true;
}

// Empty: it cannot be told.
std::string Mailbox::handle_text() const {
  Handle handle{};
  handle.process = int64_t(::getpid());
  if (cudaIpcGetMemHandle(&handle.memory, own_.get()) != cudaSuccess) {
    cudaGetLastError();
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
      cudaGetLastError();  // no way there: all go by NCCL
  }
  return std::count(of_ranks_.begin(), of_ranks_.end(), nullptr) == 0;
}

// Of each buffer, a part for each other rank.
std::byte* Mailbox::contents(int of, int buffer, int sender) const {
  int number = buffer * (size_ - 1) + (sender < of ? sender : sender - 1);
  return of_ranks_[size_t(of)] + number * buffer_bytes_;
}

int Mailbox::word_number(int of, Word word, int buffer, int from) const {
  return of * kOwnWords + ((word == Word::kFree ? 0 : kBuffers) + buffer) * kMostRanks + from;
}

void Mailbox::release() {
  auto* words = reinterpret_cast<uint32_t*>(words_->data());
  for (int number = 0; number < kOwnWords; ++number) std::atomic_ref(words[rank_ * kOwnWords + number]).store(1);
}

// Parts in the order of tensors, as much at a time as a buffer holds.
std::vector<Mailbox::Round> Mailbox::rounds_of(const std::vector<MailCut>& cuts) const {
  std::vector<Round> rounds;
  int64_t used = buffer_bytes_;
  for (size_t i = 0; i < cuts.size(); ++i)
    for (int64_t begin = 0; begin < cuts[i].piece;) {
      if (used >= buffer_bytes_) rounds.emplace_back(), used = 0;
      int64_t bytes = std::min(cuts[i].piece - begin, buffer_bytes_ - used);
      rounds.back().push_back({i, begin, bytes, used});
      used = round_up(used + bytes, kAlignment);
      begin += bytes;
    }
  return rounds;
}

Mailbox::Range Mailbox::part_of(const MailCut& cut, const Segment& segment, int rank) {
  int64_t begin = rank * cut.stride + segment.begin;
  return {begin, std::clamp<int64_t>(cut.total - begin, 0, segment.bytes)};
}

void Mailbox::copy(void* to, const void* from, int64_t bytes, cudaStream_t queue) {
  if (bytes > 0 && to != from) TOKAMAK_CUDA(cudaMemcpyAsync(to, from, size_t(bytes), cudaMemcpyDefault, queue));
}

void Mailbox::let_wait(cudaStream_t queue, EventHandle& event) {
  TOKAMAK_CUDA(cudaStreamWaitEvent(queue, event.get(), 0));
}

// Copies to others begin after what was asked for on the queue ...
void Mailbox::begin(cudaStream_t queue) {
  next_buffer_ = 0;
  begun_.record(queue);
  for (Copies& copies : copies_) let_wait(copies.queue.get(), begun_);
}

// ... and what comes on it afterwards may change what they read.
void Mailbox::end(cudaStream_t queue) {
  for (Copies& copies : copies_) {
    copies.done.record(copies.queue.get());
    let_wait(queue, copies.done);
  }
}

// In an order in which not all write to the same one.
std::vector<int> Mailbox::others() const {
  std::vector<int> ranks;
  for (int step = 1; step < size_; ++step) ranks.push_back((rank_ + step) % size_);
  return ranks;
}

// Until these have said so; then it is taken back, in one operation of the queue.
void Mailbox::await(Word what, int buffer, std::span<const int> from, cudaStream_t queue) {
  std::vector<CUstreamBatchMemOpParams> operations;
  for (bool waits : {true, false})
    for (int peer : from) {
      CUdeviceptr address = words_address_ + sizeof(uint32_t) * size_t(word_number(rank_, what, buffer, peer));
      operations.push_back(waits ? wait_for_one(address) : write(address, 0));
    }
  TOKAMAK_CUDA(cuStreamBatchMemOp(queue, unsigned(operations.size()), operations.data(), 0));
}

void Mailbox::tell(Word what, int buffer, std::span<const int> to, cudaStream_t queue) {
  std::vector<CUstreamBatchMemOpParams> operations;
  for (int peer : to)
    operations.push_back(write(words_address_ + sizeof(uint32_t) * size_t(word_number(peer, what, buffer, rank_)), 1));
  TOKAMAK_CUDA(cuStreamBatchMemOp(queue, unsigned(operations.size()), operations.data(), 0));
}

void Mailbox::send(int buffer, std::span<const int> to, const std::function<std::vector<Parcel>(int rank)>& parcels) {
  cudaStream_t queue = copies_[size_t(buffer)].queue.get();
  await(Word::kFree, buffer, to, queue);
  for (int peer : to)
    for (const Parcel& parcel : parcels(peer))
      copy(contents(peer, buffer, rank_) + parcel.at, parcel.from, parcel.bytes, queue);
  tell(Word::kArrived, buffer, to, queue);
}

void Mailbox::take(int buffer, std::span<const int> from, cudaStream_t queue, const std::function<void()>& read) {
  await(Word::kArrived, buffer, from, queue);
  read();
  tell(Word::kFree, buffer, from, queue);
}

std::string Mailbox::sum_source(DType dtype, const SlotTree* tree) const {
  if (!tree) return rank_sum_source(dtype, size_);
  std::vector<TreePiece> pieces;
  for (int rank = 0; rank < size_; ++rank) pieces.push_back({nullptr, tree->parts(rank)[0].level});
  return tree_sum_source(dtype, pieces);
}

void Mailbox::add_round(std::span<const MailSum> sums, const Round& round, int buffer, const SlotTree* tree,
                        cudaStream_t queue) {
  std::vector<PieceSum> pieces;
  for (const Segment& segment : round) {
    const MailSum& sum = sums[segment.index];
    Range part = part_of(sum.cut, segment, rank_);
    if (part.bytes == 0) continue;
    PieceSum own{{}, at(sum.to, sum.gathers ? part.begin : segment.begin), part.bytes / dtype_bytes(sum.dtype)};
    for (int rank = 0; rank < size_; ++rank)
      own.pieces.push_back(rank == rank_ ? at(sum.from, part.begin) : contents(rank_, buffer, rank) + segment.at);
    pieces.push_back(std::move(own));
  }
  DType dtype = sums[0].dtype;
  add_pieces(run_.compiler, sum_source(dtype, tree), dtype, pieces, queue);
}

void Mailbox::exchange(std::span<const MailSum> sums, const Round& round, const SlotTree* tree, cudaStream_t queue) {
  int buffer = next_buffer_++ % kBuffers;
  send(buffer, others(), [&](int peer) {
    std::vector<Parcel> parcels;
    for (const Segment& segment : round) {
      Range part = part_of(sums[segment.index].cut, segment, peer);
      parcels.push_back({at(sums[segment.index].from, part.begin), part.bytes, segment.at});
    }
    return parcels;
  });
  Copies& copies = copies_[size_t(buffer)];
  copies.done.record(copies.queue.get());  // a sum may take the place of what is sent
  let_wait(queue, copies.done);
  take(buffer, others(), queue, [&] { add_round(sums, round, buffer, tree, queue); });
}

void Mailbox::exchange(std::span<const MailGather> tensors, const Round& round, cudaStream_t queue) {
  int buffer = next_buffer_++ % kBuffers;
  send(buffer, others(), [&](int) {
    std::vector<Parcel> parcels;
    for (const Segment& segment : round)
      parcels.push_back({at(tensors[segment.index].from, segment.begin),
                         part_of(tensors[segment.index].cut, segment, rank_).bytes, segment.at});
    return parcels;
  });
  take(buffer, others(), queue, [&] {
    for (const Segment& segment : round)
      for (int rank = 0; rank < size_; ++rank) {
        const MailGather& tensor = tensors[segment.index];
        Range part = part_of(tensor.cut, segment, rank);
        const void* from = rank == rank_ ? at(tensor.from, segment.begin) : contents(rank_, buffer, rank) + segment.at;
        copy(at(tensor.to, part.begin), from, part.bytes, queue);
      }
  });
}

// What is sent is one round ahead of what is gathered, so that the copy engines have work while pieces are added. All
// ranks send and take in this one order.
void Mailbox::add(std::span<const MailSum> sums, const SlotTree* tree, cudaStream_t queue) {
  std::vector<MailGather> gathers;
  for (const MailSum& sum : sums)
    if (sum.gathers && sum.cut.stride > 0) gathers.push_back({at(sum.to, rank_ * sum.cut.stride), sum.to, sum.cut});
  TOKAMAK_CHECK(gathers.empty() || gathers.size() == sums.size(), "of {} sums {} gather", sums.size(), gathers.size());
  std::vector<Round> rounds = rounds_of(cuts_of(sums));
  auto exchange_sums = [&](const Round& round) {
    let_wait(copies_[size_t(next_buffer_ % kBuffers)].queue.get(), added_);  // for the sums of this round
    exchange(gathers, round, queue);
  };
  begin(queue);
  for (size_t i = 0; i < rounds.size(); ++i) {
    exchange(sums, rounds[i], tree, queue);
    if (gathers.empty()) continue;
    if (i > 0) exchange_sums(rounds[i - 1]);
    added_.record(queue);
  }
  if (!gathers.empty() && !rounds.empty()) exchange_sums(rounds.back());
  end(queue);
}

void Mailbox::gather(std::span<const MailGather> tensors, cudaStream_t queue) {
  begin(queue);
  for (const Round& round : rounds_of(cuts_of(tensors))) exchange(tensors, round, queue);
  end(queue);
}

// Each round has the buffer that it has on the other side.
void Mailbox::send_recv(const void* from, int64_t sent_bytes, int to_rank, void* to, int64_t received_bytes,
                        int from_rank, cudaStream_t queue) {
  begin(queue);
  for (int64_t begin = 0, round = 0; begin < std::max(sent_bytes, received_bytes); begin += buffer_bytes_, ++round) {
    int buffer = int(round % kBuffers);
    if (begin < sent_bytes)
      send(buffer, {&to_rank, 1}, [&](int) {
        return std::vector<Parcel>{{at(from, begin), std::min(buffer_bytes_, sent_bytes - begin), 0}};
      });
    if (begin < received_bytes)
      take(buffer, {&from_rank, 1}, queue, [&] {
        copy(at(to, begin), contents(rank_, buffer, from_rank), std::min(buffer_bytes_, received_bytes - begin), queue);
      });
  }
  end(queue);
}

}  // namespace tokamak::cuda
