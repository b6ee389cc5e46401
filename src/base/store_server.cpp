#include "base/store_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/frames.h"
#include "base/socket.h"
#include "base/store_values.h"

namespace tokamak {
namespace {

constexpr size_t kMaxGreeting = 4096;  // bytes of a stranger's message
constexpr double kGreetingSeconds = 10;
constexpr double kFarewellSeconds = 5;
constexpr double kObituarySeconds = 1;  // in which who started a lost rank may say how it ended
constexpr int kAcceptedAtOnce = 64;     // connections, before messages are read again

struct Connection {
  FileDescriptor socket;
  FrameReader in{kMaxGreeting};
  std::string out;
  std::string nonce = random_nonce();
  Deadline greeting = deadline_in(kGreetingSeconds);
  int rank = -1;  // not joined yet
  bool left = false;
  bool closing = false;  // when `out` is sent
};

// Strangers may hold a part of the files that the process can open: data and checkpoints have to find theirs.
size_t stranger_limit() {
  constexpr rlim_t kLeast = 4, kMost = 256, kPart = 8;
  rlimit files;
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return kLeast;
  return std::clamp(files.rlim_cur / kPart, kLeast, kMost);
}

// A descriptor in reserve, with which a connection can be taken, and closed, when there is no other.
FileDescriptor spare_file() { return FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

int number_in(const std::string& text, int least, int most) {
  size_t end = 0;
  int number = -1;
  try {
    number = std::stoi(text, &end);
  } catch (const std::exception&) {
  }
  if (end != text.size() || number < least || number > most)
    user_error("[rendezvous] expected a number from {} to {}, got another", least, most);
  return number;
}

}  // namespace

// All but what other threads ask for belongs to the service's thread.
class StoreServer::Service {
 public:
  Service(const std::string& host, int port, int world, std::string token)
      : listener_(listen_on(host, port)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        port_(port_of(listener_.get())), world_(world), token_(std::move(token)), hosts_(size_t(world)),
        address_(local_loopback(host)) {
    TOKAMAK_CHECK(wake_.is_open() && world > 0, "a store for {} ranks", world);
    thread_ = std::thread([this] { serve(); });
  }
  ~Service() {
    stopping_ = true;
    wake();
    thread_.join();
  }

  void expect_ends() { expects_ends_ = true; }

  void note_end(int rank, const std::string& how) {
    {
      std::lock_guard lock(mutex_);
      news_.emplace_back(rank, how);
    }
    wake();
  }

  std::vector<int> missing() const {
    std::vector<int> ranks;
    std::lock_guard lock(mutex_);
    for (int rank = 0; rank < world_; ++rank)
      if (hosts_[size_t(rank)].empty()) ranks.push_back(rank);
    return ranks;
  }

  int port() const { return port_; }
  bool has_failed() const { return has_failed_; }
  std::string address() const {
    std::lock_guard lock(mutex_);
    return address_;
  }

 private:
  static std::string local_loopback(const std::string& host) { return host == "::1" ? host : "127.0.0.1"; }

  void wake() {
    uint64_t one = 1;
    if (::write(wake_.get(), &one, sizeof one) < 0) {
      // The service looks by itself every second.
    }
  }

  void serve() {
    std::optional<Deadline> end;
    while (true) {
      if (stopping_ && !end) end = deadline_in(kFarewellSeconds);
      if (end && (all_gone() || milliseconds_left(*end) == 0)) return;
      wait();
      take_news();
      expire();
    }
  }

  bool all_gone() const {
    return std::none_of(connections_.begin(), connections_.end(), [](const auto& entry) {
      const Connection& connection = entry.second;
      return connection.rank >= 0 && (!connection.left || !connection.out.empty());
    });
  }

  void wait() {
    std::vector<pollfd> polled = {{listener_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    std::vector<int64_t> ids;
    for (auto& [id, connection] : connections_) {
      polled.push_back({connection.socket.get(), short(connection.out.empty() ? POLLIN : POLLIN | POLLOUT), 0});
      ids.push_back(id);
    }
    if (::poll(polled.data(), polled.size(), next_wake()) <= 0) return;
    if (polled[1].revents) {
      uint64_t count = 0;
      while (::read(wake_.get(), &count, sizeof count) > 0) {
      }
    }
    for (size_t i = 0; i < ids.size(); ++i)
      if (polled[i + 2].revents) attend(ids[i], polled[i + 2].revents);
    if (polled[0].revents) accept_all();
  }

  // A second is soon enough for what is not a message.
  int next_wake() const {
    int wake = values_.next_wake(1000);
    for (const auto& [rank, until] : lost_) wake = std::min(wake, milliseconds_left(until));
    return roll_call_ ? std::min(wake, milliseconds_left(roll_call_->until)) : wake;
  }

  void accept_all() {
    for (int i = 0; i < kAcceptedAtOnce; ++i) {
      FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (socket.is_open())
        add_stranger(std::move(socket));
      else if (errno == EMFILE || errno == ENFILE)
        return turn_one_away();
      else
        return;
    }
  }

  // The oldest that has not joined gives way: who has a token needs a moment, and tries again.
  void add_stranger(FileDescriptor socket) {
    auto is_stranger = [](const auto& entry) { return entry.second.rank < 0; };
    if (size_t(std::count_if(connections_.begin(), connections_.end(), is_stranger)) >= max_strangers_)
      connections_.erase(std::find_if(connections_.begin(), connections_.end(), is_stranger));
    watch_connection(socket.get());
    int64_t id = next_connection_++;
    connections_[id].socket = std::move(socket);
    send(id, {kStoreProtocol, connections_[id].nonce});
  }

  void turn_one_away() {
    spare_ = FileDescriptor();
    FileDescriptor(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    spare_ = spare_file();
  }

  void attend(int64_t id, short events) {
    Connection& connection = connections_.at(id);
    bool open = true;
    if (events & (POLLIN | POLLHUP | POLLERR)) open = read(id);
    if (open && connections_.contains(id)) open = flush(connection);
    if (!open || (connection.closing && connection.out.empty())) close(id);
  }

  // False: the peer is gone, or says what no rank says.
  bool read(int64_t id) {
    Connection& connection = connections_.at(id);
    char bytes[65536];
    ssize_t got = ::recv(connection.socket.get(), bytes, sizeof bytes, 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (got <= 0) return false;
    connection.in.append({bytes, size_t(got)});
    try {
      while (std::optional<Frame> frame = connection.in.next()) {
        if (connection.closing) return true;
        connection.rank < 0 ? greet(id, *frame) : answer(id, *frame);
      }
    } catch (const UserError&) {
      return false;
    }
    return true;
  }

  static bool flush(Connection& connection) {
    while (!connection.out.empty()) {
      ssize_t sent = ::send(connection.socket.get(), connection.out.data(), connection.out.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) return errno == EAGAIN;
      connection.out.erase(0, size_t(sent));
    }
    return true;
  }

  void close(int64_t id) {
    const Connection& connection = connections_.at(id);
    double patience = expects_ends_ ? kObituarySeconds : 0;
    if (connection.rank >= 0 && !connection.left) lost_.emplace_back(connection.rank, deadline_in(patience));
    connections_.erase(id);
  }

  void send(int64_t id, const Frame& frame) {
    auto found = connections_.find(id);
    if (found == connections_.end()) return;
    found->second.out += encode_frame(frame);
    flush(found->second);  // what is left, and a broken connection, is seen by poll
  }

  void refuse(int64_t id, const std::string& reason) {
    connections_.at(id).closing = true;
    send(id, {"refused", reason});
  }

  // {"join", nonce, rank, world, host, proof}
  void greet(int64_t id, const Frame& frame) {
    Connection& connection = connections_.at(id);
    if (frame.size() != 6 || frame[0] != "join") user_error("[rendezvous] a stranger");
    std::string who = encode_frame({frame[2], frame[3], frame[4]});
    if (frame[5] != store_proof(token_, "client", connection.nonce, frame[1], who))
      return refuse(id,
                    "[rendezvous] expected the token of the run that is served there, got another; start its ranks "
                    "with the same options, output folder, WORLD_SIZE and TOKAMAK_TOKEN, or if this is another run, "
                    "set TOKAMAK_PORT to a port that is free");
    int world = number_in(frame[3], 1, 1 << 20), rank = number_in(frame[2], 0, world - 1);
    std::string problem = problem_with(rank, world, frame[4]);
    if (!problem.empty() && is_complete()) return refuse(id, problem);
    if (!problem.empty()) fail(problem);
    if (!failure_.empty()) return refuse(id, failure_);
    connection.rank = rank;
    note_host(rank, frame[4]);
    connection.in.set_max_bytes(kStoreMaxBytes);
    note_address(connection.socket.get());
    send(id, {"joined", store_proof(token_, "server", connection.nonce, frame[1], who)});
  }

  bool is_complete() const {
    return std::none_of(hosts_.begin(), hosts_.end(), [](const std::string& host) { return host.empty(); });
  }

  std::string problem_with(int rank, int world, const std::string& host) const {
    const char* another_run = is_complete() ? "; if this is another run, set TOKAMAK_PORT to a port that is free" : "";
    if (world != world_)
      return fmt::format(
          "[rendezvous] expected {} ranks, as rank 0 was told, got rank {} on {} of {}; start all ranks with "
          "the same number of them{}",
          world_, rank, host, world, another_run);
    if (!hosts_[size_t(rank)].empty())
      return fmt::format("[rendezvous] expected rank {} once, got it on {} and on {}; give each process another rank{}",
                         rank, hosts_[size_t(rank)], host, another_run);
    return "";
  }

  void note_host(int rank, const std::string& host) {
    std::lock_guard lock(mutex_);
    hosts_[size_t(rank)] = host;
  }

  void note_address(int socket) {
    std::string reached = local_address(socket);
    std::lock_guard lock(mutex_);
    if (!is_loopback(reached)) address_ = reached;
  }

  void answer(int64_t id, const Frame& frame) {
    if (frame.empty()) user_error("[rendezvous] an empty request");
    const std::string& kind = frame[0];
    int rank = connections_.at(id).rank;
    if (kind == "leave") {
      connections_.at(id).left = true;
      if (rank >= 0) note_answer(rank, "+");
    } else if (kind == "fail" && frame.size() == 2) {
      fail(frame[1]);
    } else if (!failure_.empty()) {
      // The rank has been told.
    } else if (kind == "ask" && frame.size() == 4) {
      ask_all({id, frame[1]}, waits_until(frame[3]));
    } else if (kind == "here" && frame.size() == 3) {
      note_here(rank, frame[1], frame[2]);
    } else if (kind == "set" && frame.size() == 4) {
      values_.set(frame[2], frame[3]);
      send(id, {"done", frame[1]});
    } else if ((kind == "get" || kind == "take") && frame.size() == 4) {
      values_.get(frame[2], {id, rank, frame[1], waits_until(frame[3]), kind == "take"});
    } else if (kind == "exchange" && frame.size() == 7) {
      int size = number_in(frame[5], 1, 1 << 20), index = number_in(frame[4], 0, size - 1);
      fail(values_.exchange(frame[2], index, size, frame[6], {id, rank, frame[1], waits_until(frame[3])}));
    } else {
      user_error("[rendezvous] an unknown request");
    }
  }

  static Deadline waits_until(const std::string& milliseconds) {
    return deadline_in(number_in(milliseconds, 0, 1 << 30) * 1e-3);
  }

  // Where all ranks stand. One who asks while others are waited for gets what they get.
  void ask_all(std::pair<int64_t, std::string> asker, Deadline until) {
    if (roll_call_) return roll_call_->askers.push_back(std::move(asker));
    roll_call_ = RollCall{std::to_string(++roll_calls_), until, {std::move(asker)}, Frame(size_t(world_), "+"), 0};
    std::vector<int64_t> asked;
    for (const auto& [id, connection] : connections_)
      if (connection.rank >= 0 && !connection.left)
        asked.push_back(id), roll_call_->answers[size_t(connection.rank)] = "";
    roll_call_->missing = asked.size();
    for (int64_t id : asked) send(id, {"where", roll_call_->round});
  }

  void note_here(int rank, const std::string& round, const std::string& answer) {
    if (roll_call_ && round == roll_call_->round) note_answer(rank, "+" + answer);
  }

  // Of a rank that is waited for; one that leaves is no longer.
  void note_answer(int rank, std::string answer) {
    if (!roll_call_ || !roll_call_->answers[size_t(rank)].empty()) return;
    roll_call_->answers[size_t(rank)] = std::move(answer);
    if (--roll_call_->missing == 0) end_roll_call();
  }

  void end_roll_call() {
    RollCall ended = std::move(*roll_call_);
    roll_call_.reset();
    for (const auto& [id, request] : ended.askers) {
      Frame reply = {"done", request};
      reply.insert(reply.end(), ended.answers.begin(), ended.answers.end());
      send(id, reply);
    }
  }

  void take_news() {
    std::vector<std::pair<int, std::string>> news;
    {
      std::lock_guard lock(mutex_);
      news.swap(news_);
    }
    for (auto& [rank, how] : news) {
      if (hosts_[size_t(rank)].empty())
        fail(fmt::format("[rendezvous] rank {} {} before it joined the others; see what it says", rank, how));
      ends_[rank] = std::move(how);
    }
  }

  void expire() {
    std::vector<int64_t> silent;
    for (auto& [id, connection] : connections_)
      if (connection.rank < 0 && milliseconds_left(connection.greeting) == 0) silent.push_back(id);
    for (int64_t id : silent) close(id);
    std::erase_if(lost_, [this](const auto& lost) { return report_loss(lost.first, lost.second); });
    fail(values_.overdue());
    if (roll_call_ && milliseconds_left(roll_call_->until) == 0) end_roll_call();
  }

  // False: its end may still become known.
  bool report_loss(int rank, Deadline until) {
    auto end = ends_.find(rank);
    if (end == ends_.end() && milliseconds_left(until) > 0) return false;
    fail(fmt::format("rank {} on {} is gone: {}", rank, hosts_[size_t(rank)],
                     end == ends_.end() ? "its connection broke" : "it " + end->second));
    return true;
  }

  // The first reason stays; an empty one is none.
  void fail(const std::string& reason) {
    if (reason.empty() || !failure_.empty()) return;
    failure_ = reason;
    has_failed_ = true;
    values_.forget_waits();
    for (auto& [id, connection] : connections_)
      if (connection.rank >= 0) send(id, {"failed", reason});
  }

  struct RollCall {
    std::string round;
    Deadline until;
    std::vector<std::pair<int64_t, std::string>> askers;  // connections and their requests
    Frame answers;                                        // by rank, behind "+"; empty: none yet
    size_t missing;
  };

  FileDescriptor listener_, wake_, spare_ = spare_file();
  const int port_, world_;
  const std::string token_;
  const size_t max_strangers_ = stranger_limit();
  std::map<int64_t, Connection> connections_;  // by age
  int64_t next_connection_ = 0;
  std::vector<std::string> hosts_;  // by rank; empty: it has not joined; others read it, changed under the mutex
  std::vector<std::pair<int, Deadline>> lost_;  // ranks whose connection broke, and until when an end is waited for
  std::map<int, std::string> ends_;             // of ranks' processes
  std::optional<RollCall> roll_call_;           // under way
  int64_t roll_calls_ = 0;
  StoreValues values_{[this](const StoreWaiter& waiter, const Frame& values) {
    Frame reply = {"done", waiter.id};
    reply.insert(reply.end(), values.begin(), values.end());
    send(waiter.connection, reply);
  }};
  std::string failure_;
  mutable std::mutex mutex_;
  std::string address_;  // under the mutex, as are
  std::vector<std::pair<int, std::string>> news_;
  std::atomic<bool> stopping_ = false, has_failed_ = false, expects_ends_ = false;
  std::thread thread_;
};

StoreServer::StoreServer(const std::string& host, int port, int world, std::string token)
    : service_(std::make_unique<Service>(host, port, world, std::move(token))) {}
StoreServer::~StoreServer() = default;
int StoreServer::port() const { return service_->port(); }
std::string StoreServer::address() const { return service_->address(); }
std::vector<int> StoreServer::missing() const { return service_->missing(); }
bool StoreServer::has_failed() const { return service_->has_failed(); }
void StoreServer::expect_ends() { service_->expect_ends(); }
void StoreServer::note_end(int rank, const std::string& how) { service_->note_end(rank, how); }

}  // namespace tokamak
