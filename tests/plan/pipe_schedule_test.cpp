#include "plan/pipe_schedule.h"

#include <gtest/gtest.h>

#include "config/mesh_config.h"
#include "plan/pipe_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace tokamak {
namespace {

using Kind = PipeAction::Kind;

// Every schedule of up to 8 stages and 16 micro-batches.
void for_all(const std::function<void(const PipeSchedule&, std::string_view name)>& look) {
  for (std::string_view name : kPipeSchedules)
    for (int64_t stages = 1; stages <= 8; ++stages)
      for (int64_t micro_batches = 1; micro_batches <= 16; ++micro_batches)
        for (int64_t interleave : {1, 2, 3}) {
          bool is_interleaved = name == "interleaved";
          if (is_interleaved ? micro_batches % stages != 0 : interleave > 1) continue;
          SCOPED_TRACE(fmt::format("{} {} x {}, {} micro-batches", name, stages, interleave, micro_batches));
          look(make_pipe_schedule(name, stages, interleave, micro_batches), name);
        }
}

std::string text_of(const PipeSchedule& schedule, int64_t stage) {
  std::string text;
  for (const PipeAction& action : schedule.actions[size_t(stage)])
    text += fmt::format("{}{}", text.empty() ? "" : " ", pipe_label(schedule, action));
  return text;
}

TEST(PipeSchedule, OfTwoStagesReadsAsInThePapers) {
  auto text = [](const char* name, int64_t stage) { return text_of(make_pipe_schedule(name, 2, 1, 3), stage); };
  EXPECT_EQ(text("gpipe", 0), "F0 send0 F1 send1 F2 send2 recv d0 B0 recv d1 B1 recv d2 B2");
  EXPECT_EQ(text("1f1b", 0), "F0 send0 F1 send1 recv d0 B0 F2 send2 recv d1 B1 recv d2 B2");
  EXPECT_EQ(text("1f1b", 1), "recv0 F0 recv1 B0 send d0 F1 B1 recv2 send d1 F2 B2 send d2");
  EXPECT_EQ(text("zero_bubble", 0), "F0 send0 F1 send1 recv d0 B0 recv d1 F2 send2 B1 recv d2 B2");
  EXPECT_EQ(text("zero_bubble", 1), "recv0 F0 recv1 I0 send d0 F1 I1 send d1 W0 recv2 F2 I2 send d2 W1 W2");
  EXPECT_EQ(text_of(make_pipe_schedule("interleaved", 2, 2, 2), 1),
            "recv0.1 F0.1 recv1.1 send0.2 F1.1 send1.2 recv0.3 F0.3 recv1.3 B0.3 send d0.3 F1.3 B1.3 recv d0.2 "
            "send d1.3 B0.1 send d0.1 recv d1.2 B1.1 send d1.1");
}

// A validation of a training run finds its buffers, and no rank waits for ever, also with fewer batches.
TEST(PipeSchedule, ForwardPartTakesNoMoreBuffersAndHasTheBubbleOfOnePass) {
  for_all([](const PipeSchedule& s, std::string_view) {
    PipeSchedule forward = forward_part(s);
    for (int64_t stage = 0; stage < s.stages; ++stage)
      for (int64_t chunk = stage; chunk < s.chunks; chunk += s.stages) {
        Kind begin = s.is_sent(chunk) ? Kind::kReceive : Kind::kForward;
        Kind last = s.splits_backward(chunk) ? Kind::kBackwardWeight : Kind::kBackward;
        ASSERT_LE(forward.in_flight(stage, {begin, chunk}, {Kind::kForward, chunk}),
                  s.in_flight(stage, {begin, chunk}, {last, chunk}));
      }
    PipeTimeline timeline = simulate_pipe(forward, std::vector<ChunkSeconds>(size_t(s.chunks)), 0);
    ASSERT_EQ(timeline.seconds, double(s.micro_batches * s.chunks / s.stages + s.stages - 1));
    for (std::vector<PipeAction>& actions : forward.actions)
      std::erase_if(actions, [](const PipeAction& a) { return a.micro_batch > 0; });
    ASSERT_EQ(simulate_pipe(forward, std::vector<ChunkSeconds>(size_t(s.chunks)), 0).seconds, double(s.chunks));
  });
}

TEST(PipeSchedule, DoesEverythingOnceAndEachKindInTheOrderOfMicroBatches) {
  for_all([](const PipeSchedule& s, std::string_view) {
    std::map<std::pair<Kind, int64_t>, int64_t> next;
    for (int64_t stage = 0; stage < s.stages; ++stage)
      for (const PipeAction& a : s.actions[size_t(stage)]) {
        if (!is_transfer(a.kind)) {
          ASSERT_EQ(s.stage_of(a.chunk), stage);
        }
        ASSERT_EQ(a.micro_batch, (next[{a.kind, a.chunk}]++));
      }
    for (int64_t chunk = 0; chunk < s.chunks; ++chunk) {
      bool splits = s.splits_backward(chunk);
      EXPECT_EQ((next[{Kind::kForward, chunk}]), s.micro_batches);
      EXPECT_EQ((next[{Kind::kBackward, chunk}]), splits ? 0 : s.micro_batches);
      EXPECT_EQ((next[{Kind::kBackwardInput, chunk}]), splits ? s.micro_batches : 0);
      EXPECT_EQ((next[{Kind::kBackwardWeight, chunk}]), splits ? s.micro_batches : 0);
      for (Kind kind : {Kind::kSend, Kind::kReceive, Kind::kSendGradient, Kind::kReceiveGradient})
        EXPECT_EQ((next[{kind, chunk}]), s.is_sent(chunk) ? s.micro_batches : 0);
    }
  });
}

// The other end of a transfer, and the stage that has it.
std::pair<int64_t, PipeAction> other_end(const PipeSchedule& s, PipeAction a) {
  constexpr std::pair<Kind, Kind> kEnds[] = {{Kind::kSend, Kind::kReceive},
                                             {Kind::kReceive, Kind::kSend},
                                             {Kind::kSendGradient, Kind::kReceiveGradient},
                                             {Kind::kReceiveGradient, Kind::kSendGradient}};
  for (auto [one, other] : kEnds)
    if (a.kind == one) {
      bool in_chunk = other == Kind::kReceive || other == Kind::kSendGradient;
      return {s.stage_of(in_chunk ? a.chunk : a.chunk - 1), {other, a.chunk, a.micro_batch}};
    }
  return {};
}

// Programs are run when what they read is there; in a transfer both ranks wait for each other.
bool ends(const PipeSchedule& s) {
  std::vector<size_t> next(size_t(s.stages), 0);
  std::set<std::tuple<Kind, int64_t, int64_t>> done;
  auto has = [&](Kind kind, int64_t chunk, int64_t m) { return done.count({kind, chunk, m}) > 0; };
  auto can = [&](const PipeAction& a) {
    int64_t c = a.chunk, m = a.micro_batch;
    bool input = c == 0 || has(s.is_sent(c) ? Kind::kReceive : Kind::kForward, s.is_sent(c) ? c : c - 1, m);
    bool gradient = c + 1 == s.chunks ||
                    (s.is_sent(c + 1) ? has(Kind::kReceiveGradient, c + 1, m) : has(Kind::kBackward, c + 1, m));
    switch (a.kind) {
      case Kind::kForward: return input;
      case Kind::kBackward:
      case Kind::kBackwardInput: return has(Kind::kForward, c, m) && gradient;
      case Kind::kBackwardWeight: return has(Kind::kBackwardInput, c, m);
      case Kind::kSend: return has(Kind::kForward, c - 1, m);
      case Kind::kSendGradient: return has(Kind::kBackward, c, m) || has(Kind::kBackwardInput, c, m);
      default: return true;
    }
  };
  auto finish = [&](int64_t stage, const PipeAction& a) {
    ++next[size_t(stage)];
    done.insert({a.kind, a.chunk, a.micro_batch});
  };
  for (bool any = true; any;) {
    any = false;
    for (int64_t stage = 0; stage < s.stages; ++stage) {
      if (next[size_t(stage)] == s.actions[size_t(stage)].size()) continue;
      PipeAction a = s.actions[size_t(stage)][next[size_t(stage)]];
      if (!can(a)) continue;
      if (is_transfer(a.kind)) {
        auto [peer, end] = other_end(s, a);
        if (next[size_t(peer)] == s.actions[size_t(peer)].size() || !can(end)) continue;
        if (s.actions[size_t(peer)][next[size_t(peer)]] != end) continue;
        finish(peer, end);
      }
      finish(stage, a);
      any = true;
    }
  }
  for (int64_t stage = 0; stage < s.stages; ++stage)
    if (next[size_t(stage)] != s.actions[size_t(stage)].size()) return false;
  return true;
}

TEST(PipeSchedule, NeverWaitsForEver) {
  for_all([](const PipeSchedule& s, std::string_view) { EXPECT_TRUE(ends(s)); });
}

TEST(PipeSchedule, TheTestOfWaitingFindsSendsInTheWrongOrder) {
  PipeSchedule s = make_pipe_schedule("1f1b", 2, 1, 3);
  std::vector<PipeAction>& first = s.actions[0];
  auto send = std::find(first.begin(), first.end(), PipeAction{Kind::kSend, 1, 2});
  auto receive = std::find(first.begin(), first.end(), PipeAction{Kind::kReceiveGradient, 1, 1});
  std::iter_swap(send, receive);
  EXPECT_FALSE(ends(s));
}

// A micro-batch finds its buffer free: the one before in it is done.
TEST(PipeSchedule, BuffersAreFreeWhenTheyAreTaken) {
  for_all([](const PipeSchedule& s, std::string_view) {
    for (int64_t chunk = 0; chunk < s.chunks; ++chunk) {
      bool splits = s.splits_backward(chunk);
      PipeAction first{s.is_sent(chunk) ? Kind::kReceive : Kind::kForward, chunk};
      PipeAction last{splits ? Kind::kBackwardWeight : Kind::kBackward, chunk};
      int64_t stage = s.stage_of(chunk), buffers = s.in_flight(stage, first, last);
      std::vector<bool> taken(size_t(buffers), false);
      for (const PipeAction& a : s.actions[size_t(stage)]) {
        auto buffer = taken.begin() + a.micro_batch % buffers;
        if (a.chunk != chunk) continue;
        if (a.kind == first.kind) {
          ASSERT_FALSE(*buffer);
          *buffer = true;
        }
        if (a.kind == last.kind) *buffer = false;
      }
    }
  });
}

// As the first chunk's pass of a validation is: nothing is received for it, and nothing reads it later.
TEST(PipeSchedule, AnActionThatTakesABufferAndGivesItBackNeedsOne) {
  PipeSchedule forward = forward_part(make_pipe_schedule("1f1b", 2, 1, 4));
  EXPECT_EQ(forward.in_flight(0, {Kind::kForward, 0}, {Kind::kForward, 0}), 1);
}

TEST(PipeSchedule, HoldsAsManyMicroBatchesAsItsSourceSays) {
  for_all([](const PipeSchedule& s, std::string_view name) {
    for (int64_t stage = 0; stage < s.stages; ++stage) {
      Kind last = s.splits_backward(stage) ? Kind::kBackwardWeight : Kind::kBackward;
      int64_t held = s.in_flight(stage, {Kind::kForward, stage}, {last, stage});
      if (name == "gpipe") {
        EXPECT_EQ(held, s.micro_batches);
      }
      if (name == "1f1b") {
        EXPECT_EQ(held, std::min(s.stages - stage, s.micro_batches));
      }
      if (name == "zero_bubble") {
        EXPECT_EQ(held, std::min(s.stages, s.micro_batches));
      }
    }
  });
}

TEST(PipeSchedule, WithoutTransfersHasTheSameOrder) {
  for_all([](const PipeSchedule& s, std::string_view name) {
    PipeSchedule bare = make_pipe_actions(name, s.stages, s.chunks / s.stages, s.micro_batches);
    for (size_t stage = 0; stage < s.actions.size(); ++stage) {
      std::vector<PipeAction> own = s.actions[stage];
      std::erase_if(own, [](const PipeAction& action) { return is_transfer(action.kind); });
      EXPECT_EQ(bare.actions[stage], own) << name;
    }
  });
}

}  // namespace
}  // namespace tokamak
