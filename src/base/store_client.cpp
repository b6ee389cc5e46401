#include "base/store_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>

#include "base/error.h"
#include "base/socket.h"
#include "base/store_server.h"
#include "base/system.h"

namespace tokamak {
namespace {

constexpr double kGraceSeconds = 10;  // in which the store tells that a wait is over

std::string in_milliseconds(double seconds) { return std::to_string(int64_t(seconds * 1000)); }

}  // namespace

StoreClient::StoreClient(Options options)
    : options_(std::move(options)), reader_(kStoreMaxBytes), exceptions_(std::uncaught_exceptions()) {
  join_in_time(deadline_in(options_.join_seconds));
  listener_ = std::thread([this] { listen(); });
}

StoreClient::~StoreClient() {
  {
    std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  if (std::uncaught_exceptions() == exceptions_) send({"leave"});
  ::shutdown(socket_.get(), SHUT_RDWR);
  listener_.join();
}

// A store that strangers besiege may drop a connection before it is known whose it is.
void StoreClient::join_in_time(Deadline deadline) {
  constexpr auto kLongestPause = std::chrono::milliseconds(1000);
  for (auto pause = std::chrono::milliseconds(20);; pause = std::min(2 * pause, kLongestPause)) {
    socket_ = connect_to(options_.host, options_.port, deadline);
    watch_connection(socket_.get());
    reader_ = FrameReader(kStoreMaxBytes);
    if (join()) return;
    if (milliseconds_left(deadline) == 0)
      user_error(
          "[rendezvous] expected an answer of rank 0 from port {} of {}, got none: it drops connections; see "
          "what listens there",
          options_.port, options_.host);
    std::this_thread::sleep_for(pause);
  }
}

// False when the connection is dropped.
bool StoreClient::join() {
  std::optional<Frame> hello = receive_one();
  if (!hello) return false;
  if (hello->size() != 2 || (*hello)[0] != kStoreProtocol)
    user_error(
        "[rendezvous] expected rank 0 of this version of Tokamak on port {} of {}, got something else; set "
        "TOKAMAK_PORT "
        "to a port that is free",
        options_.port, options_.host);
  std::string nonce = random_nonce(), rank = std::to_string(options_.rank), world = std::to_string(options_.world);
  std::string host = host_name(), who = encode_frame({rank, world, host});
  send({"join", nonce, rank, world, host, store_proof(options_.token, "client", (*hello)[1], nonce, who)});
  std::optional<Frame> reply = receive_one();
  if (!reply) return false;
  if (reply->size() == 2 && (*reply)[0] == "refused") throw UserError((*reply)[1]);
  if (*reply != Frame{"joined", store_proof(options_.token, "server", (*hello)[1], nonce, who)})
    user_error("[rendezvous] expected rank 0 of this run on port {} of {}, got one that does not know its token",
               options_.port, options_.host);
  return true;
}

// Nothing when the connection breaks.
std::optional<Frame> StoreClient::receive_one() {
  constexpr double kAnswerSeconds = 10;
  for (Deadline deadline = deadline_in(kAnswerSeconds);;) {
    if (std::optional<Frame> frame = reader_.next()) return frame;
    pollfd ready = {socket_.get(), POLLIN, 0};
    int count = ::poll(&ready, 1, milliseconds_left(deadline));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      user_error("[rendezvous] expected an answer of rank 0 from port {} of {}, got none; see what listens there",
                 options_.port, options_.host);
    char bytes[4096];
    ssize_t got = ::recv(socket_.get(), bytes, sizeof bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    reader_.append({bytes, size_t(got)});
  }
}

void StoreClient::send(const Frame& frame) {
  std::lock_guard lock(sending_);
  send_all(socket_.get(), encode_frame(frame));  // a broken connection is noticed where it is listened to
}

void StoreClient::listen() {
  try {
    while (true) {
      while (std::optional<Frame> frame = reader_.next()) handle(std::move(*frame));
      char bytes[65536];
      ssize_t got = ::recv(socket_.get(), bytes, sizeof bytes, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      reader_.append({bytes, size_t(got)});
    }
  } catch (const UserError&) {
    // As if the connection broke.
  }
  fail_locally(fmt::format("rank 0 on {} is gone: the connection to its store broke", options_.host), true);
}

void StoreClient::handle(Frame frame) {
  if (frame.size() == 2 && frame[0] == "failed") return fail_locally(frame[1]);
  if (frame.size() == 2 && frame[0] == "where") return answer_where(frame[1]);
  if (frame.size() < 2 || frame[0] != "done") user_error("[rendezvous] expected an answer");
  std::lock_guard lock(mutex_);
  auto found = replies_.find(std::atoll(frame[1].c_str()));
  if (found == replies_.end()) return;
  frame.erase(frame.begin(), frame.begin() + 2);
  found->second = std::move(frame);
  changed_.notify_all();
}

void StoreClient::fail_locally(const std::string& reason, bool lost_leader) {
  std::lock_guard calling(calling_);
  {
    std::lock_guard lock(mutex_);
    if (leaving_ || !failure_.empty()) return;
    failure_ = reason;
    lost_leader_ = lost_leader;
    changed_.notify_all();
  }
  for (auto& [id, call] : subscribers_) call(reason);
}

void StoreClient::answer_where(const std::string& round) {
  std::function<std::string()> answer;
  {
    std::lock_guard lock(mutex_);
    answer = roll_answer_;
  }
  send({"here", round, answer ? answer() : ""});
}

// {kind, request, key, rest ...}: the request's number is put in here.
std::optional<Frame> StoreClient::try_ask(const std::string& kind, const std::string& key, Frame rest, double seconds) {
  int64_t id;
  {
    std::lock_guard lock(mutex_);
    id = requests_++;
    replies_[id];
  }
  rest.insert(rest.begin(), {kind, std::to_string(id), key});
  send(rest);
  std::unique_lock lock(mutex_);
  auto deadline = deadline_in(seconds);
  bool in_time = changed_.wait_until(lock, deadline, [&] { return replies_[id] || !failure_.empty(); });
  std::optional<Frame> reply = std::move(replies_.extract(id).mapped());
  if (!reply && in_time) throw CommunicationError(failure_);
  return reply;
}

Frame StoreClient::ask(const std::string& kind, const std::string& key, Frame rest, double seconds) {
  if (std::optional<Frame> reply = try_ask(kind, key, std::move(rest), seconds + kGraceSeconds)) return *reply;
  throw CommunicationError(fmt::format("[rendezvous] rank 0 has not answered '{} {}' in {} s", kind, key, seconds));
}

void StoreClient::answer_roll_call(std::function<std::string()> answer) {
  std::lock_guard lock(mutex_);
  roll_answer_ = std::move(answer);
}

std::vector<std::optional<std::string>> StoreClient::roll_call(double seconds) {
  constexpr double kOnItsWay = 0.3;  // of the store's own answer
  std::vector<std::optional<std::string>> answers(size_t(world()), "");
  std::optional<Frame> reply = try_ask("ask", "", {in_milliseconds(seconds)}, seconds + kOnItsWay);
  if (!reply) return answers[0].reset(), answers;
  TOKAMAK_CHECK(reply->size() == answers.size(), "{} answers of {} ranks", reply->size(), answers.size());
  for (size_t rank = 0; rank < answers.size(); ++rank) {
    const std::string& answer = (*reply)[rank];
    answers[rank] = answer.starts_with("+") ? std::optional(answer.substr(1)) : std::nullopt;
  }
  return answers;
}

void StoreClient::set(const std::string& key, const std::string& value) {
  ask("set", key, {value}, options_.timeout_seconds);
}

std::string StoreClient::get(const std::string& key) { return value_of("get", key); }

std::string StoreClient::take(const std::string& key) { return value_of("take", key); }

std::string StoreClient::value_of(const std::string& kind, const std::string& key) {
  Frame reply = ask(kind, key, {in_milliseconds(options_.timeout_seconds)}, options_.timeout_seconds);
  TOKAMAK_CHECK(reply.size() == 1, "a value of {} texts", reply.size());
  return reply[0];
}

std::vector<std::string> StoreClient::exchange(const std::string& key, int index, int size, const std::string& value,
                                               std::optional<double> seconds) {
  double most = seconds.value_or(options_.timeout_seconds);
  Frame reply = ask("exchange", key, {in_milliseconds(most), std::to_string(index), std::to_string(size), value}, most);
  TOKAMAK_CHECK(reply.size() == size_t(size), "{} texts of {} ranks", reply.size(), size);
  return reply;
}

void StoreClient::fail(const std::string& reason) {
  send({"fail", reason});
  fail_locally(reason);
}

std::string StoreClient::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

bool StoreClient::has_lost_leader() const {
  std::lock_guard lock(mutex_);
  return lost_leader_;
}

void StoreClient::check() const {
  std::lock_guard lock(mutex_);
  if (!failure_.empty()) throw CommunicationError(failure_);
}

int StoreClient::on_failure(std::function<void(const std::string& reason)> call) {
  std::lock_guard calling(calling_);
  std::string reason = failure();
  if (!reason.empty()) call(reason);
  subscribers_[++subscriptions_] = std::move(call);
  return subscriptions_;
}

void StoreClient::unsubscribe(int subscription) {
  std::lock_guard calling(calling_);
  subscribers_.erase(subscription);
}

std::string StoreClient::proof(const std::string& role, const std::string& listener_nonce,
                               const std::string& caller_nonce, const std::string& who) const {
  return store_proof(options_.token, role, listener_nonce, caller_nonce, who);
}

std::string StoreClient::address() const { return local_address(socket_.get()); }

}  // namespace tokamak
