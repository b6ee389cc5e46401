// Who connects to the store of a run and does not belong to it: other runs, scripts, scanners.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "base/error.h"
#include "base/socket.h"
#include "base/store_client.h"
#include "base/store_server.h"
#include "base/system.h"
#include "tests/support/expect_error.h"

namespace tokamak {
namespace {

constexpr const char* kHost = "127.0.0.1";

StoreClient::Options options(int port, int rank, int world, const std::string& token = "secret") {
  return {.host = kHost, .port = port, .rank = rank, .world = world, .token = token, .timeout_seconds = 20};
}

// A run of two ranks, and whether they still work together.
struct Pair {
  StoreServer server{kHost, 0, 2, "secret"};
  StoreClient first{options(server.port(), 0, 2)}, second{options(server.port(), 1, 2)};

  void expect_undisturbed() {
    auto other = std::async(std::launch::async, [&] { return second.exchange("x", 1, 2, "b"); });
    EXPECT_EQ(first.exchange("x", 0, 2, "a"), (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(other.get().size(), 2u);
    EXPECT_EQ(first.failure() + second.failure(), "");
  }
};

// The soft limit of open files while it lives.
class FileLimit {
 public:
  explicit FileLimit(rlim_t files) {
    ::getrlimit(RLIMIT_NOFILE, &old_);
    rlimit limit = {files, old_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  FileLimit(const FileLimit&) = delete;
  ~FileLimit() { ::setrlimit(RLIMIT_NOFILE, &old_); }

 private:
  rlimit old_ = {};
};

FileDescriptor connect(int port) { return connect_to(kHost, port, deadline_in(5)); }

// Whether the other end has closed it, after what it has said.
bool is_dropped(int socket, int milliseconds) {
  char bytes[4096];
  for (Deadline deadline = deadline_in(milliseconds * 1e-3);;) {
    pollfd ready = {socket, POLLIN, 0};
    if (::poll(&ready, 1, milliseconds_left(deadline)) <= 0) return false;
    if (::recv(socket, bytes, sizeof bytes, 0) <= 0) return true;
  }
}

TEST(StoreStrangers, NewcomersOfAStartedRunAreRefusedAndNobodyElseIsDisturbed) {
  Pair run;
  int port = run.server.port();
  expect_user_error([&] { StoreClient again(options(port, 1, 2)); }, {"expected rank 1 once", "TOKAMAK_PORT"});
  expect_user_error([&] { StoreClient again(options(port, 0, 2)); }, {"expected rank 0 once", "TOKAMAK_PORT"});
  expect_user_error([&] { StoreClient larger(options(port, 3, 4)); }, {"expected 2 ranks", "rank 3 on", "of 4"});
  expect_user_error([&] { StoreClient other(options(port, 1, 2, "another run")); },
                    {"[rendezvous] expected the token", "WORLD_SIZE", "TOKAMAK_PORT"});
  run.expect_undisturbed();
}

// All that one can do who knows the protocol and not the token, in turn for each rank, before the start and after it.
void attack(int port) {
  for (const char* rank : {"0", "1", "2", "-1"}) {
    FileDescriptor socket = connect(port);
    FrameReader reader(4096);
    std::optional<Frame> hello;
    for (char byte; !(hello = reader.next()) && ::recv(socket.get(), &byte, 1, 0) == 1;) reader.append({&byte, 1});
    ASSERT_TRUE(hello && hello->size() == 2);
    std::string who = encode_frame({rank, "2", "host"});
    std::string proof = store_proof("", "client", (*hello)[1], "nonce", who);
    send_all(socket.get(), encode_frame({"join", "nonce", rank, "2", "host", proof}));
    for (const Frame& frame : {Frame{"fail", "ha"}, Frame{"leave"}, Frame{"set", "0", "x", "ha"}})
      send_all(socket.get(), encode_frame(frame));
    EXPECT_TRUE(is_dropped(socket.get(), 5000));
  }
}

TEST(StoreStrangers, AScriptWithAnEmptyKeyEndsNothing) {
  StoreServer server(kHost, 0, 2, "secret");
  attack(server.port());
  StoreClient first(options(server.port(), 0, 2));
  attack(server.port());
  StoreClient second(options(server.port(), 1, 2));
  attack(server.port());
  second.set("y", "1");
  EXPECT_EQ(first.get("y"), "1");
  EXPECT_EQ(first.failure(), "");
}

TEST(StoreStrangers, SilentOnesGiveWayToRanks) {
  raise_open_file_limit();
  constexpr size_t kSilent = 1500, kKept = 256;
  StoreServer server(kHost, 0, 2, "secret");
  StoreClient first(options(server.port(), 0, 2));
  std::vector<FileDescriptor> silent;
  for (size_t i = 0; i < kSilent; ++i) silent.push_back(connect(server.port()));
  StoreClient second(options(server.port(), 1, 2));
  second.set("x", "1");
  EXPECT_EQ(first.get("x"), "1");
  for (size_t i = 0; i < kSilent - kKept; ++i) ASSERT_TRUE(is_dropped(silent[i].get(), 5000)) << i;
}

// While strangers come without end.
TEST(StoreStrangers, RanksJoinInASiege) {
  StoreServer server(kHost, 0, 3, "secret");
  std::jthread siege([&](const std::stop_token& over) {
    for (std::vector<FileDescriptor> silent(400); !over.stop_requested();)
      for (FileDescriptor& one : silent) one = connect(server.port());
  });
  StoreClient first(options(server.port(), 0, 3)), second(options(server.port(), 1, 3));
  StoreClient third(options(server.port(), 2, 3));
  third.set("x", "1");
  EXPECT_EQ(first.get("x"), "1");
}

TEST(StoreStrangers, LeaveFilesForOthers) {
  constexpr rlim_t kFiles = 256;
  FileLimit limit(kFiles);
  Pair run;
  std::vector<FileDescriptor> open;
  for (rlim_t i = 0; i < kFiles * 2 / 5; ++i) open.push_back(connect(run.server.port()));
  run.expect_undisturbed();  // all of them have been seen
  for (rlim_t i = 0; i < kFiles / 5; ++i) {
    open.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(open.back().is_open()) << i;
  }
}

TEST(StoreStrangers, AreTurnedAwayWhereNoFileIsLeft) {
  Pair run;
  int next = FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)).get();
  {
    FileLimit limit(rlim_t(next) + 1);  // one more
    EXPECT_TRUE(is_dropped(connect(run.server.port()).get(), 5000));
  }
  run.expect_undisturbed();
}

TEST(StoreStrangers, ARankThatIsDroppedTriesAgain) {
  FileDescriptor besieged = listen_on(kHost, 0);
  int port = port_of(besieged.get());
  auto rank = std::async(std::launch::async, [&] {
    StoreClient second(options(port, 1, 2));
    second.set("x", "1");
  });
  Deadline deadline = deadline_in(10);
  for (int dropped = 0; dropped < 3 && milliseconds_left(deadline) > 0;)
    if (FileDescriptor(::accept(besieged.get(), nullptr, nullptr)).is_open()) ++dropped;
  besieged = FileDescriptor();
  StoreServer server(kHost, port, 2, "secret");
  StoreClient first(options(port, 0, 2));
  EXPECT_EQ(first.get("x"), "1");
  rank.get();
}

}  // namespace
}  // namespace tokamak
