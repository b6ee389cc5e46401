#include "base/signals.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>

#include "base/error.h"

namespace tokamak {
namespace {

// A handler has no argument of ours, so these have to be global; the class sees to it that they have one user.
std::atomic<int> received{0};
std::atomic<int64_t> received_at{0};  // milliseconds of a clock
std::atomic<bool> installed{false};
std::string_view notice;  // written before any handler is installed
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free,
              "the handler may only use lock-free atomics");
constexpr int64_t kSameRequest = 1000;  // milliseconds

int64_t clock_milliseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

void on_signal(int number) {
  int first = 0;
  if (received.compare_exchange_strong(first, number)) {
    int before = errno;
    received_at = clock_milliseconds();
    if (::write(STDERR_FILENO, notice.data(), notice.size()) < 0) errno = before;  // nobody reads it: the flag counts
  } else if (number == SIGINT || clock_milliseconds() - received_at > kSameRequest) {
    std::signal(number, SIG_DFL);
    std::raise(number);  // is delivered when this handler returns
  }
}

void install(int number, struct sigaction& old) {
  ::sigaction(number, nullptr, &old);
  if (old.sa_handler == SIG_IGN) return;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // no read or write of ours has to expect it
  ::sigemptyset(&action.sa_mask);
  ::sigaction(number, &action, nullptr);
}

}  // namespace

StopSignal::StopSignal(std::string_view text) {
  TOKAMAK_CHECK(!installed.exchange(true), "there is a StopSignal already");
  received = 0;
  notice = text;
  for (Old& old : old_) install(old.number, old.action);
}

StopSignal::~StopSignal() {
  for (Old& old : old_) ::sigaction(old.number, &old.action, nullptr);
  installed = false;
}

bool StopSignal::requested() const { return received.load() != 0; }

std::string_view StopSignal::name() const {
  switch (received.load()) {
    case SIGINT: return "SIGINT";
    case SIGTERM: return "SIGTERM";
    case SIGHUP: return "SIGHUP";
    default: return {};
  }
}

int stopped_status() {
  int number = received.load();
  return number == 0 ? 0 : 128 + number;
}

}  // namespace tokamak
