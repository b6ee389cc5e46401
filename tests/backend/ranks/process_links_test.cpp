#include "backend/ranks/process_links.h"

#include "base/error.h"
#include "base/frames.h"
#include "base/store_server.h"
#include "tests/support/rank_threads.h"

#include <gtest/gtest.h>

#include <poll.h>
#include <sys/socket.h>

namespace tokamak::test {
namespace {

const Membership kFirst{"data", {0, 1}, 0}, kSecond{"data", {0, 1}, 1};

// One rank of two, played by the test: it says what the other one expects, and otherwise does as it likes.
class Played {
 public:
  Played(StoreClient& store, int rank, const LinkOptions& options, const std::string& own_contact = "")
      : store_(store), options_(options) {
    store.exchange(options.key + "/machines", rank, 2, "another machine");
    std::string mine = own_contact.empty() ? encode_frame({"", "", "", "secret"}) : own_contact;
    FrameReader reader(4096);
    reader.append(store.exchange(options.key + "/contacts", rank, 2, mine)[size_t(1 - rank)]);
    contact_ = *reader.next();
  }

  /// unix name, host, port, secret
  const Frame& contact() const { return contact_; }
  FileDescriptor connect() const { return connect_to(contact_[1], std::stoi(contact_[2]), deadline_in(10)); }
  std::string proof(const char* role, const std::string& listener_nonce, const std::string& caller_nonce,
                    const std::string& secret, int listener, int caller) const {
    std::string who =
        encode_frame({"tokamak-link-1", options_.key, secret, std::to_string(listener), std::to_string(caller)});
    return store_.proof(role, listener_nonce, caller_nonce, who);
  }

 private:
  StoreClient& store_;
  const LinkOptions& options_;
  Frame contact_;
};

// Less where the peer hangs up, or says nothing for half a minute.
std::string receive(int socket, size_t size) {
  std::string text;
  char byte;
  pollfd ready = {socket, POLLIN, 0};
  while (text.size() < size && ::poll(&ready, 1, 30'000) > 0 && ::recv(socket, &byte, 1, 0) == 1) text += byte;
  return text;
}

LinkOptions over_tcp() { return {.key = "k", .address = "127.0.0.1", .seconds = 30, .one_host = false}; }

// What a rank says that calls, with the nonce that it was greeted with.
std::string claim(const Played& played, const std::string& greeting, int rank, const std::string& secret) {
  std::string nonce(64, 'a');
  return fmt::format("{:08}{}{}", rank, nonce, played.proof("caller", greeting, nonce, secret, 0, rank));
}

// Rank 0 waits for a rank 1 that the test plays: `strangers` come first, then rank 1 itself, which proves who it is.
void expect_found_among(const std::function<void(const Played& played)>& strangers) {
  with_stores(2, [&](StoreClient& store) {
    LinkOptions options = over_tcp();
    if (store.rank() == 0) {
      std::vector<FileDescriptor> links = link_processes(store, kFirst, options);
      EXPECT_EQ(receive(links[1].get(), 5), "hello");
      return;
    }
    Played played(store, 1, options);
    strangers(played);
    FileDescriptor socket = played.connect();
    std::string greeting = receive(socket.get(), 64), secret = played.contact()[3];
    send_all(socket.get(), claim(played, greeting, 1, secret));
    EXPECT_EQ(receive(socket.get(), 64), played.proof("listener", greeting, std::string(64, 'a'), secret, 0, 1));
    send_all(socket.get(), "hello");
  });
}

TEST(ProcessLinks, StrangersDoNotKeepARankFromComing) {
  std::vector<FileDescriptor> strangers;  // as long as rank 1 takes to come
  expect_found_among([&](const Played& played) {
    for (int i = 0; i < 300; ++i) strangers.push_back(played.connect());
    for (int i = 0; i < 300; i += 3) send_all(strangers[size_t(i)].get(), std::string(136, char(i)));
    for (int i = 1; i < 300; i += 3) strangers[size_t(i)] = FileDescriptor();
  });
}

// Neither what another connection said, nor another rank's number, nor less than all that the store tells.
TEST(ProcessLinks, WhoProvesNothingIsSentAway) {
  expect_found_among([](const Played& played) {
    std::string secret = played.contact()[3];
    auto try_with = [&](const std::function<std::string(const std::string& greeting)>& claim_of) {
      FileDescriptor socket = played.connect();
      std::string greeting = receive(socket.get(), 64);
      send_all(socket.get(), claim_of(greeting));
      return receive(socket.get(), 64).size();
    };
    EXPECT_EQ(try_with([&](auto& greeting) { return claim(played, greeting, 1, "a guess"); }), 0u);
    EXPECT_EQ(try_with([&](auto& greeting) { return claim(played, greeting, 0, secret); }), 0u);
    EXPECT_EQ(try_with([&](auto& greeting) { return claim(played, greeting, 7, secret); }), 0u);
    EXPECT_EQ(try_with([&](auto&) { return claim(played, std::string(64, 'b'), 1, secret); }), 0u);
  });
}

TEST(ProcessLinks, CallerAsksAgainWhereSomeoneElseAnswers) {
  with_stores(2, [](StoreClient& store) {
    LinkOptions options = over_tcp();
    if (store.rank() == 1) {
      std::vector<FileDescriptor> links = link_processes(store, kSecond, options);
      EXPECT_EQ(receive(links[0].get(), 5), "hello");
      return;
    }
    FileDescriptor listener = listen_on("127.0.0.1", 0);
    Played played(store, 0, options,
                  encode_frame({"", "127.0.0.1", std::to_string(port_of(listener.get())), "secret"}));
    auto accept = [&] {
      pollfd ready = {listener.get(), POLLIN, 0};
      ::poll(&ready, 1, 10'000);
      return FileDescriptor(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    };
    accept();  // and hangs up
    FileDescriptor liar = accept();
    send_all(liar.get(), std::string(64, 'x'));
    receive(liar.get(), 136);
    send_all(liar.get(), std::string(64, 'x'));
    FileDescriptor socket = accept();
    std::string nonce(64, 'c');
    send_all(socket.get(), nonce);
    std::string said = receive(socket.get(), 136), theirs = said.substr(8, 64);
    EXPECT_EQ(said.substr(72), played.proof("caller", nonce, theirs, "secret", 0, 1));
    send_all(socket.get(), played.proof("listener", nonce, theirs, "secret", 0, 1) + "hello");
  });
}

TEST(ProcessLinks, RanksOfOneMachineOpenNoPort) {
  with_stores(3, [](StoreClient& store) {
    Membership members{"data", {0, 1, 2}, store.rank()};
    std::vector<FileDescriptor> links = link_processes(store, members, {.key = "k", .address = "127.0.0.1"});
    for (int peer = 0; peer < 3; ++peer) {
      EXPECT_EQ(links[size_t(peer)].is_open(), peer != store.rank());
      if (peer == store.rank()) continue;
      sockaddr_storage address = {};
      socklen_t bytes = sizeof address;
      ::getsockname(links[size_t(peer)].get(), reinterpret_cast<sockaddr*>(&address), &bytes);
      EXPECT_EQ(address.ss_family, AF_UNIX);
    }
  });
}

TEST(ProcessLinks, RankThatDoesNotComeIsNamed) {
  with_stores(2, [](StoreClient& store) {
    LinkOptions options = over_tcp();
    options.seconds = 1;
    if (store.rank() == 1) {
      Played played(store, 1, options);
      FileDescriptor silent = played.connect();
      receive(silent.get(), 65);  // more than it says: until it gives up
      return;
    }
    try {
      link_processes(store, kFirst, options);
      ADD_FAILURE() << "nothing was noticed";
    } catch (const CommunicationError& error) {
      EXPECT_NE(std::string(error.what()).find("[data] rank 0 has waited 1 s for a connection with rank 1"),
                std::string::npos)
          << error.what();
    }
  });
}

TEST(ProcessLinks, FailureOfTheRunEndsTheWait) {
  with_stores(2, [](StoreClient& store) {
    LinkOptions options = over_tcp();
    if (store.rank() == 0) {
      EXPECT_THROW(link_processes(store, kFirst, options), CommunicationError);
      return;
    }
    Played played(store, 1, options);
    store.fail("rank 1 of this test gave up");
  });
}

}  // namespace
}  // namespace tokamak::test
