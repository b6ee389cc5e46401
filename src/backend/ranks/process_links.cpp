#include "backend/ranks/process_links.h"

#include "base/error.h"
#include "base/frames.h"
#include "base/store_client.h"
#include "base/store_server.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <list>
#include <optional>
#include <thread>

namespace tokamak {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProtocol = "tokamak-link-1";
constexpr size_t kHexBytes = 64;   // of a nonce, and of a proof
constexpr size_t kRankBytes = 8;   // of a rank's number, in decimal digits
constexpr size_t kStrangers = 64;  // that may be silent at a time
constexpr double kStrangerSeconds = 10;
constexpr double kTurnSeconds = 0.2;  // that each may have, however many others come
constexpr int kTick = 100;            // milliseconds after which the run's failure is noticed

// The same for processes that reach each other's Unix sockets and belong to one user; a name of its own where that
// cannot be told.
std::string machine_identity() {
  try {
    std::string boot = read_file("/proc/sys/kernel/random/boot_id");
    return fmt::format("{} {} {}", boot, fs::read_symlink("/proc/self/ns/net").string(), ::geteuid());
  } catch (const std::exception&) {
    return random_nonce();
  }
}

// How a rank is reached.
struct Contact {
  std::string unix_name;  // empty: it has none
  std::string host, port;
  std::string secret;  // that only the store's clients know
};

std::string encode(const Contact& c) { return encode_frame({c.unix_name, c.host, c.port, c.secret}); }

Contact decode_contact(const std::string& text) {
  FrameReader reader(kStoreMaxBytes);
  reader.append(text);
  std::optional<Frame> frame = reader.next();
  TOKAMAK_CHECK(frame && frame->size() == 4, "a contact of other parts");
  return {(*frame)[0], (*frame)[1], (*frame)[2], (*frame)[3]};
}

// In the abstract namespace: nothing is left behind in any folder.
socklen_t unix_address(const std::string& name, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  TOKAMAK_CHECK(name.size() + 1 < sizeof address.sun_path, "a long name");
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

FileDescriptor listen_on_unix(const std::string& name) {
  sockaddr_un address;
  socklen_t bytes = unix_address(name, address);
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open() || ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), bytes) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0)
    user_error("[mesh] cannot listen on a Unix socket for other ranks: {}", std::strerror(errno));
  return socket;
}

// Nothing: try again.
std::optional<FileDescriptor> connect_to_unix(const std::string& name) {
  sockaddr_un address;
  socklen_t bytes = unix_address(name, address);
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open() || ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), bytes) != 0) return {};
  return socket;
}

// More bytes of `into`, until it has `size`; false: the peer is gone.
bool receive_up_to(int socket, std::string& into, size_t size) {
  char bytes[256];
  while (into.size() < size) {
    ssize_t got = ::recv(socket, bytes, std::min(sizeof bytes, size - into.size()), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (got <= 0) return false;
    into.append(bytes, size_t(got));
  }
  return true;
}

// A few bytes into a connection of which nobody has read yet.
bool send_few(int socket, const std::string& bytes) {
  return ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) == ssize_t(bytes.size());
}

// Someone who has connected, until it has proved who it is.
struct Stranger {
  FileDescriptor socket;
  std::string nonce = random_nonce();
  std::string said = {};
  Deadline turn = deadline_in(kTurnSeconds);
  Deadline deadline = deadline_in(kStrangerSeconds);
};

class Linker {
 public:
  Linker(StoreClient& store, const Membership& members, const LinkOptions& options)
      : store_(store), members_(members), options_(options), deadline_(deadline_in(options.seconds)),
        links_(members.ranks.size()) {}

  // A rank calls those before it, then waits for those behind it, so that none waits in a circle.
  std::vector<FileDescriptor> link() {
    listen();
    for (int peer = 0; peer < members_.rank; ++peer) links_[size_t(peer)] = call(peer);
    while (missing() >= 0) accept_some();
    return std::move(links_);
  }

 private:
  int size() const { return int(members_.ranks.size()); }

  std::vector<std::string> exchange(const std::string& what, const std::string& mine) {
    return store_.exchange(fmt::format("{}/{}", options_.key, what), members_.rank, size(), mine);
  }

  void listen() {
    std::vector<std::string> machines = exchange("machines", options_.one_host ? machine_identity() : random_nonce());
    auto mine = machines.begin() + members_.rank;
    auto others =
        std::count_if(machines.begin(), machines.end(), [&](const auto& machine) { return machine != *mine; });
    Contact contact{.host = options_.address, .secret = random_nonce()};
    if (others + 1 < size()) {
      contact.unix_name = "tokamak-" + random_nonce();
      listeners_.push_back(listen_on_unix(contact.unix_name));
    }
    if (others > 0) {
      listeners_.push_back(listen_on(options_.address, 0));
      contact.port = std::to_string(port_of(listeners_.back().get()));
    }
    for (const std::string& text : exchange("contacts", encode(contact))) contacts_.push_back(decode_contact(text));
    for (size_t peer = 0; peer < machines.size(); ++peer)
      if (machines[peer] != *mine) contacts_[peer].unix_name.clear();
  }

  std::string proof(const char* role, const std::string& listeners, const std::string& callers, int listener,
                    int caller) const {
    return store_.proof(role, listeners, callers,
                        encode_frame({kProtocol, options_.key, contacts_[size_t(listener)].secret,
                                      std::to_string(listener), std::to_string(caller)}));
  }

  [[noreturn]] void fail(const std::string& why) {
    store_.fail(why);
    throw CommunicationError(store_.failure());
  }
  std::string name_of(int peer) const { return fmt::format("rank {}", members_.ranks[size_t(peer)]); }

  void require_time(int peer) {
    store_.check();
    if (milliseconds_left(deadline_) > 0) return;
    fail(
        fmt::format("[{}] {} has waited {} s for a connection with {}; see whether a firewall is between their "
                    "machines",
                    members_.axis, name_of(members_.rank), options_.seconds, name_of(peer)));
  }

  // Whoever answers wrongly, or hangs up, is asked again.
  FileDescriptor call(int peer) {
    while (true) {
      require_time(peer);
      FileDescriptor socket = connect(peer);
      if (socket.is_open() && greet(socket.get(), peer)) return socket;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  FileDescriptor connect(int peer) {
    const Contact& contact = contacts_[size_t(peer)];
    if (!contact.unix_name.empty()) return connect_to_unix(contact.unix_name).value_or(FileDescriptor());
    try {
      FileDescriptor socket = connect_to(contact.host, std::stoi(contact.port), std::min(deadline_, deadline_in(1)));
      watch_connection(socket.get());
      return socket;
    } catch (const UserError&) {
      return {};
    }
  }

  // The listener: nonce; the caller: its rank, nonce, proof; the listener: proof.
  bool greet(int socket, int peer) {
    std::string theirs, mine = random_nonce();
    if (!receive(socket, theirs, kHexBytes, peer)) return false;
    std::string claim =
        fmt::format("{:0{}}{}{}", members_.rank, kRankBytes, mine, proof("caller", theirs, mine, peer, members_.rank));
    if (!send_few(socket, claim)) return false;
    std::string answer;
    return receive(socket, answer, kHexBytes, peer) && answer == proof("listener", theirs, mine, peer, members_.rank);
  }

  bool receive(int socket, std::string& into, size_t size, int peer) {
    while (into.size() < size) {
      require_time(peer);
      pollfd ready = {socket, POLLIN, 0};
      if (::poll(&ready, 1, kTick) > 0 && !receive_up_to(socket, into, size)) return false;
    }
    return true;
  }

  // A rank behind this one that has not come; -1: all have.
  int missing() const {
    for (int peer = members_.rank + 1; peer < size(); ++peer)
      if (!links_[size_t(peer)].is_open()) return peer;
    return -1;
  }

  bool is_full() const { return strangers_.size() >= kStrangers && milliseconds_left(strangers_.front().turn) > 0; }

  void accept_some() {
    require_time(missing());
    std::vector<pollfd> polled;
    for (const FileDescriptor& listener : listeners_) polled.push_back({listener.get(), POLLIN, 0});
    if (is_full()) polled.clear();
    size_t listening = polled.size();
    for (const Stranger& stranger : strangers_) polled.push_back({stranger.socket.get(), POLLIN, 0});
    if (::poll(polled.data(), polled.size(), kTick) < 0) return;
    size_t i = listening;
    for (auto stranger = strangers_.begin(); stranger != strangers_.end(); ++i) {
      bool stays = milliseconds_left(stranger->deadline) > 0 && (!polled[i].revents || hear(*stranger));
      stranger = stays ? std::next(stranger) : strangers_.erase(stranger);
    }
    for (i = 0; i < listening; ++i)
      if (polled[i].revents) admit(listeners_[i].get());
  }

  // Where there are too many, the one that has been silent longest goes; so also where files cannot be opened.
  void admit(int listener) {
    while (!is_full()) {
      FileDescriptor socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      bool is_short = !socket.is_open() && (errno == EMFILE || errno == ENFILE);
      if (is_short && strangers_.empty())
        fail(fmt::format("[{}] {} cannot open a connection: {}; allow more open files (ulimit -n)", members_.axis,
                         name_of(members_.rank), std::strerror(errno)));
      if (is_short || (socket.is_open() && strangers_.size() >= kStrangers)) strangers_.pop_front();
      if (!socket.is_open()) return;
      watch_connection(socket.get());
      Stranger& stranger = strangers_.emplace_back(Stranger{.socket = std::move(socket)});
      if (!send_few(stranger.socket.get(), stranger.nonce)) strangers_.pop_back();
    }
  }

  // False: it has become a link, or is sent away.
  bool hear(Stranger& stranger) {
    constexpr size_t kClaim = kRankBytes + 2 * kHexBytes;
    if (!receive_up_to(stranger.socket.get(), stranger.said, kClaim)) return false;
    if (stranger.said.size() < kClaim) return true;
    int caller = std::atoi(stranger.said.substr(0, kRankBytes).c_str());
    if (caller <= members_.rank || caller >= size() || links_[size_t(caller)].is_open()) return false;
    std::string nonce = stranger.said.substr(kRankBytes, kHexBytes);
    if (stranger.said.substr(kRankBytes + kHexBytes) != proof("caller", stranger.nonce, nonce, members_.rank, caller))
      return false;
    if (!send_few(stranger.socket.get(), proof("listener", stranger.nonce, nonce, members_.rank, caller))) return false;
    links_[size_t(caller)] = std::move(stranger.socket);
    return false;
  }

  StoreClient& store_;
  const Membership& members_;
  const LinkOptions& options_;
  Deadline deadline_;
  std::vector<FileDescriptor> links_, listeners_;
  std::vector<Contact> contacts_;
  std::list<Stranger> strangers_;  // the oldest first
};

}  // namespace

std::vector<FileDescriptor> link_processes(StoreClient& store, const Membership& members, const LinkOptions& options) {
  return Linker(store, members, options).link();
}

}  // namespace tokamak
