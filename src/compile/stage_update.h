// What a stage of a pipeline does after its micro-batches: the update of its parameters, together with the other
// stages. Tests: tests/compile/pipe_compiler_test.cpp.
#pragma once

#include "autodiff/optimizer.h"
#include "compile/compiled_step.h"
#include "compile/pipe_chunk.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace tokamak {

/// Sums of gradients of what another stage has too, and the program. Before them, where the other stage is done later,
/// gradients of all else are added up over data ranks.
struct StageUpdate {
  std::optional<CompiledGraph> sums = {};
  std::vector<ProgramRun> transfers;
  CompiledGraph program;
};

/// Whether data ranks may add gradients up before a stage's update.
bool adds_up_before_update(const ResolvedRun& run);

void append_update(CompiledStep& step, StageUpdate update);

/// The parameters whose gradients the stage's programs have added up over ranks.
std::set<std::string> reduced_by(const CompiledStep& stage);

class UpdateCompiler {
 public:
  /// `reads`: which parameters a stage has. `run` and `compiler` must outlive it.
  UpdateCompiler(const ResolvedRun& run, const ChunkCompiler& compiler, int64_t stages,
                 const std::function<bool(int64_t stage, const std::string& name)>& reads);

  /// `reduced`: the parameters whose gradients the stage's last backward pass has added up.
  StageUpdate compile(int64_t stage, std::set<std::string> reduced, const PassObserver& observer) const;

 private:
  Graph sums_of(int64_t stage) const;
  Graph graph_of(int64_t stage, const OtherStages& others) const;

  const ResolvedRun& run_;
  const ChunkCompiler& compiler_;
  std::vector<Graph> models_;  // by stage: its parameters, as the model's graph has them
  std::vector<OtherStages> others_;
  std::vector<std::vector<ProgramRun>> transfers_;
};

}  // namespace tokamak
