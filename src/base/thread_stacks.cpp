#include "base/thread_stacks.h"

#include <dirent.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace tokamak {
namespace {

// What follows runs in signal handlers: it calls nothing but the system, and backtrace, which has been loaded before.

std::atomic_flag speaks = ATOMIC_FLAG_INIT;  // a thread does: their lines must not mix
std::atomic<int> silent = 0;                 // threads that were asked and have not spoken

void pause_for(long nanoseconds) {
  timespec time{0, nanoseconds};
  ::nanosleep(&time, nullptr);
}

void write_out(const char* text) {
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) {
    // Nobody listens.
  }
}

void write_out(int number) {
  std::array<char, 16> digits{};
  std::to_chars(digits.data(), digits.data() + digits.size() - 1, number);
  write_out(digits.data());
}

void tell_own_stack() {
  constexpr int kMost = 64;
  std::array<void*, kMost> frames;
  std::array<char, 16> name{};
  while (speaks.test_and_set()) pause_for(100'000);
  ::prctl(PR_GET_NAME, name.data());
  write_out("thread ");
  write_out(int(::syscall(SYS_gettid)));
  write_out(" (");
  write_out(name.data());
  write_out("):\n");
  ::backtrace_symbols_fd(frames.data(), ::backtrace(frames.data(), kMost), STDERR_FILENO);
  --silent;
  speaks.clear();
}

// Calls `use` with the number of every thread of this process but the calling one.
template <class Use>
void for_other_threads(const Use& use) {
  struct Entry {
    ino64_t inode;
    off64_t next;
    unsigned short length;
    unsigned char type;
    char name[1];
  };
  alignas(Entry) std::array<char, 4096> buffer;
  int folder = ::open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (long count; folder >= 0 && (count = ::syscall(SYS_getdents64, folder, buffer.data(), buffer.size())) > 0;)
    for (long at = 0; at < count; at += reinterpret_cast<Entry*>(buffer.data() + at)->length) {
      int thread = std::atoi(reinterpret_cast<Entry*>(buffer.data() + at)->name);
      if (thread > 0 && thread != int(::syscall(SYS_gettid))) use(thread);
    }
  if (folder >= 0) ::close(folder);
}

void ask_others() {
  for_other_threads([](int thread) {
    ++silent;
    if (::syscall(SYS_tgkill, ::getpid(), thread, SIGUSR1) != 0) --silent;
  });
}

// One that comes from this process itself was sent by ask_others() to this thread.
void on_stack_signal(int, siginfo_t* info, void*) {
  int error = errno;
  if (info->si_code != SI_TKILL || info->si_pid != ::getpid()) {
    write_out("stacks of process ");
    write_out(int(::getpid()));
    write_out(":\n");
    ask_others();
    ++silent;
  }
  tell_own_stack();
  errno = error;
}

}  // namespace

void tell_stacks_on_request() {
  std::array<void*, 4> frames;
  ::backtrace(frames.data(), int(frames.size()));  // loads what it needs
  struct sigaction action = {};
  action.sa_sigaction = on_stack_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  ::sigaction(SIGUSR1, &action, nullptr);
}

void tell_stacks() {
  constexpr int kTicks = 50;
  constexpr long kTick = 10'000'000;
  ask_others();
  for (int tick = 0; tick < kTicks && silent > 0; ++tick) pause_for(kTick);
}

}  // namespace tokamak
