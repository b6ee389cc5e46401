// Silent corruption: every train.verify_every steps each data rank computes one slot of another again, and ranks
// compare bits: of the slot's gradients, and of what they all keep of parameters and optimizer states. Tests:
// tests/run/slot_check_test.cpp, tests/mesh/slot_check_test.cpp.
#pragma once

#include "backend/backend.h"
#include "base/communication_error.h"
#include "compile/compiled_step.h"
#include "exec/tensor_store.h"

#include <memory>
#include <string>
#include <vector>

namespace tokamak {

/// Ranks that should have the same bits have not: one of them computes or remembers wrongly. Where the run starts again
/// by itself it is as if ranks were lost.
class CorruptedStep : public CommunicationError {
 public:
  using CommunicationError::CommunicationError;
};

/// What a rank computes again in the n-th check: a slot of another one, its `run`-th.
struct SlotTurn {
  int64_t run = 0;
  int64_t of_rank = 0;
  bool operator==(const SlotTurn&) const = default;
};
/// All slots come, each by all other ranks, one after the other.
SlotTurn slot_turn(int64_t number, int64_t rank, int64_t ranks, int64_t runs);

/// What a data rank has found, a digest for each tensor.
struct SlotDigests {
  std::string rank;     // as messages name it
  int64_t of_rank = 0;  // whose slot it computed again
  std::vector<uint64_t> first, again, kept;
};
/// What differs, in words, and whose fault it may be; empty: nothing does. `gradients` and `kept`: names.
std::string describe_corruption(const std::vector<SlotDigests>& all, const std::vector<std::string>& gradients,
                                const std::vector<std::string>& kept, int64_t step);

/// UserError where a run cannot be checked: where no other rank could compute a slot, or no checkpoint would be left.
void require_checkable(const ResolvedRun& run);

class SlotCheck {
 public:
  /// Of a rank whose programs and tensors these are; all outlive it.
  SlotCheck(const CompiledStep& step, const TensorStore& store, Backend& backend, const MeshRanks& ranks);

  /// Whether this step, counted from 1, is checked.
  bool is_due(int64_t step) const { return step % every_ == 0; }
  SlotTurn turn(int64_t step) const;

  /// The gradients that a slot's program has just left in the states of the rank's `run`-th slot.
  void take_again(int64_t run) { again_ = take(gradients_[run % 2]); }
  void take_first(int64_t run) { first_ = take(gradients_[run % 2]); }
  /// After a checked step, on all ranks: what differs; empty: nothing.
  std::string compare(int64_t step);

 private:
  struct Tensors {
    std::vector<std::unique_ptr<Kernel>> digests;
    std::unique_ptr<Memory> all;
  };
  Tensors tensors(const std::vector<std::string>& names, const std::vector<std::string>& salts) const;
  std::unique_ptr<Readback> take(const Tensors& tensors) const;

  const TensorStore& store_;
  Backend& backend_;
  const MeshRanks& ranks_;
  int64_t every_, runs_;
  std::vector<std::string> gradient_names_, kept_names_;
  Tensors gradients_[2], kept_;  // gradients of even and odd runs
  std::unique_ptr<Readback> first_, again_;
};

}  // namespace tokamak
