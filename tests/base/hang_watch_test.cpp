#include "base/hang_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace tokamak {
namespace {

constexpr double kLeast = 3;

const std::vector<std::string> kNames = {"rank 0 on a", "rank 1 on b", "rank 2 on b"};

RankReport computing(double seconds, double pace, int64_t moves) {
  return {.step = 9, .phase = RankPhase::kStep, .waits_in = "", .seconds = seconds, .moves = moves, .pace = pace};
}
RankReport waiting(double seconds) {
  return {.step = 9, .phase = RankPhase::kStep, .waits_in = "barrier", .seconds = seconds, .moves = 5, .pace = 0.1};
}
RankReport in(RankPhase phase) {
  return {.step = 9, .phase = phase, .waits_in = "", .seconds = 500, .moves = 7, .pace = 0.1};
}
std::string hang(const RankAnswers& before, const RankAnswers& now) { return find_hang(kNames, before, now, kLeast); }

TEST(FindHang, NamesWhoDoesNotAnswer) {
  std::string why = hang({waiting(4), {}, waiting(5)}, {waiting(5), {}, waiting(6)});
  EXPECT_EQ(why,
            "[ranks] rank 1 on b hangs: its process does not answer; it may be stopped, or its machine or link be "
            "gone; rank 2 on b has waited 6.0 s in barrier of step 9");
  why = hang({waiting(4), {}, {}}, {waiting(5), {}, {}});
  EXPECT_NE(why.find("rank 1 on b hangs"), why.npos);
  EXPECT_NE(why.find("rank 2 on b hangs"), why.npos);
}

TEST(FindHang, OneThatAnswersOnceIsThere) {
  EXPECT_EQ(hang({waiting(4), {}, waiting(5)}, {waiting(5), waiting(1), waiting(6)}), "");
  EXPECT_EQ(hang({waiting(4), waiting(1), waiting(5)}, {waiting(5), {}, waiting(6)}), "");
}

TEST(FindHang, NamesWhoComputesAndDoesNotMove) {
  std::string why =
      hang({waiting(4), computing(4, 0.1, 3), waiting(5)}, {waiting(5), computing(5, 0.1, 3), waiting(6)});
  EXPECT_NE(why.find("rank 1 on b hangs: it has been computing in step 9 for 5.0 s, where all of a step takes 0.1"),
            why.npos)
      << why;
}

TEST(FindHang, WhoMovesOrKeepsThePaceIsSlow) {
  auto goes_on = [](const RankReport& before, const RankReport& now) {
    return hang({waiting(4), before, waiting(5)}, {waiting(5), now, waiting(6)}).empty();
  };
  EXPECT_TRUE(goes_on(computing(4, 0.1, 3), computing(5, 0.1, 4))) << "it moved";
  EXPECT_TRUE(goes_on(computing(2, 0.1, 3), computing(2.9, 0.1, 3))) << "3 seconds are always allowed";
  EXPECT_TRUE(goes_on(computing(20, 10, 3), computing(29, 10, 3))) << "three steps are";
  EXPECT_FALSE(goes_on(computing(20, 10, 3), computing(31, 10, 3)));
  EXPECT_TRUE(goes_on(computing(300, 0, 3), computing(310, 0, 3))) << "no step has set a pace";
}

TEST(FindHang, OnlyStepsHaveAPace) {
  for (RankPhase phase : {RankPhase::kStart, RankPhase::kBetweenSteps, RankPhase::kData, RankPhase::kDevice,
                          RankPhase::kEvaluation, RankPhase::kSample, RankPhase::kSave, RankPhase::kEnded})
    EXPECT_EQ(hang({waiting(4), in(phase), waiting(5)}, {waiting(5), in(phase), waiting(6)}), "") << phase_text(phase);
  EXPECT_EQ(hang({waiting(400), waiting(400), waiting(400)}, {waiting(401), waiting(401), waiting(401)}), "")
      << "a slow link";
  EXPECT_EQ(hang({computing(9, 1, 1), computing(9, 1, 1), computing(9, 1, 1)},
                 {computing(9, 1, 1), computing(9, 1, 1), computing(9, 1, 1)}),
            "")
      << "nobody waits";
}

// Two ranks, one of which this process has, with answers that the test gives.
class Watched {
 public:
  HangWatch::Run run(std::vector<std::shared_ptr<RankProgress>> mine, std::function<RankAnswers()> answers) {
    return {.mine = std::move(mine),
            .ask = [answers = std::move(answers)](double) { return answers(); },
            .fail = [this](const std::string& reason) { note(failure_, reason); },
            .failure =
                [this] {
                  std::lock_guard lock(mutex_);
                  return failure_;
                },
            .end = [this](const std::string& reason) { note(end_, reason); }};
  }
  std::string failure() { return wait_for(failure_); }
  std::string end() { return wait_for(end_); }
  bool has_failed() {
    std::lock_guard lock(mutex_);
    return !failure_.empty();
  }

 private:
  void note(std::string& text, const std::string& reason) {
    std::lock_guard lock(mutex_);
    text = reason;
    changed_.notify_all();
  }
  std::string wait_for(const std::string& text) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(20), [&] { return !text.empty(); });
    return text;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string failure_, end_;
};

HangWatch::Options two_ranks(double least) {
  return {.least_seconds = least, .names = {"rank 0", "rank 1"}, .hurries = {}, .grace = std::chrono::milliseconds(50)};
}

std::shared_ptr<RankProgress> rank_in_steps() {
  auto rank = std::make_shared<RankProgress>();
  for (int step = 0; step < 3; ++step) rank->step_done(0.001);
  return rank;
}

TEST(HangWatch, AsksWhenItsRankWaitsTooLong) {
  Watched watched;
  auto mine = rank_in_steps();
  auto answers = [&]() -> RankAnswers { return {mine->report(), std::nullopt}; };
  HangWatch watch(two_ranks(0.2), watched.run({mine}, answers));
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  EXPECT_FALSE(watched.has_failed()) << "nobody waits";
  auto waits = mine->wait_in([] { return "a barrier"; });
  EXPECT_NE(watched.failure().find("rank 1 hangs: its process does not answer"), std::string::npos);
}

TEST(HangWatch, NeverAsksWithZeroSeconds) {
  Watched watched;
  auto mine = rank_in_steps();
  auto waits = mine->wait_in([] { return "a barrier"; });
  HangWatch watch(two_ranks(0), watched.run({mine}, []() -> RankAnswers { return {RankReport(), std::nullopt}; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_FALSE(watched.has_failed());
}

TEST(HangWatch, DoesNotWaitForThePaceWhereTheUserWantsToEnd) {
  Watched watched;
  auto mine = rank_in_steps();
  mine->step_done(1000);
  auto waits = mine->wait_in([] { return "a barrier"; });
  HangWatch::Options options = two_ranks(1000);
  options.hurries = [] { return true; };
  HangWatch watch(options, watched.run({mine}, [&]() -> RankAnswers { return {mine->report(), std::nullopt}; }));
  EXPECT_NE(watched.failure(), "");
}

TEST(HangWatch, EndsAProcessWhoseOwnRankHangs) {
  Watched watched;
  auto waiting = rank_in_steps(), stuck = rank_in_steps();
  auto all = [&]() -> RankAnswers { return {waiting->report(), stuck->report()}; };
  auto step = stuck->enter_step(RankPhase::kStep, 4);
  auto waits = std::make_unique<RankProgress::Scope>(waiting->wait_in([] { return "a barrier"; }));
  HangWatch watch(two_ranks(0.2), watched.run({waiting, stuck}, all));
  EXPECT_NE(watched.failure().find("rank 1 hangs: it has been computing in step 4"), std::string::npos);
  waits.reset();
  waiting->ended();
  EXPECT_NE(watched.end().find("rank 1 hangs"), std::string::npos);
}

TEST(HangWatch, LetsTheOthersSaveBeforeItEndsAProcess) {
  Watched watched;
  auto saving = rank_in_steps(), stuck = rank_in_steps();
  auto all = [&]() -> RankAnswers { return {saving->report(), stuck->report()}; };
  auto step = stuck->enter_step(RankPhase::kStep, 4);
  auto waits = std::make_unique<RankProgress::Scope>(saving->wait_in([] { return "a barrier"; }));
  std::optional<HangWatch> watch(std::in_place, two_ranks(0.2), watched.run({saving, stuck}, all));
  EXPECT_NE(watched.failure(), "");
  waits.reset();
  auto saves = saving->enter(RankPhase::kSave);
  std::atomic<bool> ended = false;
  std::thread looks([&] { ended = !watched.end().empty(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  EXPECT_FALSE(ended);
  saving->ended();
  looks.join();
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace tokamak
