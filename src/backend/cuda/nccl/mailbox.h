// Ranks of one machine send each other tensors by their GPUs' copy engines: each has memory, its mailbox, into which
// the others write, and takes from there what has come. No multiprocessor is busy or kept from others meanwhile, but
// for what adds pieces: a kernel that waits for another rank, as NCCL's do, holds back one that wants all
// multiprocessors at once (docs/parallel.md, "Copies").
//
// A mailbox has buffers; a rank may write into one that its owner has said is free, says that it has, and the owner
// says when it has read it. Both are words that queues write and wait for, 0 or 1, and at rest always the same: so
// calls may be recorded and replayed in any order that is the same on all ranks. They are in the host's memory, where a
// failed run can end all waits without the driver, which may itself wait for the queues. Tests:
// tests/backend/cuda/mail/mailbox_test.cpp, which needs no GPU, and tests/backend/cuda/nccl/nccl_test.cpp.
#pragma once

#include "backend/cuda/nccl/nccl_run.h"
#include "base/shared_memory.h"

#include <array>

namespace tokamak::cuda {

/// Bytes of a tensor that rank r is sent, or sends: from r x stride on `piece` of them, but not beyond `total`.
struct MailCut {
  int64_t piece = 0;
  int64_t stride = 0;
  int64_t total = 0;
};

/// A sum of all ranks' `from`.
struct MailSum {
  const void* from;
  void* to;     // that is `from` cut so, or, where it is not gathered, the rank's own part alone
  MailCut cut;  // of which each rank makes its own part
  DType dtype;
  bool gathers = true;
};

/// All ranks' parts. `from`, the rank's own, may be where it belongs in `to`.
struct MailGather {
  const void* from;
  void* to;
  MailCut cut;
};

class Mailbox {
 public:
  static constexpr int kMostRanks = 16, kBuffers = 4;

  /// For rank `rank` of `size`, all of which call it; `key` is theirs alone in the run's store. Null on all of them
  /// where one cannot reach the memory of another: not one machine, no way between two GPUs, or several ranks of one
  /// process.
  static std::unique_ptr<Mailbox> open(NcclRun& run, const std::string& key, int rank, int size);
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  /// Each element is added in the order of ranks, as floats, and rounded once; with a tree, of which each rank has one
  /// part, as that says (tree_sum_source).
  void add(std::span<const MailSum> sums, const SlotTree* tree, cudaStream_t queue);
  void gather(std::span<const MailGather> tensors, cudaStream_t queue);
  /// A message to one rank and one from one, of which the others know nothing; 0 bytes: none.
  void send_recv(const void* from, int64_t sent_bytes, int to_rank, void* to, int64_t received_bytes, int from_rank,
                 cudaStream_t queue);

  /// From any thread, when the run has failed: all that waits now goes on, with whatever is there.
  void release();

 private:
  Mailbox(NcclRun& run, int rank, int size);

  // A part of every rank's part of tensor `index`, which has its place in a buffer.
  struct Segment {
    size_t index;
    int64_t begin, bytes;  // of the rank's part
    int64_t at;            // in the buffer
  };
  using Round = std::vector<Segment>;
  struct Range {
    int64_t begin, bytes;  // of the tensor
  };
  // What one rank is sent.
  struct Parcel {
    const void* from;
    int64_t bytes, at;
  };
  // Of each buffer, for each rank.
  enum class Word { kFree, kArrived };

  bool share_words(const std::string& key);
  std::string handle_text() const;
  bool reach(const std::vector<std::string>& handles);
  std::vector<Round> rounds_of(const std::vector<MailCut>& cuts) const;
  static Range part_of(const MailCut& cut, const Segment& segment, int rank);
  std::byte* contents(int of, int buffer, int sender) const;
  int word_number(int of, Word word, int buffer, int from) const;

  void begin(cudaStream_t queue);
  void end(cudaStream_t queue);
  void let_wait(cudaStream_t queue, EventHandle& event);
  std::vector<int> others() const;
  void send(int buffer, std::span<const int> to, const std::function<std::vector<Parcel>(int rank)>& parcels);
  void await(Word word, int buffer, std::span<const int> from, cudaStream_t queue);
  void tell(Word word, int buffer, std::span<const int> to, cudaStream_t queue);
  void take(int buffer, std::span<const int> from, cudaStream_t queue, const std::function<void()>& read);
  void copy(void* to, const void* from, int64_t bytes, cudaStream_t queue);
  std::string sum_source(DType dtype, const SlotTree* tree) const;
  void add_round(std::span<const MailSum> sums, const Round& round, int buffer, const SlotTree* tree,
                 cudaStream_t queue);
  void exchange(std::span<const MailSum> sums, const Round& round, const SlotTree* tree, cudaStream_t queue);
  void exchange(std::span<const MailGather> tensors, const Round& round, cudaStream_t queue);

  NcclRun& run_;
  int rank_, size_;
  int64_t buffer_bytes_;                 // what a rank may have for another in one of them
  int next_buffer_ = 0;                  // of a call
  std::unique_ptr<SharedMemory> words_;  // of all ranks
  CUdeviceptr words_address_ = 0;        // for queues; 0: not to be had
  DeviceBuffer own_;
  std::vector<std::byte*> of_ranks_;  // their memory, as this process sees it; null: not reached
  // By buffer, so that one copy begins while another is under way.
  struct Copies {
    StreamHandle queue;
    EventHandle done;
  };
  std::array<Copies, kBuffers> copies_;
  EventHandle begun_, added_;
};

}  // namespace tokamak::cuda
