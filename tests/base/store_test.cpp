// With real sockets on the loopback.
#include <gtest/gtest.h>

#include <netdb.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

#include "base/error.h"
#include "base/rendezvous.h"
#include "base/socket.h"
#include "base/system.h"
#include "tests/support/expect_error.h"
#include "tests/support/free_port.h"
#include "tests/support/rank_threads.h"

namespace tokamak {
namespace {

constexpr const char* kHost = "127.0.0.1";

StoreClient::Options options(int port, int rank, int world, double seconds = 20) {
  return {.host = kHost,
          .port = port,
          .rank = rank,
          .world = world,
          .token = "secret",
          .join_seconds = seconds,
          .timeout_seconds = seconds};
}

std::string failure_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const CommunicationError& failure) {
    return failure.what();
  } catch (const UserError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

bool has(const std::string& text, const std::string& piece) { return text.find(piece) != text.npos; }

TEST(Store, RanksExchangeAndWaitForValues) {
  StoreServer server(kHost, 0, 4, "secret");
  test::on_threads(4, [&](int rank) {
    StoreClient client(options(server.port(), rank, 4));
    for (int round = 0; round < 20; ++round) {
      auto all = client.exchange("round", rank, 4, std::to_string(rank * 100 + round));
      for (int r = 0; r < 4; ++r) EXPECT_EQ(all[size_t(r)], std::to_string(r * 100 + round));
    }
    if (rank == 3) client.set("id", std::string(100'000, 'x'));
    EXPECT_EQ(client.get("id").size(), 100'000u);
    std::string pair = "pair" + std::to_string(rank / 2);
    EXPECT_EQ(client.exchange(pair, rank % 2, 2, "").size(), 2u);
    if (rank == 0) client.set("once", "1");
    if (rank == 1) {
      EXPECT_EQ(client.take("once"), "1");
    }
    client.exchange("taken", rank, 4, "");
    if (rank == 1) client.set("once", "2");
    if (rank == 2) {
      EXPECT_EQ(client.get("once"), "2");
    }
  });
}

TEST(Store, RanksTellWhereTheyStandWhateverTheyDo) {
  StoreServer server(kHost, 0, 3, "secret");
  std::atomic<bool> over = false;
  test::on_threads(3, [&](int rank) {
    StoreClient client(options(server.port(), rank, 3));
    client.answer_roll_call([rank, &over]() -> std::string {
      while (rank == 2 && !over) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return "rank " + std::to_string(rank);
    });
    client.exchange("ready", rank, 3, "");
    if (rank == 0) {
      auto answers = client.roll_call(0.5);
      EXPECT_EQ(answers[0], "rank 0");
      EXPECT_EQ(answers[1], "rank 1") << "it waits for an exchange";
      EXPECT_EQ(answers[2], std::nullopt);
      over = true;
      EXPECT_EQ(client.roll_call(5)[2], "rank 2");
    }
    client.exchange("told", rank, 3, "");
  });
}

TEST(Store, RanksThatHaveLeftAreNotMissed) {
  StoreServer server(kHost, 0, 2, "secret");
  test::on_threads(1, [&](int) {
    StoreClient stays(options(server.port(), 0, 2));
    EXPECT_EQ(stays.roll_call(5)[1], "") << "it has not joined";
    { StoreClient leaves(options(server.port(), 1, 2)); }
    EXPECT_EQ(stays.roll_call(5)[1], "");
  });
}

TEST(Store, ARankThatLeavesWhileItIsAskedIsNotMissed) {
  StoreServer server(kHost, 0, 2, "secret");
  StoreClient stays(options(server.port(), 0, 2));
  auto leaves = std::make_unique<StoreClient>(options(server.port(), 1, 2));
  std::atomic<bool> asked = false, over = false;
  leaves->answer_roll_call([&]() -> std::string {
    asked = true;
    while (!over) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return "too late";
  });
  std::thread asks([&] {
    EXPECT_EQ(stays.roll_call(30)[1], "");
    over = true;
  });
  while (!asked) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  leaves.reset();  // it says so before it waits for its thread
  asks.join();
}

TEST(Store, LateRanksAreWaitedFor) {
  int port = test::free_port();
  std::atomic<int> joined = 0;
  test::on_threads(3, [&](int rank) {
    // Rank 0, which serves, comes last.
    std::this_thread::sleep_for(std::chrono::milliseconds(150 * (2 - rank)));
    Rendezvous rendezvous({"test", rank, 3, rank, kHost, port, "secret", 20});
    ++joined;
    EXPECT_EQ(rendezvous.address(), kHost);
    rendezvous.store().exchange("end", rank, 3, "");
    EXPECT_EQ(joined, 3);
  });
}

TEST(Store, RanksThatDoNotComeAreNamed) {
  int port = test::free_port();
  test::on_threads(2, [&](int rank) {
    std::string why = failure_of([&] { Rendezvous rendezvous({"test", rank, 4, rank, kHost, port, "s", 0.5}); });
    EXPECT_TRUE(has(why, "[rendezvous] expected 4 ranks") && has(why, "have not come: 2, 3")) << why;
  });
}

TEST(Store, KnowsWhoHasNotComeYet) {
  StoreServer server(kHost, 0, 4, "secret");
  EXPECT_EQ(server.missing(), (std::vector<int>{0, 1, 2, 3}));
  StoreClient first(options(server.port(), 0, 4)), third(options(server.port(), 2, 4));
  EXPECT_EQ(server.missing(), (std::vector<int>{1, 3}));
}

TEST(Store, NobodyServes) {
  int port = test::free_port();
  auto in_time = options(port, 1, 2);
  in_time.join_seconds = 0.2;
  expect_user_error([&] { StoreClient client(in_time); },
                    {"[rendezvous] cannot reach rank 0 on port " + std::to_string(port)});
}

TEST(Store, ComingMayTakeLongerThanAWait) {
  auto patient = options(test::free_port(), 0, 1, 0.05);
  patient.join_seconds = 20;
  auto coming = std::async(std::launch::async, [&] { StoreClient client(patient); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  StoreServer server(kHost, patient.port, 1, "secret");
  EXPECT_NO_THROW(coming.get());
}

TEST(Store, PortInUseIsAnErrorOfRank0) {
  FileDescriptor taken = listen_on(kHost, 0);
  int port = port_of(taken.get());
  expect_user_error([&] { StoreServer server(kHost, port, 2, ""); },
                    {"[rendezvous] rank 0 cannot listen on port " + std::to_string(port), "TOKAMAK_PORT"});
}

// The next connection; accept() itself does not wait for one.
FileDescriptor accept_one(const FileDescriptor& listening) {
  FileDescriptor socket;
  while (!socket.is_open()) socket = FileDescriptor(::accept(listening.get(), nullptr, nullptr));
  return socket;
}

// Who listens is not one of us.
TEST(Store, AnotherProgramOnThePortIsAnErrorOfTheOthers) {
  FileDescriptor other = listen_on(kHost, 0);
  std::thread web([&] {
    FileDescriptor socket = accept_one(other);
    send_all(socket.get(), std::string("\x12\0\0\0\x0e\0\0\0not this store", 22));
    char rest;
    while (::recv(socket.get(), &rest, 1, 0) > 0) {
    }
  });
  expect_user_error([&] { StoreClient client(options(port_of(other.get()), 1, 2)); },
                    {"[rendezvous] expected rank 0 of"});
  web.join();
}

TEST(Store, WrongTokenIsTurnedAwayAndTheOthersGoOn) {
  StoreServer server(kHost, 0, 2, "secret");
  StoreClient first(options(server.port(), 0, 2));
  auto wrong = options(server.port(), 1, 2);
  wrong.token = "guess";
  expect_user_error([&] { StoreClient stranger(wrong); }, {"[rendezvous] expected the token", "TOKAMAK_TOKEN"});
  StoreClient second(options(server.port(), 1, 2));
  auto other = std::async(std::launch::async, [&] { return second.exchange("x", 1, 2, "b"); });
  EXPECT_EQ(first.exchange("x", 0, 2, "a"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(other.get().size(), 2u);
}

// Who took the port of rank 0 and lets everybody in.
TEST(Store, AServerThatDoesNotKnowTheTokenIsNotBelieved) {
  FileDescriptor listening = listen_on(kHost, 0);
  auto serving = std::async(std::launch::async, [&] {
    FileDescriptor rank = accept_one(listening);
    send_all(rank.get(), encode_frame({kStoreProtocol, random_nonce()}));
    char joins[4096];
    if (::recv(rank.get(), joins, sizeof joins, 0) > 0)
      send_all(rank.get(), encode_frame({"joined", store_proof("guess", "server", "", "", "")}));
    while (::recv(rank.get(), joins, sizeof joins, 0) > 0) {
    }
  });
  expect_user_error([&] { StoreClient client(options(port_of(listening.get()), 1, 2)); },
                    {"[rendezvous] expected rank 0 of this run", "does not know its token"});
  serving.get();
}

TEST(Store, WorldOfAnotherSizeEndsTheRunOnAllRanks) {
  StoreServer server(kHost, 0, 2, "secret");
  StoreClient first(options(server.port(), 0, 2));
  auto waiting = std::async(std::launch::async, [&] { return failure_of([&] { first.get("never"); }); });
  std::string refused = failure_of([&] { StoreClient second(options(server.port(), 1, 4)); });
  for (const std::string& why : {refused, waiting.get()})
    EXPECT_TRUE(has(why, "expected 2 ranks") && has(why, "rank 1 on") && has(why, "of 4")) << why;
}

TEST(Store, RankThatIsThereTwiceBeforeAllHaveComeEndsTheRun) {
  StoreServer server(kHost, 0, 3, "secret");
  StoreClient first(options(server.port(), 0, 3)), second(options(server.port(), 1, 3));
  EXPECT_TRUE(has(failure_of([&] { StoreClient third(options(server.port(), 1, 3)); }), "expected rank 1 once"));
  EXPECT_TRUE(has(failure_of([&] { first.get("never"); }), "expected rank 1 once"));
}

// Rank 2 in another process, until it is killed.
void join_and_wait(int port) {
  StoreClient client(options(port, 2, 3, 60));
  if (::write(STDOUT_FILENO, "joined\n", 7) == 7) client.get("never");
}

TEST(Store, RankWhoseProcessIsKilledIsNamedWithinSeconds) {
  if (const char* port = std::getenv("STORE_TEST_PORT")) return join_and_wait(std::atoi(port));
  StoreServer server(kHost, 0, 3, "secret");
  StoreClient first(options(server.port(), 0, 3, 60)), second(options(server.port(), 1, 3, 60));
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  std::string port = std::to_string(server.port());
  // A new program: a fork of this one, which has threads, may do little.
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::setenv("STORE_TEST_PORT", port.c_str(), 1);
    ::dup2(ready[1], STDOUT_FILENO);
    ::execl("/proc/self/exe", "base_test", "--gtest_filter=Store.RankWhoseProcessIsKilledIsNamedWithinSeconds",
            nullptr);
    ::_exit(1);
  }
  ::close(ready[1]);
  std::string said;
  char byte;
  while (!has(said, "joined") && ::read(ready[0], &byte, 1) == 1) said += byte;
  auto waiting = std::async(std::launch::async, [&] { return failure_of([&] { second.exchange("x", 1, 3, ""); }); });
  auto begin = std::chrono::steady_clock::now();
  ::kill(child, SIGKILL);
  std::string why = failure_of([&] { first.exchange("x", 0, 3, ""); });
  EXPECT_TRUE(has(why, "rank 2 on ") && has(why, "is gone")) << why;
  EXPECT_EQ(waiting.get(), why);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));  // not the minute of the timeout
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
}

TEST(Store, RankWhoseProcessEndsBeforeItJoinsEndsTheRun) {
  StoreServer server(kHost, 0, 3, "secret");
  StoreClient first(options(server.port(), 0, 3, 60)), second(options(server.port(), 1, 3, 60));
  server.note_end(1, "ended with status 0");  // what it says by its connection counts, as it has joined
  server.note_end(2, "was ended by signal 9 (Killed)");
  EXPECT_EQ(failure_of([&] { first.exchange("start", 0, 3, ""); }),
            "[rendezvous] rank 2 was ended by signal 9 (Killed) before it joined the others; see what it says");
  EXPECT_TRUE(server.has_failed());
}

// The connection breaks first, as a rule.
TEST(Store, LostRankIsNamedWithTheEndOfItsProcess) {
  StoreServer server(kHost, 0, 2, "secret");
  server.expect_ends();
  StoreClient first(options(server.port(), 0, 2));
  auto waiting = std::async(std::launch::async, [&] { return failure_of([&] { first.get("never"); }); });
  failure_of([&] {
    StoreClient second(options(server.port(), 1, 2));
    user_error("as if it were killed");
  });
  server.note_end(1, "was ended by signal 9 (Killed)");
  std::string why = waiting.get();
  EXPECT_TRUE(has(why, "rank 1 on ") && has(why, " is gone: it was ended by signal 9 (Killed)")) << why;
}

TEST(Store, RankThatUnwindsIsGone) {
  StoreServer server(kHost, 0, 2, "secret");
  StoreClient first(options(server.port(), 0, 2));
  EXPECT_EQ(failure_of([&] {
              StoreClient second(options(server.port(), 1, 2));
              user_error("disk full");
            }),
            "disk full");
  EXPECT_TRUE(has(failure_of([&] { first.get("never"); }), "rank 1 on"));
}

TEST(Store, Rank0ThatIsGone) {
  auto server = std::make_unique<StoreServer>(kHost, 0, 2, "secret");
  StoreClient second(options(server->port(), 1, 2));
  auto waiting = std::async(std::launch::async, [&] { return failure_of([&] { second.get("never"); }); });
  server.reset();  // after its patience with rank 1
  EXPECT_TRUE(has(waiting.get(), "rank 0 on 127.0.0.1 is gone"));
}

TEST(Store, FailReachesAllRanksWithOneMessage) {
  StoreServer server(kHost, 0, 4, "secret");
  std::atomic<int> told = 0;
  test::on_threads(4, [&](int rank) {
    StoreClient client(options(server.port(), rank, 4));
    std::promise<std::string> reason;
    int subscription = client.on_failure([&](const std::string& why) { reason.set_value(why); });
    client.exchange("ready", rank, 4, "");
    if (rank == 2) client.fail("rank 2: disk full");
    EXPECT_EQ(failure_of([&] { client.exchange("x", rank, 5, ""); }), "rank 2: disk full");
    EXPECT_EQ(reason.get_future().get(), "rank 2: disk full");
    EXPECT_EQ(client.failure(), "rank 2: disk full");
    EXPECT_THROW(client.check(), CommunicationError);
    client.unsubscribe(subscription);
    client.on_failure([&](const std::string&) { ++told; });  // at once
  });
  EXPECT_EQ(told, 4);
}

// What strangers send, cut off anywhere, changes nothing.
TEST(Store, GarbageOfStrangersIsIgnored) {
  StoreServer server(kHost, 0, 2, "secret");
  StoreClient first(options(server.port(), 0, 2));
  std::vector<FileDescriptor> open;
  for (const std::string& garbage :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100'000, '\xff'), std::string("\1\0\0\0a", 5),
        std::string("\0\0\0\0", 4), encode_frame({"leave"}), encode_frame({"fail", "ha"}),
        encode_frame({"join", "", "1", "2", "x", ""}),
        encode_frame({"join", "", "x", "99999999999999", "x", std::string(64, '0')}), std::string()}) {
    open.push_back(connect_to(kHost, server.port(), deadline_in(5)));
    send_all(open.back().get(), garbage);
    FileDescriptor closed = connect_to(kHost, server.port(), deadline_in(5));
    send_all(closed.get(), garbage);
  }
  StoreClient second(options(server.port(), 1, 2));
  second.set("x", "1");
  EXPECT_EQ(first.get("x"), "1");
  EXPECT_EQ(first.failure(), "");
}

// Debian has a machine's own name at 127.0.1.1; others know it by another address.
TEST(Store, ListensToAllWhereTheMachineIsNamed) {
  hostent* known = ::gethostbyname(host_name().c_str());
  if (!known || known->h_addrtype != AF_INET) GTEST_SKIP() << "this machine's name has no IPv4 address";
  EXPECT_EQ(local_address(listen_on(host_name(), 0).get()), "0.0.0.0");
}

TEST(InterfaceAddress, IsOneOfItsOwn) {
  EXPECT_EQ(interface_address("lo", "10.0.0.1"), "127.0.0.1");
  expect_user_error([] { interface_address("eth77", "10.0.0.1"); },
                    {"[mesh.interface] expected a network interface", "'eth77'; there are:", "lo"});
}

TEST(Store, ListensToItsOwnMachineWhereRanksAreThere) {
  FileDescriptor local = listen_on(kHost, 0), all = listen_on("0.0.0.0", 0);
  EXPECT_EQ(local_address(local.get()), "127.0.0.1");
  EXPECT_EQ(local_address(all.get()), "0.0.0.0");
  EXPECT_TRUE(is_loopback(local_address(listen_on("localhost", 0).get())));
  expect_user_error([] { listen_on("no.such.host.invalid", 0); },
                    {"[rendezvous]", "no.such.host.invalid", "MASTER_ADDR"});
}

}  // namespace
}  // namespace tokamak
