#include "base/bus_error.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstring>

namespace tokamak {

namespace {

// Only what POSIX allows inside of handlers: no allocation, no streams.

void say(const char* text, size_t size) {
  while (size > 0) {
    ssize_t count = ::write(STDERR_FILENO, text, size);
    if (count <= 0) return;
    text += count;
    size -= size_t(count);
  }
}

void say(const char* text) { say(text, std::strlen(text)); }

uintptr_t read_hex(const char*& at) {
  uintptr_t value = 0;
  for (;; ++at) {
    if (*at >= '0' && *at <= '9')
      value = value * 16 + uintptr_t(*at - '0');
    else if (*at >= 'a' && *at <= 'f')
      value = value * 16 + uintptr_t(*at - 'a' + 10);
    else
      return value;
  }
}

/// Whether a line of /proc/self/maps, "begin-end rights offset device inode   path", is of the address; says its path.
bool say_if_mapped(const char* line, uintptr_t address) {
  const char* at = line;
  uintptr_t begin = read_hex(at);
  if (*at++ != '-') return false;
  uintptr_t end = read_hex(at);
  if (address < begin || address >= end) return false;
  const char* path = std::strchr(at, '/');
  say(path ? path : "a file");
  return true;
}

void say_file_of(uintptr_t address) {
  static char line[4096 + 256];
  int maps = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  size_t used = 0;
  for (char c; maps >= 0 && ::read(maps, &c, 1) == 1;) {
    if (c != '\n') {
      if (used + 1 < sizeof line) line[used++] = c;
      continue;
    }
    line[used] = '\0';
    used = 0;
    if (say_if_mapped(line, address)) return;
  }
  say("a file");
}

void on_bus_error(int, siginfo_t* info, void*) {
  say("error: [file] cannot read ");
  say_file_of(reinterpret_cast<uintptr_t>(info->si_addr));
  say(": it was cut short while it was in use, or its disk fails; copy it again, then run again: a training run goes "
      "on "
      "from its last checkpoint\n");
  ::_exit(1);
}

}  // namespace

void explain_bus_errors() {
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_RESETHAND;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace tokamak
