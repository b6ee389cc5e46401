#include "base/failure_deadline.h"

#include <gtest/gtest.h>

#include <future>

#include "base/store_server.h"

namespace tokamak {
namespace {

using std::chrono::milliseconds;

// A run of one rank, and what its deadline was told when it was late.
struct LoneRun {
  StoreServer server{"127.0.0.1", 0, 1, "t"};
  StoreClient store{{.host = "127.0.0.1", .port = server.port(), .rank = 0, .world = 1, .token = "t"}};
  std::promise<std::string> told;
  std::future<std::string> reason = told.get_future();
  FailureDeadline::Late late = [this](const std::string& why) { told.set_value(why); };

  bool is_told_within(milliseconds time) const { return reason.wait_for(time) == std::future_status::ready; }
};

TEST(FailureDeadline, IsLateAfterAFailure) {
  LoneRun run;
  FailureDeadline deadline(milliseconds(50), run.late);
  deadline.watch(run.store);
  run.store.fail("disk full");
  run.store.fail("the second reason");
  EXPECT_EQ(run.reason.get(), "disk full");
}

TEST(FailureDeadline, IsNotLateWithoutAFailure) {
  LoneRun run;
  FailureDeadline deadline(milliseconds(1), run.late);
  deadline.watch(run.store);
  EXPECT_FALSE(run.is_told_within(milliseconds(100)));
}

TEST(FailureDeadline, IsNotLateWhereTheRunEndsInTime) {
  LoneRun run;
  {
    FailureDeadline deadline(std::chrono::hours(1), run.late);
    deadline.watch(run.store);
    run.store.fail("disk full");
  }
  EXPECT_FALSE(run.is_told_within(milliseconds(0)));
}

// What subscribed later waits for ever, say for a device, on the thread that tells of failures.
TEST(FailureDeadline, IsLateWhereOthersHangInTheirSubscription) {
  LoneRun run;
  std::promise<void> hang;
  FailureDeadline deadline(milliseconds(50), run.late);
  deadline.watch(run.store);
  run.store.on_failure([&](const std::string&) { hang.get_future().wait(); });
  std::thread failing([&] { run.store.fail("disk full"); });
  EXPECT_TRUE(run.is_told_within(std::chrono::seconds(10)));
  hang.set_value();
  failing.join();
}

TEST(FailureDeadline, AllowsMoreTimeWhereItIsTold) {
  LoneRun run;
  FailureDeadline deadline(milliseconds(100), run.late);
  deadline.watch(run.store);
  deadline.allow(std::chrono::hours(1));
  run.store.fail("disk full");
  EXPECT_FALSE(run.is_told_within(milliseconds(300)));
  deadline.allow(milliseconds(1));  // also while it waits
  EXPECT_TRUE(run.is_told_within(std::chrono::seconds(10)));
}

TEST(FailureDeadline, MayOutliveTheStore) {
  FailureDeadline deadline(milliseconds(1), [](const std::string&) { FAIL(); });
  LoneRun run;
  deadline.watch(run.store);
}

}  // namespace
}  // namespace tokamak
