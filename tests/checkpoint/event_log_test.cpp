#include "checkpoint/event_log.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

using Kind = RunEvent::Kind;

RunEvent at(Kind kind, double time, double step_seconds = 0) {
  return {.kind = kind, .time = time, .step_seconds = step_seconds};
}

TEST(RunEvent, BecomesALineAndBack) {
  RunEvent start{.kind = Kind::kStart, .time = 1.5, .step = 3, .ranks = {{"a", "NVIDIA H100"}, {"b \"x\"", "cpu"}}};
  EXPECT_EQ(format_event(start),
            R"({"event":"start","time":1.5,"step":3,"ranks":[{"rank":0,"host":"a","device":"NVIDIA H100"},)"
            R"({"rank":1,"host":"b \"x\"","device":"cpu"}]})");
  RunEvent save{.kind = Kind::kSave,
                .time = 2,
                .step = 9,
                .checkpoint = "step_00000009",
                .seconds = 0.5,
                .bytes = 1 << 20,
                .step_seconds = 7.25};
  RunEvent failure{.kind = Kind::kFailure, .time = 3, .step = 12, .cause = "rank 1 on b is gone"};
  for (const RunEvent& event : {start, save, failure}) EXPECT_EQ(parse_event(format_event(event)), event);
  EXPECT_NE(parse_event(format_event({.kind = Kind::kFailure, .cause = "\xff"})), std::nullopt);
}

TEST(RunEvent, OtherLinesAreNone) {
  for (const char* line : {"", "{", "[]", "3", "{}", R"({"event":"flood"})", R"({"event":3,"time":1})"})
    EXPECT_EQ(parse_event(line), std::nullopt) << line;
  RunEvent odd = parse_event(R"({"event":"save","time":"x","step":-5,"bytes":1e300,"checkpoint":7})").value();
  EXPECT_EQ(odd.time, 0);
  EXPECT_EQ(odd.step, 0);
  EXPECT_EQ(odd.checkpoint, "");
}

TEST(EventLog, LaterStartsAppend) {
  TemporaryFolder folder;
  EXPECT_TRUE(read_events(folder.path()).empty());
  EventLog(folder.path()).add(at(Kind::kStart, 1));
  EventLog second(folder.path());
  second.add(at(Kind::kSave, 2));
  second.add({.kind = Kind::kEnd});
  std::vector<RunEvent> events = read_events(folder.path());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].time, 1);
  EXPECT_GT(events[2].time, 1e9) << "the time of now";
}

TEST(EventLog, WhatAKilledProcessLeftOfALineIsDropped) {
  TemporaryFolder folder;
  std::string whole = format_event(at(Kind::kStart, 1)) + "\n", torn = R"({"event":"save","ti)";
  for (const std::string& before : {whole + torn, torn}) {
    write_file_quickly(folder / "events.jsonl", before);
    EventLog(folder.path()).add(at(Kind::kEnd, 5));
    std::string lines = read_file(folder / "events.jsonl");
    EXPECT_EQ(lines, (before == torn ? "" : whole) + format_event(at(Kind::kEnd, 5)) + "\n");
  }
}

TEST(EventLog, WhatCannotBeWrittenIsTold) {
  EventLog log("/dev/null/run");
  log.add(at(Kind::kStart, 1));
  EXPECT_NE(log.warning().find("cannot write /dev/null/run/events.jsonl: "), std::string::npos);
}

TEST(Goodput, IsSavedStepsByTheTimeOfTheRun) {
  Goodput one = goodput_of({at(Kind::kStart, 100), at(Kind::kSave, 150, 40), at(Kind::kEnd, 160)}, 1000);
  EXPECT_EQ(one.step_seconds, 40);
  EXPECT_EQ(one.wall_seconds, 60) << "it rests after its end";
  EXPECT_EQ(format_goodput(one), "goodput 66.7%: 40 s of saved steps in 60 s, 1 start");
}

TEST(Goodput, TheTimeAfterAFailureCountsAndThatAfterAStopDoesNot) {
  EXPECT_EQ(goodput_of({at(Kind::kStart, 0), at(Kind::kStop, 10), at(Kind::kStart, 500), at(Kind::kEnd, 520)}, 0)
                .wall_seconds,
            30);
  Goodput failed =
      goodput_of({at(Kind::kStart, 0), at(Kind::kFailure, 10), at(Kind::kStart, 50), at(Kind::kEnd, 70)}, 0);
  EXPECT_EQ(failed.wall_seconds, 70);
  EXPECT_EQ(failed.starts, 2);
  EXPECT_EQ(goodput_of({at(Kind::kStart, 0), at(Kind::kStart, 50), at(Kind::kEnd, 70)}, 0).wall_seconds, 70)
      << "the first was killed";
  EXPECT_EQ(goodput_of({at(Kind::kStart, 10)}, 35).wall_seconds, 25) << "it goes on";
}

TEST(Goodput, AClockThatGoesBackTakesNothing) {
  EXPECT_EQ(goodput_of({at(Kind::kStart, 100), at(Kind::kSave, 50, 5), at(Kind::kEnd, 60)}, 0).wall_seconds, 10);
  EXPECT_EQ(goodput_of({}, 5).share(), 0);
}

}  // namespace
}  // namespace tokamak
