#include "plan/pipe_schedule.h"

#include "base/error.h"
#include "plan/pipe_timeline.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

namespace tokamak {
namespace {

using Kind = PipeAction::Kind;
using Actions = std::vector<PipeAction>;

// `warm_up` forward passes, then one forward and one backward in turn, then what is left of the backward passes.
Actions one_by_one(const Actions& forward, const Actions& backward, int64_t warm_up) {
  auto ahead = size_t(std::clamp<int64_t>(warm_up, 0, int64_t(forward.size())));
  Actions actions(forward.begin(), forward.begin() + int64_t(ahead));
  for (size_t i = 0; i < backward.size(); ++i) {
    if (ahead + i < forward.size()) actions.push_back(forward[ahead + i]);
    actions.push_back(backward[i]);
  }
  return actions;
}

Actions all_of(Kind kind, int64_t chunk, int64_t micro_batches) {
  Actions actions;
  for (int64_t m = 0; m < micro_batches; ++m) actions.push_back({kind, chunk, m});
  return actions;
}

Actions gpipe(const PipeSchedule& s, int64_t stage) {
  return one_by_one(all_of(Kind::kForward, stage, s.micro_batches), all_of(Kind::kBackward, stage, s.micro_batches),
                    s.micro_batches);
}

Actions one_forward_one_backward(const PipeSchedule& s, int64_t stage) {
  return one_by_one(all_of(Kind::kForward, stage, s.micro_batches), all_of(Kind::kBackward, stage, s.micro_batches),
                    s.stages - stage - 1);
}

// Of as many micro-batches as there are stages, all go through one chunk of the stage before the next one.
Actions interleaved(const PipeSchedule& s, int64_t stage) {
  int64_t own = s.chunks / s.stages;
  Actions forward, backward;
  for (int64_t first = 0; first < s.micro_batches; first += s.stages)
    for (int64_t i = 0; i < own; ++i)
      for (int64_t m = first; m < first + s.stages; ++m) {
        forward.push_back({Kind::kForward, i * s.stages + stage, m});
        backward.push_back({Kind::kBackward, (own - 1 - i) * s.stages + stage, m});
      }
  return one_by_one(forward, backward, 2 * (s.stages - stage - 1) + (own - 1) * s.stages);
}

// Stage s puts s micro-batches' gradients of parameters off, so that each stage holds as many micro-batches as there
// are stages. The first has nothing to hurry with: nobody waits for its gradients.
Actions zero_bubble(const PipeSchedule& s, int64_t stage) {
  Actions actions;
  int64_t weights = 0;
  for (const PipeAction& action : one_forward_one_backward(s, stage)) {
    bool is_backward = action.kind == Kind::kBackward && stage > 0;
    actions.push_back({is_backward ? Kind::kBackwardInput : action.kind, stage, action.micro_batch});
    if (is_backward && action.micro_batch >= stage) actions.push_back({Kind::kBackwardWeight, stage, weights++});
  }
  for (; stage > 0 && weights < s.micro_batches; ++weights) actions.push_back({Kind::kBackwardWeight, stage, weights});
  return actions;
}

struct NamedSchedule {
  std::string_view name;
  Actions (*actions)(const PipeSchedule&, int64_t stage);
};
constexpr NamedSchedule kSchedules[] = {
    {"1f1b", one_forward_one_backward},
    {"gpipe", gpipe},
    {"interleaved", interleaved},
    {"zero_bubble", zero_bubble},
};

// Both ends of the transfer that follows an action, and their stages; none after most.
struct Transfer {
  PipeAction send, receive;
  int64_t from = 0, to = 0;
};
std::vector<Transfer> transfers_after(const PipeSchedule& s, const PipeAction& action) {
  int64_t chunk = action.chunk, m = action.micro_batch, stage = s.stage_of(chunk);
  if (action.kind == Kind::kForward && chunk + 1 < s.chunks && s.is_sent(chunk + 1))
    return {{{Kind::kSend, chunk + 1, m}, {Kind::kReceive, chunk + 1, m}, stage, s.stage_of(chunk + 1)}};
  if ((action.kind == Kind::kBackward || action.kind == Kind::kBackwardInput) && s.is_sent(chunk))
    return {{{Kind::kSendGradient, chunk, m}, {Kind::kReceiveGradient, chunk, m}, stage, s.stage_of(chunk - 1)}};
  return {};
}

// All that happens on all stages in one order, transfers where what they send is done; and of it each stage's part.
void insert_transfers(PipeSchedule& s) {
  using Key = std::tuple<double, bool, Kind, int64_t, int64_t>;  // a transfer goes before what begins when it does
  std::map<Key, std::vector<std::pair<int64_t, PipeAction>>> order;
  std::vector<ChunkSeconds> alike{size_t(s.chunks), ChunkSeconds{}};
  for (const PipeSpan& span : simulate_pipe(s, alike, 0).spans) {
    const PipeAction& a = span.action;
    order[{span.start, true, a.kind, a.chunk, a.micro_batch}] = {{span.stage, a}};
    for (const Transfer& t : transfers_after(s, a))
      order[{span.end, false, t.send.kind, t.send.chunk, a.micro_batch}] = {{t.from, t.send}, {t.to, t.receive}};
  }
  s.actions.assign(size_t(s.stages), {});
  for (const auto& [key, ends] : order)
    for (const auto& [stage, action] : ends) s.actions[size_t(stage)].push_back(action);
}

}  // namespace

bool is_transfer(PipeAction::Kind kind) { return kind >= Kind::kSend; }

bool PipeSchedule::splits_backward(int64_t chunk) const {
  const Actions& own = actions[size_t(stage_of(chunk))];
  return std::any_of(own.begin(), own.end(), [](const PipeAction& a) { return a.kind == Kind::kBackwardInput; });
}

int64_t PipeSchedule::in_flight(int64_t stage, const PipeAction& first, const PipeAction& last) const {
  int64_t now = 0, most = 0;
  auto is = [](const PipeAction& a, const PipeAction& b) { return a.kind == b.kind && a.chunk == b.chunk; };
  for (const PipeAction& action : actions[size_t(stage)]) {
    if (is(action, first)) most = std::max(most, ++now);
    if (is(action, last)) --now;
  }
  return most;
}

PipeSchedule make_pipe_actions(std::string_view name, int64_t stages, int64_t interleave, int64_t micro_batches) {
  const NamedSchedule* found = std::find_if(std::begin(kSchedules), std::end(kSchedules),
                                            [&](const NamedSchedule& known) { return known.name == name; });
  TOKAMAK_CHECK(found != std::end(kSchedules), "there is no schedule '{}'", name);
  bool fits = interleave == 1 || (name == "interleaved" && micro_batches % stages == 0);
  TOKAMAK_CHECK(fits, "schedule {} of {} stages x {} with {} micro-batches", name, stages, interleave, micro_batches);
  PipeSchedule s{stages, stages * interleave, micro_batches, {}};
  for (int64_t stage = 0; stage < stages; ++stage) s.actions.push_back(found->actions(s, stage));
  return s;
}

PipeSchedule make_pipe_schedule(std::string_view name, int64_t stages, int64_t interleave, int64_t micro_batches) {
  PipeSchedule s = make_pipe_actions(name, stages, interleave, micro_batches);
  insert_transfers(s);
  return s;
}

PipeSchedule forward_part(PipeSchedule schedule) {
  auto goes_forward = [](const PipeAction& a) {
    return a.kind == Kind::kForward || a.kind == Kind::kSend || a.kind == Kind::kReceive;
  };
  for (Actions& actions : schedule.actions) std::erase_if(actions, std::not_fn(goes_forward));
  return schedule;
}

}  // namespace tokamak
