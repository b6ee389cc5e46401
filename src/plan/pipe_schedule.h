// Who does what in which order when the model is divided over the stages of a pipeline, as plain data. The model is cut
// into chunks, of which stage s of P has s, P + s, 2P + s, ...; every micro-batch goes through all of them, forward and
// back. The schedules differ in the order alone; in all of them each kind of action of a chunk takes the micro-batches
// from the first to the last, so that gradients are added in one order. Sources:
//
//   gpipe        all forward, then all backward (Huang et al., GPipe, arXiv 1811.06965)
//   1f1b         backward as soon as it can be: at most P micro-batches are in flight (PipeDream-flush; Narayanan et
//                al., Megatron-LM, arXiv 2104.04473, section 2.2)
//   interleaved  the same with several chunks a stage, which divides the bubble by their number (ibid.)
//   zero_bubble  1f1b whose gradients of parameters are put off until a stage would wait: ZB-H1 (Qi et al., arXiv
//                2401.10241), in the memory of 1f1b's first stage
//
// Tests: tests/plan/pipe_schedule_test.cpp.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tokamak {

/// One action of a stage. A transfer's chunk is the one that reads the stream: its input goes forward to it from the
/// chunk before, and the gradient of that input goes back from it.
struct PipeAction {
  enum class Kind : uint8_t {
    kForward,
    kBackward,        // gradients of inputs and parameters
    kBackwardInput,   // in two parts: what the stage before waits for,
    kBackwardWeight,  // and what nobody does
    kSend,
    kReceive,
    kSendGradient,
    kReceiveGradient,
  };
  Kind kind = Kind::kForward;
  int64_t chunk = 0;
  int64_t micro_batch = 0;

  bool operator==(const PipeAction&) const = default;
};

bool is_transfer(PipeAction::Kind kind);

struct PipeSchedule {
  int64_t stages = 1;
  int64_t chunks = 1;  // of the whole model
  int64_t micro_batches = 1;
  std::vector<std::vector<PipeAction>> actions;  // by stage, in order; after them comes the update

  int64_t stage_of(int64_t chunk) const { return chunk % stages; }
  /// Whether the stage of the chunk has backward passes in two parts.
  bool splits_backward(int64_t chunk) const;
  /// Whether the input of this chunk comes from another stage.
  bool is_sent(int64_t chunk) const { return chunk > 0 && stage_of(chunk - 1) != stage_of(chunk); }
  /// The most micro-batches that have begun action `first` of a stage and not ended `last`: so many buffers has a state
  /// that the one writes and the other is the last to read, and micro-batch m has number m % buffers. (Of micro_batch
  /// in them nothing is read.)
  int64_t in_flight(int64_t stage, const PipeAction& first, const PipeAction& last) const;
};

/// `name` is one of kPipeSchedules (config/mesh_config.h). `interleave` chunks a stage; more than one, and
/// micro-batches that the stages divide, only with "interleaved". Transfers stand in the order of one list for all
/// stages, of which each has its part: so ranks that wait in every transfer for the other rank never wait for each
/// other for ever.
PipeSchedule make_pipe_schedule(std::string_view name, int64_t stages, int64_t interleave, int64_t micro_batches);

/// The same without transfers: enough to tell what stages hold and when they work (plan/pipe_timeline.h).
PipeSchedule make_pipe_actions(std::string_view name, int64_t stages, int64_t interleave, int64_t micro_batches);

/// What of it goes forward, in the same order: it takes no more buffers than all of it does, also of fewer
/// micro-batches.
PipeSchedule forward_part(PipeSchedule schedule);

}  // namespace tokamak
