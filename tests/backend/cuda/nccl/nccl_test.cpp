// Ranks that are GPUs, as processes; where no memory comes or goes while they work, also as threads of this one.
// Processes share the GPUs that are there.
#include "backend/cuda/nccl.h"

#include "backend/cuda/cuda_backend.h"
#include "base/error.h"
#include "base/rendezvous.h"
#include "tests/support/communicator_suite.h"
#include "tests/support/expect_error.h"
#include "tests/support/rank_threads.h"
#include "tests/support/spawn_ranks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <thread>

namespace tokamak::test {
namespace {

const std::filesystem::path kCache = std::filesystem::temp_directory_path() / "tokamak_gpu_tests";

// Why there is nothing to test with so many ranks; empty: there is.
std::string obstacle(int ranks) {
  if (!cuda::nccl_is_built()) return "this program was built without NCCL";
  if (cuda::device_count() < ranks) return fmt::format("there are no {} GPUs here", ranks);
  if (!cuda::nccl_opens()) return "libnccl.so.2 does not open here";
  return "";
}

// The GPU of a process. NCCL refuses two ranks on one GPU of a host, so each that shares one claims to be a host of its
// own (they then talk through sockets).
int gpu_of(const RankPlace& place) {
  int gpus = cuda::device_count();
  if (place.world > gpus) {
    ::setenv("NCCL_HOSTID", std::to_string(place.rank).c_str(), 1);
    ::setenv("NCCL_SOCKET_IFNAME", "lo", 0);
  }
  return place.local_rank % gpus;
}

using Body = std::function<void(const SuiteRank& rank)>;

// How ranks of one machine exchange what is large.
struct Mail {
  int64_t bytes = 0;  // of the mailbox; 0: by NCCL
  int64_t least = 1;
};
// All of the suite goes through it, much in several rounds.
constexpr Mail kSmallMailbox{64 << 10, 1};

void on_gpu(StoreClient& store, int device, double seconds, const Body& body, const Mail& mail = {}) {
  std::unique_ptr<Backend> backend = cuda::make_backend(device, kCache);
  auto world = cuda::make_nccl_world(store, {.device = device,
                                             .cache = kCache,
                                             .timeout_seconds = seconds,
                                             .mailbox_bytes = mail.bytes,
                                             .least_mail_bytes = mail.least});
  body({*world, *backend, backend->queue(0)});
}

// Each rank a process; all must end well.
void on_processes(int ranks, const Mail& mail, const Body& body) {
  std::vector<int> statuses = spawn_ranks(ranks, [&](const RankPlace& place) {
    Rendezvous rendezvous(place);
    on_gpu(rendezvous.store(), gpu_of(place), 120, body, mail);
  });
  EXPECT_EQ(statuses, std::vector<int>(size_t(ranks), 0));
}

void on_gpus(int ranks, const Body& body, double seconds = 120) {
  with_stores(ranks, [&](StoreClient& store) { on_gpu(store, store.rank(), seconds, body); });
}

void run_suite(const SuiteRank& rank) {
  for (const SuiteCase& suite_case : communicator_suite()) {
    SCOPED_TRACE(suite_case.name);
    suite_case.run(rank);
    rank.world.barrier(rank.queue);
    rank.backend.synchronize();
    rank.world.compare_calls(false);  // of the first case they were compared
  }
}

class NcclSuite : public testing::TestWithParam<int> {};

TEST_P(NcclSuite, IsRightOnProcesses) {
  if (std::string why = obstacle(1); !why.empty()) GTEST_SKIP() << why;
  on_processes(GetParam(), {}, run_suite);
}

TEST_P(NcclSuite, IsRightByMail) {
  if (std::string why = obstacle(1); !why.empty()) GTEST_SKIP() << why;
  on_processes(GetParam(), kSmallMailbox, run_suite);
}

// Sums, ordered sums, gatherings and messages, in one round and in several, recorded and replayed one behind the other:
// what a rank has not read yet is not written over. Each replay adds what all have, then twice doubles by the number of
// ranks.
TEST_P(NcclSuite, MailIsRecorded) {
  if (std::string why = obstacle(1); !why.empty()) GTEST_SKIP() << why;
  on_processes(GetParam(), kSmallMailbox, [](const SuiteRank& rank) {
    constexpr int64_t kCount = 50000;
    constexpr int kReplays = 5;
    int size = rank.world.size();
    auto x = rank.backend.allocate(kCount * 4), y = rank.backend.allocate(kCount * 4 * size);
    SlotTree tree{8, size};
    auto scratch = rank.backend.allocate(rank.world.ordered_scratch_bytes(kCount, DType::kF32, tree));
    auto work = [&] {
      const void* part = x->data();
      rank.world.all_reduce(x->data(), x->data(), kCount, DType::kF32, Reduction::kSum, rank.queue);
      rank.world.ordered_all_reduce({&part, 1}, x->data(), kCount, DType::kF32, tree, scratch->data(), rank.queue);
      int next = (rank.world.rank() + 1) % size, last = (rank.world.rank() + size - 1) % size;
      rank.world.send_recv(x->data(), kCount, next, y->data(), kCount, last, DType::kF32, rank.queue);
      rank.world.send_recv(y->data(), kCount, last, x->data(), kCount, next, DType::kF32, rank.queue);
      rank.world.all_gather(x->data(), y->data(), kCount, DType::kF32, rank.queue);
      rank.world.reduce_scatter(y->data(), x->data(), kCount, DType::kF32, Reduction::kSum, rank.queue);
    };
    std::vector<float> values(kCount), expected(kCount);
    for (int64_t i = 0; i < kCount; ++i) values[size_t(i)] = float(i % 7 + rank.world.rank());
    for (int64_t i = 0; i < kCount; ++i)
      for (int r = 0; r < size; ++r) expected[size_t(i)] += float(i % 7 + r);
    for (float& value : expected) value *= float(std::pow(size, 2 + 3 * kReplays));
    rank.backend.copy_in(x->data(), values.data(), kCount * 4);
    work();
    std::unique_ptr<Recording> recording = rank.backend.record(work);
    for (int replay = 0; replay < kReplays; ++replay) recording->replay();
    rank.backend.copy_out(values.data(), x->data(), kCount * 4);
    rank.world.check();
    EXPECT_EQ(values, expected);
  });
}

// As the second run of a program: recorded once, with messages and ordered sums, and replayed.
TEST_P(NcclSuite, CallsAreRecorded) {
  if (std::string why = obstacle(GetParam()); !why.empty()) GTEST_SKIP() << why;
  on_gpus(GetParam(), [](const SuiteRank& rank) {
    constexpr int64_t kCount = 1000;
    int size = rank.world.size();
    auto x = rank.backend.allocate(kCount * 4), y = rank.backend.allocate(kCount * 4 * size);
    SlotTree tree{8, size};
    auto scratch = rank.backend.allocate(rank.world.ordered_scratch_bytes(kCount, DType::kF32, tree));
    auto work = [&] {
      const void* part = x->data();
      rank.world.all_gather(x->data(), y->data(), kCount, DType::kF32, rank.queue);
      rank.world.ordered_all_reduce({&part, 1}, x->data(), kCount, DType::kF32, tree, scratch->data(), rank.queue);
      rank.world.all_reduce(x->data(), x->data(), kCount, DType::kF32, Reduction::kMax, rank.queue);
      int next = (rank.world.rank() + 1) % size, last = (rank.world.rank() + size - 1) % size;
      rank.world.send_recv(x->data(), kCount, next, y->data(), kCount, last, DType::kF32, rank.queue);
    };
    std::vector<float> values(kCount, 1.0f);
    rank.backend.copy_in(x->data(), values.data(), kCount * 4);
    work();  // x is `size`
    std::unique_ptr<Recording> recording = rank.backend.record(work);
    for (int replay = 0; replay < 3; ++replay) recording->replay();
    rank.backend.copy_out(values.data(), x->data(), kCount * 4);
    rank.world.check();
    EXPECT_EQ(values, std::vector<float>(kCount, float(std::pow(size, 4))));
    rank.backend.copy_out(values.data(), y->data(), kCount * 4);
    EXPECT_EQ(values, std::vector<float>(kCount, float(std::pow(size, 4))));
  });
}

INSTANTIATE_TEST_SUITE_P(GpuNccl, NcclSuite, testing::Values(1, 2, 4, 8), testing::PrintToStringParamName());

TEST(GpuNccl, WrongCallsEndInAnErrorOnAllRanks) {
  if (std::string why = obstacle(2); !why.empty()) GTEST_SKIP() << why;
  for (const WrongCase& wrong : wrong_cases())
    with_stores(2, [&](StoreClient& store) {
      expect_communication_error(
          wrong, [&] { on_gpu(store, store.rank(), 20, [&](const SuiteRank& rank) { wrong.run(rank); }); });
    });
}

std::string failure_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const CommunicationError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// Rank 0 waits in its queue, where no host can tell it.
TEST(GpuNccl, AbortEndsWorkThatIsUnderWay) {
  if (std::string why = obstacle(2); !why.empty()) GTEST_SKIP() << why;
  on_gpus(2, [](const SuiteRank& rank) {
    rank.world.barrier(rank.queue);
    rank.backend.synchronize();
    rank.world.compare_calls(false);
    auto x = rank.backend.allocate(4);
    std::string why = failure_of([&] {
      if (rank.world.rank() == 1) {
        std::this_thread::sleep_for(std::chrono::seconds(1));
        rank.world.abort("disk full");
      } else {
        rank.world.all_reduce(x->data(), x->data(), 1, DType::kF32, Reduction::kSum, rank.queue);
        rank.backend.synchronize();
      }
      rank.world.check();
    });
    EXPECT_EQ(why, "disk full");
  });
}

// So it does where a queue waits for what comes by mail.
TEST(GpuNccl, AbortEndsAWaitForMail) {
  if (std::string why = obstacle(1); !why.empty()) GTEST_SKIP() << why;
  on_processes(2, kSmallMailbox, [](const SuiteRank& rank) {
    auto x = rank.backend.allocate(4000);
    auto add = [&] {
      rank.world.all_reduce(x->data(), x->data(), 1000, DType::kF32, Reduction::kSum, rank.queue);
      rank.backend.synchronize();
    };
    add();
    rank.world.compare_calls(false);
    std::string why = failure_of([&] {
      if (rank.world.rank() == 1) {
        std::this_thread::sleep_for(std::chrono::seconds(1));
        rank.world.abort("disk full");
      } else {
        add();
      }
      rank.world.check();
    });
    EXPECT_EQ(why, "disk full");
  });
}

TEST(GpuNccl, WorkThatDoesNotEndIsGivenUp) {
  if (std::string why = obstacle(2); !why.empty()) GTEST_SKIP() << why;
  on_gpus(
      2,
      [](const SuiteRank& rank) {
        rank.world.barrier(rank.queue);
        rank.backend.synchronize();
        rank.world.compare_calls(false);
        auto x = rank.backend.allocate(4);
        std::string why = failure_of([&] {
          if (rank.world.rank() == 0)
            rank.world.all_reduce(x->data(), x->data(), 1, DType::kF32, Reduction::kSum, rank.queue);
          if (rank.world.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(6));
          rank.backend.synchronize();
          rank.world.check();
        });
        EXPECT_EQ(why, "rank 0 has waited 3 s for the end of all_reduce(f32[1], sum) on axis 'world'");
      },
      3);
}

TEST(GpuNccl, ProcessThatIsKilledStopsTheOthersWithinSeconds) {
  if (std::string why = obstacle(1); !why.empty()) GTEST_SKIP() << why;
  std::vector<int> statuses = spawn_ranks(2, [](const RankPlace& place) {
    Rendezvous rendezvous(place);
    auto begin = std::chrono::steady_clock::now();
    std::string why = failure_of([&] {
      on_gpu(rendezvous.store(), gpu_of(place), 120, [&](const SuiteRank& rank) {
        rank.world.barrier(rank.queue);
        rank.backend.synchronize();
        rank.world.compare_calls(false);
        if (place.rank == 1) ::raise(SIGKILL);
        rank.world.barrier(rank.queue);
        rank.backend.synchronize();
        rank.world.check();
      });
    });
    EXPECT_NE(why.find("rank 1 on "), why.npos) << why;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(100));  // not the timeout
  });
  EXPECT_EQ(statuses[0], 0);
}

TEST(GpuNccl, SaysWhatItTakesWhereItIsNotBuilt) {
  if (cuda::nccl_is_built()) GTEST_SKIP() << "this program was built with NCCL";
  StoreServer server("127.0.0.1", 0, 1, "");
  StoreClient store({.host = "127.0.0.1", .port = server.port(), .rank = 0, .world = 1, .token = ""});
  expect_user_error([&] { cuda::make_nccl_world(store, {}); }, {"[mesh]", "NCCL"});
}

}  // namespace
}  // namespace tokamak::test
