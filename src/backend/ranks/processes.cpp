#include "backend/ranks/processes.h"

#include "backend/ranks/host_communicator.h"
#include "backend/ranks/process_links.h"
#include "base/error.h"
#include "base/store_client.h"
#include "base/system.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

namespace tokamak {
namespace {

constexpr size_t kMostPieces = 1024;  // that the system takes at a time (IOV_MAX)
constexpr int64_t kMostCalls = 1 << 20;

// What ranks tell each other before their data; ranks of one run have one byte order.
struct Header {
  int64_t calls = 0;  // of CommunicatorCall, which follow
  int64_t bytes = 0;  // of data, which follow them
};
static_assert(std::is_trivially_copyable_v<Header> && std::is_trivially_copyable_v<CommunicatorCall>);

// Memory that is sent or filled piece by piece, as far as the connection lets it.
class Pieces {
 public:
  void add(const void* data, int64_t bytes) {
    if (bytes > 0) left_.push_back({const_cast<void*>(data), size_t(bytes)});
  }
  bool done() const { return at_ == left_.size(); }
  // False: the other end is gone.
  bool send(int socket) {
    return move([&](const msghdr& message) { return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT); });
  }
  bool receive(int socket) {
    return move([&](msghdr& message) { return ::recvmsg(socket, &message, MSG_DONTWAIT); });
  }

 private:
  template <class Call>
  bool move(const Call& call) {
    while (!done()) {
      msghdr message = {};
      message.msg_iov = &left_[at_];
      message.msg_iovlen = std::min(left_.size() - at_, kMostPieces);
      ssize_t moved = call(message);
      if (moved < 0 && errno == EINTR) continue;
      if (moved < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
      if (moved == 0) return false;
      drop(size_t(moved));
    }
    return true;
  }
  void drop(size_t bytes) {
    for (; !done() && bytes >= left_[at_].iov_len; ++at_) bytes -= left_[at_].iov_len;
    if (bytes == 0) return;
    left_[at_].iov_base = static_cast<char*>(left_[at_].iov_base) + bytes;
    left_[at_].iov_len -= bytes;
  }

  std::vector<iovec> left_;
  size_t at_ = 0;
};

// One meeting under way. What comes is the other rank's header, then its calls, then, if those fit, its data.
struct Channel {
  int peer = 0;
  int socket = -1;
  const Meeting* meeting = nullptr;
  Header mine, theirs;
  std::vector<CommunicatorCall> their_calls = {};
  Pieces out = {}, in = {};
  enum class Awaits { kHeader, kCalls, kData } awaits = Awaits::kHeader;

  bool has_received() const { return awaits == Awaits::kData && in.done(); }
  bool is_done() const { return out.done() && has_received(); }
};

class ProcessCommunicator : public HostCommunicator {
 public:
  // `key` is this communicator's own, and the same on all its ranks.
  ProcessCommunicator(StoreClient& store, const ProcessOptions& options, std::string key, Membership membership)
      : HostCommunicator(std::move(membership)), store_(store), options_(options), key_(std::move(key)),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    TOKAMAK_CHECK(wake_.is_open(), "no event: {}", std::strerror(errno));
    if (size() > 1)
      links_ = link_processes(store_, this->membership(),
                              {.key = key_,
                               .address = options_.address,
                               .seconds = std::min(options_.timeout_seconds, kLinkSeconds),
                               .one_host = options_.one_host});
    subscription_ = store_.on_failure([this](const std::string&) { interrupt(); });
  }
  ~ProcessCommunicator() override { store_.unsubscribe(subscription_); }

  void abort(std::string_view why) override { store_.fail(std::string(why)); }
  void check() override { store_.check(); }
  bool has_lost_leader() const override { return store_.has_lost_leader(); }

 protected:
  void transfer(const Meetings& meetings) override {
    std::vector<Channel> channels = open(meetings);
    Deadline deadline = deadline_in(options_.timeout_seconds);
    for (Channel& channel : channels) advance(channel);
    while (wait(channels, deadline)) {
    }
  }

  std::unique_ptr<Communicator> do_split(Membership membership) override {
    std::string key = fmt::format("{}.{}.{}", key_, splits_++, membership.ranks[0]);
    return std::make_unique<ProcessCommunicator>(store_, options_, std::move(key), std::move(membership));
  }
  void wait_up_to(double seconds) override { options_.timeout_seconds = seconds; }

 private:
  static constexpr double kLinkSeconds = 60;
  static constexpr double kTellingSeconds = 1.5;

  // Each has its place in memory from here on.
  std::vector<Channel> open(const Meetings& meetings) {
    std::vector<Channel> channels;
    for (const auto& [peer, meeting] : meetings)
      channels.push_back({.peer = peer, .socket = links_[size_t(peer)].get(), .meeting = &meeting});
    for (Channel& channel : channels) {
      channel.mine.calls = int64_t(calls().size());
      for (const Meeting::Outgoing& message : channel.meeting->out) channel.mine.bytes += message.bytes;
      channel.out.add(&channel.mine, sizeof channel.mine);
      channel.out.add(calls().data(), int64_t(calls().size() * sizeof(CommunicatorCall)));
      for (const Meeting::Outgoing& message : channel.meeting->out) channel.out.add(message.data, message.bytes);
      channel.in.add(&channel.theirs, sizeof channel.theirs);
    }
    return channels;
  }

  // As far as it goes without waiting.
  void advance(Channel& channel) {
    if (!channel.out.send(channel.socket)) give_up(channel.peer);
    while (!channel.has_received()) {
      if (!channel.in.receive(channel.socket)) give_up(channel.peer);
      if (!channel.in.done()) return;
      if (channel.awaits == Channel::Awaits::kHeader) {
        await_calls(channel);
      } else if (channel.awaits == Channel::Awaits::kCalls) {
        await_data(channel);
      }
    }
  }

  void await_calls(Channel& channel) {
    channel.awaits = Channel::Awaits::kCalls;
    int64_t calls = channel.theirs.calls;
    TOKAMAK_CHECK(0 < calls && calls < kMostCalls, "[{}] {} calls of {}", axis(), calls, name_of(channel.peer));
    channel.their_calls.resize(size_t(calls));
    channel.in.add(channel.their_calls.data(), calls * int64_t(sizeof(CommunicatorCall)));
  }

  void await_data(Channel& channel) {
    channel.awaits = Channel::Awaits::kData;
    if (std::string wrong = mismatch(channel.their_calls, channel.peer); !wrong.empty()) fail(wrong);
    int64_t bytes = 0;
    for (const Meeting::Incoming& message : channel.meeting->in) {
      channel.in.add(message.data, message.bytes);
      bytes += message.bytes;
    }
    TOKAMAK_CHECK(bytes == channel.theirs.bytes, "[{}] {}: {} bytes come, not {}", axis(), calls_text(),
                  channel.theirs.bytes, bytes);
  }

  // False: nothing is left to wait for.
  bool wait(std::vector<Channel>& channels, Deadline deadline) {
    std::vector<pollfd> polled = {{wake_.get(), POLLIN, 0}};
    std::vector<Channel*> open;
    for (Channel& channel : channels) {
      if (channel.is_done()) continue;
      auto events = short((channel.out.done() ? 0 : POLLOUT) | (channel.has_received() ? 0 : POLLIN));
      polled.push_back({channel.socket, events, 0});
      open.push_back(&channel);
    }
    if (open.empty()) return false;
    if (milliseconds_left(deadline) == 0)
      fail(fmt::format("[{}] {} has waited {} s in {} for {}", axis(), name_of(rank()), options_.timeout_seconds,
                       calls_text(), name_of(open[0]->peer)));
    if (::poll(polled.data(), polled.size(), milliseconds_left(deadline)) <= 0) return true;
    if (polled[0].revents) check();
    for (size_t i = 0; i < open.size(); ++i)
      if (polled[i + 1].revents) advance(*open[i]);
    return true;
  }

  // A failure of the run, of which another thread learns, ends the wait.
  void interrupt() const {
    uint64_t one = 1;
    TOKAMAK_CHECK(::write(wake_.get(), &one, sizeof one) > 0, "no event: {}", std::strerror(errno));
  }

  [[noreturn]] void fail(const std::string& why) {
    store_.fail(why);
    throw CommunicationError(store_.failure());
  }

  // The store knows better than a broken connection whose end broke it, but may learn of it a moment later.
  [[noreturn]] void give_up(int peer) {
    for (Deadline deadline = deadline_in(kTellingSeconds); milliseconds_left(deadline) > 0 && store_.failure().empty();)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::string step = progress() ? fmt::format(" of step {}", progress()->report().step) : "";
    fail(fmt::format("[{}] {} on {} lost its connection to {} in {}{}", axis(), name_of(rank()), host_name(),
                     name_of(peer), calls_text(), step));
  }

  StoreClient& store_;
  ProcessOptions options_;
  std::string key_;
  FileDescriptor wake_;                // readable when the run has failed
  std::vector<FileDescriptor> links_;  // by rank
  int subscription_ = 0;
  int splits_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> make_process_world(StoreClient& store, const ProcessOptions& options) {
  Membership membership{.axis = "world", .ranks = {}, .rank = store.rank(), .progress = options.progress};
  for (int rank = 0; rank < store.world(); ++rank) membership.ranks.push_back(rank);
  return std::make_unique<ProcessCommunicator>(store, options, options.key, std::move(membership));
}

}  // namespace tokamak
