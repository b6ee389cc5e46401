#include "plan/pipe_timeline.h"

#include "base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace tokamak {
namespace {

using Kind = PipeAction::Kind;

bool is_last_of_micro_batch(Kind kind) { return kind == Kind::kBackward || kind == Kind::kBackwardWeight; }

class Simulator {
 public:
  Simulator(const PipeSchedule& schedule, const std::vector<ChunkSeconds>& chunks, double transfer)
      : schedule_(schedule), chunks_(chunks), transfer_(transfer), next_(size_t(schedule.stages), 0) {
    TOKAMAK_CHECK(int64_t(chunks.size()) == schedule.chunks, "seconds of {} chunks for {}", chunks.size(),
                  schedule.chunks);
    forward_.resize(size_t(schedule.chunks * schedule.micro_batches));
    backward_.resize(forward_.size());
  }

  PipeTimeline run() {
    std::vector<std::vector<PipeSpan>> spans(size_t(schedule_.stages));
    for (bool any = true; any;) {
      any = false;
      for (size_t stage = 0; stage < spans.size(); ++stage)
        while (go_on(stage, spans[stage])) any = true;
    }
    for (size_t stage = 0; stage < spans.size(); ++stage)
      TOKAMAK_CHECK(next_[stage] == schedule_.actions[stage].size(), "stage {} waits for ever in {}", stage,
                    pipe_label(schedule_, schedule_.actions[stage][next_[stage]]));
    return timeline_of(spans);
  }

 private:
  using Time = std::optional<double>;

  Time& at(std::vector<Time>& ends, const PipeAction& a, int64_t chunk) {
    return ends[size_t(chunk * schedule_.micro_batches + a.micro_batch)];
  }

  // When all that the action reads is there.
  Time ready(const PipeAction& a) {
    auto sent = [&](Time end, int64_t reader) {
      return end && schedule_.is_sent(reader) ? Time(*end + transfer_) : end;
    };
    if (is_transfer(a.kind)) return 0;
    if (a.kind == Kind::kForward) return a.chunk == 0 ? Time(0) : sent(at(forward_, a, a.chunk - 1), a.chunk);
    if (a.kind == Kind::kBackwardWeight) return at(backward_, a, a.chunk);
    Time own = at(forward_, a, a.chunk);
    if (!own || a.chunk + 1 == schedule_.chunks) return own;
    return sent(at(backward_, a, a.chunk + 1), a.chunk + 1);
  }

  double seconds(const PipeAction& a, bool is_last) const {
    const ChunkSeconds& chunk = chunks_[size_t(a.chunk)];
    if (is_last && chunk.last) return *chunk.last;
    switch (a.kind) {
      case Kind::kForward: return chunk.forward;
      case Kind::kBackward: return chunk.backward;
      case Kind::kBackwardInput: return chunk.backward_input;
      case Kind::kBackwardWeight: return chunk.backward_weight;
      default: return 0;
    }
  }

  // Does the next action of the stage if it can.
  bool go_on(size_t stage, std::vector<PipeSpan>& spans) {
    if (next_[stage] == schedule_.actions[stage].size()) return false;
    const PipeAction& action = schedule_.actions[stage][next_[stage]];
    Time when = ready(action);
    if (!when) return false;
    ++next_[stage];
    if (is_transfer(action.kind)) return true;
    double start = std::max(*when, spans.empty() ? 0 : spans.back().end);
    bool is_last = next_[stage] == schedule_.actions[stage].size();
    spans.push_back({int64_t(stage), start, start + seconds(action, is_last), action});
    if (action.kind == Kind::kForward) at(forward_, action, action.chunk) = spans.back().end;
    if (action.kind == Kind::kBackward || action.kind == Kind::kBackwardInput)
      at(backward_, action, action.chunk) = spans.back().end;
    return true;
  }

  PipeTimeline timeline_of(const std::vector<std::vector<PipeSpan>>& spans) const {
    PipeTimeline timeline;
    double busy = 0;
    for (const std::vector<PipeSpan>& own : spans) {
      int64_t now = 0, most = 0;
      for (const PipeSpan& span : own) {
        timeline.seconds = std::max(timeline.seconds, span.end);
        busy += span.end - span.start;
        if (span.action.kind == Kind::kForward) most = std::max(most, ++now);
        if (is_last_of_micro_batch(span.action.kind)) --now;
      }
      timeline.in_flight.push_back(most);
      timeline.ends.push_back(own.empty() ? 0 : own.back().end);
      timeline.spans.insert(timeline.spans.end(), own.begin(), own.end());
    }
    timeline.bubble = 1 - busy / (double(schedule_.stages) * timeline.seconds);
    return timeline;
  }

  const PipeSchedule& schedule_;
  const std::vector<ChunkSeconds>& chunks_;
  double transfer_;
  std::vector<size_t> next_;              // by stage, the action to do
  std::vector<Time> forward_, backward_;  // by chunk and micro-batch, when that was done
};

}  // namespace

PipeTimeline simulate_pipe(const PipeSchedule& schedule, const std::vector<ChunkSeconds>& chunks, double transfer) {
  return Simulator(schedule, chunks, transfer).run();
}

std::string pipe_label(const PipeSchedule& schedule, const PipeAction& action) {
  constexpr const char* kLetters[] = {"F", "B", "I", "W", "send", "recv", "send d", "recv d"};
  std::string label = fmt::format("{}{}", kLetters[size_t(action.kind)], action.micro_batch);
  return schedule.chunks == schedule.stages ? label : fmt::format("{}.{}", label, action.chunk);
}

}  // namespace tokamak
