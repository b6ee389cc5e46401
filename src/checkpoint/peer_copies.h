// What each rank writes of a checkpoint, sent to its keeper on another machine, while that sends its own on. Tests:
// tests/mesh/kept_save_test.cpp.
#pragma once

#include "backend/communicator.h"
#include "checkpoint/rank_machines.h"
#include "checkpoint/state_slices.h"

namespace tokamak {

class PeerCopies {
 public:
  /// `links`: of all ranks, in the host's memory. Both must outlive this.
  PeerCopies(Communicator& links, const RankMachines& machines) : links_(links), machines_(machines) {}

  /// The slices of another rank are here, and then piece by piece their elements from element `at` of a slice on.
  struct Keeper {
    std::function<void(int rank, const std::vector<StateSlice>& slices)> begin;
    std::function<void(const StateSlice& slice, int64_t at, std::span<const std::byte> piece)> place;
  };
  /// All ranks call it at the same time. What `keeper` throws is thrown when all has been sent and received.
  void exchange(const std::vector<StateFile>& files, const std::vector<StateSlice>& slices, const ReadSlice& read,
                const Keeper& keeper);

 private:
  struct Piece {
    const StateSlice* slice;
    int64_t at, count;
  };
  static std::vector<Piece> pieces_of(const std::vector<StateSlice>& slices);
  void swap(std::span<const std::byte> out, int to, std::span<std::byte> in, int from);
  std::vector<StateSlice> swap_slices(const std::vector<StateSlice>& mine, int to, int from);
  void swap_pieces(const std::vector<StateFile>& files, const std::vector<StateSlice>& mine, int to,
                   const ReadSlice& read, const std::vector<StateSlice>& theirs, int from,
                   const std::function<void(const Piece&, std::span<const std::byte>)>& take);

  Communicator& links_;
  const RankMachines& machines_;
};

}  // namespace tokamak
