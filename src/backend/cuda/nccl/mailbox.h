// Ranks of one machine send each other tensors by their GPUs' copy engines: each has memory into which the others
// write, and takes from there what has come. No multiprocessor is busy meanwhile but for what adds pieces; NCCL's
// kernels, which are fast alone, take the time from what computes beside them (docs/parallel.md, "Copies").
// Tests: tests/backend/cuda/nccl/nccl_test.cpp.
#pragma once

#include "backend/cuda/nccl/nccl_run.h"

namespace tokamak::cuda {

/// Bytes that are cut into a piece for each rank: `piece` each, but what is behind `total` is missing.
struct Cut {
  int64_t piece = 0;
  int64_t total = 0;
};

/// Sums of all ranks' `from`, of which each rank makes its own piece.
struct MailSum {
  const void* from;
  void* to;  // the rank's own piece; what gathers: all pieces, and may be `from`
  Cut cut;
  DType dtype;
  bool gathers = true;
};

/// All ranks' pieces, one behind the other. `from`, the rank's own, may be where it belongs in `to`.
struct MailGather {
  const void* from;
  void* to;
  Cut cut;
};

class Mailbox {
 public:
  static constexpr int kMostRanks = 16;

  /// For rank `rank` of `size`, all of which call it; `key` is theirs alone in the run's store. Null on all of them where
  /// one cannot reach the memory of another: not one machine, no way between two GPUs, or several ranks of one process.
  static std::unique_ptr<Mailbox> open(NcclRun& run, const std::string& key, int rank, int size);
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  /// Each element is added in the order of ranks, as floats, and rounded once; with a tree, of which each rank has one
  /// part, as that says (tree_sum_source).
  void add(std::span<const MailSum> sums, const SlotTree* tree, cudaStream_t queue);
  void gather(std::span<const MailGather> tensors, cudaStream_t queue);

 private:
  Mailbox(NcclRun& run, int rank, int size);

  // A part of every rank's piece of tensor `index`, which has its place in a slot.
  struct Segment {
    size_t index;
    int64_t begin, bytes;  // of a piece
    int64_t at;            // in the slot
  };
  using Round = std::vector<Segment>;
  struct Range {
    int64_t begin, bytes;
  };

  std::string handle_text() const;
  bool reach(const std::vector<std::string>& handles);
  std::vector<Round> rounds_of(const std::vector<Cut>& cuts) const;
  Range part_of(const Cut& cut, const Segment& segment, int rank) const;
  std::byte* slot(int of, int half, int sender) const;
  void meet(cudaStream_t queue);
  void copy(void* to, const void* from, int64_t bytes, cudaStream_t queue);
  std::string sum_source(DType dtype, const SlotTree* tree) const;
  void add_round(std::span<const MailSum> sums, const Round& round, int half, const SlotTree* tree,
                 cudaStream_t queue);
  void gather_round(std::span<const MailGather> tensors, const Round& round, int half, cudaStream_t queue);

  NcclRun& run_;
  int rank_, size_;
  int64_t slot_bytes_;  // what a rank may have for another at a time
  DeviceBuffer own_;
  std::vector<std::byte*> of_ranks_;  // their memory, as this process sees it; null: not reached
};

}  // namespace tokamak::cuda
