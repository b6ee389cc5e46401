#include "base/signals.h"

#include "base/error.h"

#include <atomic>
#include <csignal>

namespace tokamak {
namespace {

// A handler has no argument of ours, so the flag has to be global; the class sees to it that it has one user.
std::atomic<int> received{0};
std::atomic<bool> installed{false};
static_assert(std::atomic<int>::is_always_lock_free, "the handler may only use lock-free atomics");

void on_signal(int number) {
  if (received.exchange(number) != 0 && number == SIGINT) {
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);  // is delivered when this handler returns
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

StopSignal::StopSignal() {
  TOKAMAK_CHECK(!installed.exchange(true), "there is a StopSignal already");
  received = 0;
  install(SIGINT, old_interrupt_);
  install(SIGTERM, old_terminate_);
}

StopSignal::~StopSignal() {
  ::sigaction(SIGINT, &old_interrupt_, nullptr);
  ::sigaction(SIGTERM, &old_terminate_, nullptr);
  installed = false;
}

bool StopSignal::requested() const { return received.load() != 0; }

std::string_view StopSignal::name() const {
  switch (received.load()) {
    case SIGINT: return "SIGINT";
    case SIGTERM: return "SIGTERM";
    default: return {};
  }
}

}  // namespace tokamak
