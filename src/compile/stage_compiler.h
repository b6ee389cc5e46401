// What a rank of one stage of a pipeline does in a step, but for the update: the programs of its chunks, what adds up
// their gradients over slots, and in which order they run and the stage exchanges. Tests:
// tests/compile/pipe_compiler_test.cpp.
#pragma once

#include "autodiff/slots.h"
#include "compile/compiled_step.h"
#include "compile/pipe_chunk.h"
#include "plan/pipe_schedule.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tokamak {

/// A graph of the model's parameters that are wanted, by name.
Graph take_parameters(const Graph& model, const std::function<bool(const std::string&)>& is_wanted);

class StageCompiler {
 public:
  /// Adds to `step`. Without slots nobody adds up what runs give.
  StageCompiler(const PipeSchedule& schedule, const Slots& slots, int64_t stage, const ChunkCompiler& compiler,
                PassObserver observer, CompiledStep& step)
      : schedule_(schedule), slots_(slots), stage_(stage), compiler_(compiler), observer_(std::move(observer)),
        step_(step) {}

  /// The programs of one of the stage's chunks. What makes its weights runs before all else.
  void add(int64_t chunk, CompiledChunk compiled);
  /// When all its chunks are there.
  void list_runs();

 private:
  using Key = std::pair<PipeAction::Kind, int64_t>;  // and its chunk
  struct LastProgram {
    Key in_place_of;
    size_t program;
  };
  struct Use {
    std::optional<PipeAction> first, last;  // what writes it, and what reads it last
  };

  void add_sums(Key key);
  void add_run(Key key, int64_t micro_batch);
  void find_uses(const Graph& graph, PipeAction action);
  StageTransfer transfer_of(const PipeAction& action);

  const PipeSchedule& schedule_;
  Slots slots_;
  int64_t stage_;
  const ChunkCompiler& compiler_;
  PassObserver observer_;
  CompiledStep& step_;
  std::map<Key, size_t> programs_;
  std::optional<LastProgram> last_;          // of all that the stage runs
  std::map<Key, std::vector<size_t>> sums_;  // of programs that give gradients: by level, and behind them the total
  std::map<std::string, Use> uses_;
};

}  // namespace tokamak
