#include "backend/ranks/gloo.h"
#include "backend/ranks/host_communicator.h"
#include "base/error.h"
#include "base/socket.h"
#include "base/store_client.h"

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <mutex>
#include <thread>

namespace tokamak {
namespace {

using std::chrono::milliseconds;

// Where Gloo's ranks leave their addresses: in our store, below a key.
class PrefixedStore : public gloo::rendezvous::Store {
 public:
  PrefixedStore(StoreClient& store, std::string prefix) : store_(store), prefix_(std::move(prefix)) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    store_.set(prefix_ + key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    std::string value = store_.get(prefix_ + key);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) store_.get(prefix_ + key);
  }

 private:
  StoreClient& store_;
  std::string prefix_;
};

// What ranks tell each other before they exchange data; ranks of one run have one byte order.
struct Header {
  CommunicatorCall call;
  int64_t bytes = 0;
};
static_assert(std::is_trivially_copyable_v<Header>);

enum Slot : uint64_t { kHeaders, kData };

using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

class GlooCommunicator : public HostCommunicator {
 public:
  // `key` is this communicator's own, and the same on all its ranks.
  GlooCommunicator(StoreClient& store, std::shared_ptr<gloo::transport::Device> device, std::string key, double seconds,
                   Membership membership)
      : HostCommunicator(std::move(membership)), store_(store), device_(std::move(device)), key_(std::move(key)),
        seconds_(seconds) {
    if (size() > 1) connect();
    subscription_ = store_.on_failure([this](const std::string&) { interrupt(); });
  }
  ~GlooCommunicator() override { store_.unsubscribe(subscription_); }

  void abort(std::string_view why) override { store_.fail(std::string(why)); }
  void check() override { store_.check(); }

 protected:
  void transfer(std::span<const Outgoing> out, std::span<const Incoming> in) override {
    try {
      meet(out, in);
      move(out, in, kData);
    } catch (const gloo::Exception& error) {
      give_up(error.what());
    }
  }

  std::unique_ptr<Communicator> do_split(Membership membership) override {
    std::string key = fmt::format("{}.{}.{}", key_, splits_++, membership.ranks[0]);
    return std::make_unique<GlooCommunicator>(store_, device_, std::move(key), seconds_, std::move(membership));
  }

 private:
  void connect() {
    PrefixedStore addresses(store_, key_ + "/");
    auto context = std::make_shared<gloo::rendezvous::Context>(rank(), size());
    // Nothing ends this wait for a rank that was there a moment ago: its address is in the store.
    context->setTimeout(std::min(timeout(), milliseconds(20'000)));
    try {
      context->connectFullMesh(addresses, device_);
    } catch (const gloo::Exception& error) {
      give_up(error.what());
    }
    context_ = std::move(context);
  }

  milliseconds timeout() const { return milliseconds(int64_t(seconds_ * 1000)); }

  // Ranks that meet compare their calls.
  void meet(std::span<const Outgoing> out, std::span<const Incoming> in) {
    std::vector<int> peers;
    for (const Outgoing& message : out) peers.push_back(message.to);
    for (const Incoming& message : in)
      if (std::find(peers.begin(), peers.end(), message.from) == peers.end()) peers.push_back(message.from);
    std::vector<Header> mine(peers.size(), Header{call(), 0}), theirs(peers.size());
    for (size_t i = 0; i < out.size(); ++i) mine[i].bytes = out[i].bytes;
    std::vector<Outgoing> headers_out;
    std::vector<Incoming> headers_in;
    for (size_t i = 0; i < peers.size(); ++i) {
      headers_out.push_back({peers[i], &mine[i], sizeof(Header)});
      headers_in.push_back({peers[i], &theirs[i], sizeof(Header)});
    }
    move(headers_out, headers_in, kHeaders);
    for (size_t i = 0; i < peers.size(); ++i) compare(theirs[i], peers[i], in);
  }

  void compare(const Header& theirs, int peer, std::span<const Incoming> in) {
    if (!fit(call(), rank(), theirs.call, peer))
      fail(fmt::format("[{}] expected the same call on all ranks, got {} on {} and {} on {}", axis(), to_string(call()),
                       name_of(rank()), to_string(theirs.call), name_of(peer)));
    for (const Incoming& message : in)
      TOKAMAK_CHECK(message.from != peer || message.bytes == theirs.bytes, "[{}] {}: {} bytes come, not {}", axis(),
                    to_string(call()), theirs.bytes, message.bytes);
  }

  void move(std::span<const Outgoing> out, std::span<const Incoming> in, Slot slot) {
    std::vector<Buffer> sent, received;
    for (const Incoming& message : in) {
      if (message.bytes == 0) continue;
      received.push_back(context_->createUnboundBuffer(message.data, size_t(message.bytes)));
      received.back()->recv(message.from, slot);
    }
    for (const Outgoing& message : out) {
      if (message.bytes == 0) continue;
      sent.push_back(context_->createUnboundBuffer(const_cast<void*>(message.data), size_t(message.bytes)));
      sent.back()->send(message.to, slot);
    }
    for (const Buffer& buffer : received)
      wait(*buffer, &gloo::transport::UnboundBuffer::abortWaitRecv,
           [&] { return buffer->waitRecv(nullptr, timeout()); });
    for (const Buffer& buffer : sent)
      wait(*buffer, &gloo::transport::UnboundBuffer::abortWaitSend,
           [&] { return buffer->waitSend(nullptr, timeout()); });
  }

  // A failure of the run, of which another thread learns, ends the wait.
  template <class Wait>
  void wait(gloo::transport::UnboundBuffer& buffer, void (gloo::transport::UnboundBuffer::*stop)(),
            const Wait& until_done) {
    {
      std::lock_guard lock(waiting_mutex_);
      waiting_ = [&buffer, stop] { (buffer.*stop)(); };
    }
    struct Forget {
      GlooCommunicator& c;
      ~Forget() {
        std::lock_guard lock(c.waiting_mutex_);
        c.waiting_ = nullptr;
      }
    } forget{*this};
    check();
    if (!until_done()) check();
  }
  void interrupt() {
    std::lock_guard lock(waiting_mutex_);
    if (waiting_) waiting_();
  }

  [[noreturn]] void fail(const std::string& why) {
    store_.fail(why);
    throw CommunicationError(store_.failure());
  }

  // The store knows better than a broken link whose end broke it, but may learn of it a moment later.
  [[noreturn]] void give_up(const std::string& what) {
    for (Deadline deadline = deadline_in(3); milliseconds_left(deadline) > 0 && store_.failure().empty();)
      std::this_thread::sleep_for(milliseconds(10));
    fail(fmt::format("[{}] {} lost its link to another rank, or has waited {} s, in {}: {}", axis(), name_of(rank()),
                     seconds_, to_string(call()), what));
  }

  StoreClient& store_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::string key_;
  double seconds_;
  std::shared_ptr<gloo::Context> context_;
  int subscription_ = 0;
  int splits_ = 0;
  std::mutex waiting_mutex_;
  std::function<void()> waiting_;  // ends the wait under way; empty: there is none
};

}  // namespace

bool gloo_is_built() { return true; }

std::unique_ptr<Communicator> make_gloo_world(StoreClient& store, const GlooOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);  // Gloo writes to sockets of ranks that may be gone
  Membership membership{.axis = "world", .ranks = {}, .rank = store.rank()};
  for (int rank = 0; rank < store.world(); ++rank) membership.ranks.push_back(rank);
  gloo::transport::tcp::attr attributes;
  attributes.hostname = options.address;
  std::shared_ptr<gloo::transport::Device> device;
  try {
    device = gloo::transport::tcp::CreateDevice(attributes);
  } catch (const gloo::Exception& error) {
    user_error("[mesh] cannot listen on {} for other ranks: {}", options.address, error.what());
  }
  return std::make_unique<GlooCommunicator>(store, std::move(device), "gloo", options.timeout_seconds,
                                            std::move(membership));
}

}  // namespace tokamak
