// Tensors on their way between the stages of a pipeline. Tests: tests/mesh/session_test.cpp.
#pragma once

#include "compile/compiled_step.h"
#include "exec/program.h"

#include <map>
#include <set>

namespace tokamak {

/// The transfers of one rank, in the order of its schedule, on a stream of their own: kernels go on meanwhile, and only
/// those that touch what is on its way wait for it.
class StageTransfers {
 public:
  /// `ranks` null: there is no pipeline. All must outlive it.
  StageTransfers(const MeshRanks* ranks, Backend& backend, const TensorStore& store)
      : ranks_(ranks), backend_(backend), store_(store) {}

  /// As Program::observe.
  void observe(WorkObserver* observer) { observer_ = observer; }
  /// After all that was asked for on stream 0 so far. The other stage's rank does its part of it.
  void start(const StageTransfer& transfer, int64_t micro_batch);
  /// What is asked for on stream 0 from now on may touch what the program does of this micro-batch ...
  void wait_for(const Program& program, int64_t micro_batch);
  /// ... or all states.
  void wait_for_all();

 private:
  using Buffer = std::pair<std::string, int64_t>;
  Buffer buffer_of(const std::string& state, int64_t micro_batch) const;
  void wait_for(const Buffer& buffer);

  const MeshRanks* ranks_;
  Backend& backend_;
  const TensorStore& store_;
  WorkObserver* observer_ = nullptr;
  std::unique_ptr<StreamEvent> begin_;
  std::map<Buffer, std::unique_ptr<StreamEvent>> done_;  // of each buffer that was ever sent or received, the last time
  std::set<Buffer> under_way_;
};

}  // namespace tokamak
