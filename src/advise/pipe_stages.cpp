#include "advise/pipe_stages.h"

#include <algorithm>

namespace tokamak {
namespace {

// Stages that each do their passes in order, and wait for what other stages send.
class Stages {
 public:
  Stages(const MeshConfig& mesh, int64_t micro_batches, const std::vector<ChunkSeconds>& chunks, double transfer)
      : splits_(mesh.schedule == "zero_bubble"), stages_(mesh.pipe), own_(mesh.interleave), runs_(micro_batches),
        passes_(own_ * micro_batches), transfer_(transfer), chunks_(chunks), state_(size_t(stages_)),
        ends_(2 * chunks.size() * size_t(runs_), kNotDone) {
    for (int64_t stage = 0; stage < stages_; ++stage)
      state_[size_t(stage)].ahead = mesh.schedule == "gpipe" ? passes_ : passes_ahead(stage);
    // As many micro-batches as there are stages go through one chunk of a stage before the next one.
    for (int64_t first = 0; first < runs_; first += stages_)
      for (int64_t row = 0; row < own_; ++row)
        for (int64_t run = first; run < std::min(first + stages_, runs_); ++run) turns_.push_back({row, run});
  }

  double run() {
    for (bool any = true; any;) {
      any = false;
      for (int64_t stage = 0; stage < stages_; ++stage)
        while (go_on(stage)) any = true;
    }
    double end = 0;
    for (int64_t stage = 0; stage < stages_; ++stage)
      end = std::max(end, state_[size_t(stage)].now + weights_left(stage));
    return end;
  }

 private:
  static constexpr double kNotDone = -1;

  // A pass: which of a stage's chunks, and the micro-batch.
  struct Turn {
    int64_t row = 0, run = 0;
  };
  struct State {
    int64_t forward = 0, backward = 0;  // passes that are done
    int64_t ahead = 0;                  // forward ones before the first backward one
    double now = 0;
  };

  int64_t passes_ahead(int64_t stage) const {
    int64_t behind = stages_ - stage - 1;
    return own_ > 1 ? 2 * behind + (own_ - 1) * stages_ : behind;
  }
  double& end(bool is_forward, int64_t chunk, int64_t run) {
    return ends_[size_t((2 * chunk + int64_t(is_forward)) * runs_ + run)];
  }
  double weights_left(int64_t stage) const {
    if (!splits_ || stage == 0) return 0;
    return double(std::min(stage, runs_)) * chunks_[size_t(stage)].backward_weight;
  }

  // Does the next pass of the stage if it can.
  bool go_on(int64_t stage) {
    State& s = state_[size_t(stage)];
    bool is_forward = s.forward < passes_ && s.forward <= s.ahead + s.backward;
    if (!is_forward && s.backward == passes_) return false;
    return is_forward ? go_forward(stage, s) : go_backward(stage, s);
  }

  bool go_forward(int64_t stage, State& s) {
    auto [row, run] = turns_[size_t(s.forward)];
    int64_t chunk = row * stages_ + stage;
    double ready = chunk == 0 ? 0 : end(true, chunk - 1, run);
    if (ready == kNotDone) return false;
    s.now = std::max(s.now, ready + (chunk == 0 ? 0 : transfer_)) + chunks_[size_t(chunk)].forward;
    end(true, chunk, run) = s.now;
    ++s.forward;
    return true;
  }

  bool go_backward(int64_t stage, State& s) {
    auto [row, run] = turns_[size_t(s.backward)];
    int64_t chunk = (own_ - 1 - row) * stages_ + stage;
    bool is_last = chunk + 1 == int64_t(chunks_.size());
    double ready = is_last ? 0 : end(false, chunk + 1, run);
    if (ready == kNotDone || end(true, chunk, run) == kNotDone) return false;
    const ChunkSeconds& seconds = chunks_[size_t(chunk)];
    bool splits = splits_ && stage > 0;
    s.now = std::max(s.now, ready + (is_last ? 0 : transfer_)) + (splits ? seconds.backward_input : seconds.backward);
    end(false, chunk, run) = s.now;
    if (splits && run >= stage) s.now += seconds.backward_weight;
    ++s.backward;
    return true;
  }

  bool splits_;
  int64_t stages_, own_, runs_, passes_;  // chunks of a stage; micro-batches; passes of a stage in one direction
  double transfer_;
  const std::vector<ChunkSeconds>& chunks_;
  std::vector<Turn> turns_;  // of a stage, in one direction
  std::vector<State> state_;
  std::vector<double> ends_;  // by chunk, direction and micro-batch
};

}  // namespace

std::vector<int64_t> blocks_of_chunks(int64_t blocks, int64_t chunks, const BlockSeconds& seconds) {
  if (chunks == 1) return {blocks};
  double best = 0;
  int64_t best_last = 1;
  for (int64_t last = (blocks + chunks - 1) / chunks; last >= 1; --last) {
    int64_t others = blocks - last, each = (others + chunks - 2) / (chunks - 1);
    double first = others == each * (chunks - 1) ? seconds.embedding : 0;  // else it has one block less
    double slowest = std::max(double(each) * seconds.block + first, double(last) * seconds.block + seconds.head);
    if (best != 0 && slowest >= best) continue;
    best = slowest;
    best_last = last;
  }
  std::vector<int64_t> of_chunks(size_t(chunks), best_last);
  int64_t left = blocks - best_last;
  for (int64_t chunk = chunks - 2; chunk >= 0; --chunk) left -= of_chunks[size_t(chunk)] = (left + chunk) / (chunk + 1);
  return of_chunks;
}

std::vector<int64_t> micro_batches_in_flight(const MeshConfig& mesh, int64_t micro_batches, int64_t stage) {
  if (mesh.pipe == 1) return {1};
  int64_t P = mesh.pipe, V = mesh.interleave, behind = P - stage - 1;
  if (mesh.schedule == "gpipe") return {micro_batches};
  if (V == 1) return {std::min(micro_batches, behind + 1)};
  // A stage runs chunks in turns of as many micro-batches as there are stages, the last chunk's backward pass first;
  // when `ahead` forward passes are done, forward and backward ones take turns.
  int64_t ahead = 2 * behind + (V - 1) * P;
  auto done = [&](int64_t passes, int64_t chunk) {
    return passes / (P * V) * P + std::clamp<int64_t>(passes % (P * V) - chunk * P, 0, P);
  };
  // The count of a chunk grows only in its own turn, so it is largest where one ends. When backward passes have begun,
  // turns are all alike.
  std::vector<int64_t> in_flight;
  for (int64_t chunk = 0; chunk < V; ++chunk) {
    int64_t most = 0;
    for (int64_t passes = (chunk + 1) * P; passes <= ahead + 2 * P * V; passes += P * V)
      most = std::max(most, done(passes, chunk) - done(std::max<int64_t>(0, passes - 1 - ahead), V - 1 - chunk));
    in_flight.push_back(std::min(most, micro_batches));
  }
  return in_flight;
}

double pipe_seconds(const MeshConfig& mesh, int64_t micro_batches, const std::vector<ChunkSeconds>& chunks,
                    double transfer) {
  // By then every stage has all that it can have in flight, and goes on in turns.
  int64_t turn = mesh.pipe, few = 4 * turn;
  auto seconds = [&](int64_t runs) { return Stages(mesh, runs, chunks, transfer).run(); };
  if (micro_batches <= few + turn) return seconds(micro_batches);
  double all = seconds(few);
  return all + double(micro_batches - few) / double(turn) * (all - seconds(few - turn));
}

double least_pipe_seconds(const MeshConfig& mesh, int64_t micro_batches, const std::vector<ChunkSeconds>& chunks) {
  bool splits = mesh.schedule == "zero_bubble";
  double least = 0, there = 0, back = 0;
  for (size_t stage = 0; stage < size_t(mesh.pipe); ++stage) {
    double work = 0;
    for (size_t chunk = stage; chunk < chunks.size(); chunk += size_t(mesh.pipe))
      work += chunks[chunk].forward + chunks[chunk].backward;
    const ChunkSeconds& first = chunks[stage];
    // Gradients of weights that are left, and those of the last micro-batch, fill the way back.
    double left = splits ? double(std::min(int64_t(stage) + 1, micro_batches)) * first.backward_weight : 0;
    least = std::max(least, there + double(micro_batches) * work + std::max(0.0, back - left));
    there += first.forward;
    back += splits && stage > 0 ? first.backward_input : first.backward;
  }
  return least;
}

}  // namespace tokamak
