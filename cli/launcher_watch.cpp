#include "cli/launcher_watch.h"

#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "base/rank_place.h"
#include "cli/end_times.h"
#include "cli/ranks.h"
#include "cli/streams.h"

namespace tokamak {
namespace {

struct Launcher {
  std::string name;
  pid_t process = 0;
  std::string start;  // start_of it
};

// One that cannot be read, as it belongs to another user, is none.
std::string read(pid_t process, const char* what) {
  std::ifstream file(fmt::format("/proc/{}/{}", process, what));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool has_variable(pid_t process, const std::string& name) {
  return ('\0' + read(process, "environ")).find('\0' + name + '=') != std::string::npos;
}

// What /proc says of a process after its name, which may hold anything: state, parent, ... Empty: it is gone.
std::vector<std::string> fields_of(pid_t process) {
  std::string text = read(process, "stat");
  std::istringstream rest(text.substr(std::min(text.rfind(')') + 1, text.size())));
  return {std::istream_iterator<std::string>(rest), {}};
}
constexpr size_t kState = 0, kParent = 1, kStart = 19;

pid_t parent_of(pid_t process) {
  std::vector<std::string> fields = fields_of(process);
  return fields.size() > kParent ? pid_t(std::atoi(fields[kParent].c_str())) : 0;
}

// When it began, which tells it from a later process of this number. Empty: it is gone, or only its parent does not
// know that yet.
std::string start_of(pid_t process) {
  std::vector<std::string> fields = fields_of(process);
  return fields.size() <= kStart || fields[kState] == "Z" || fields[kState] == "X" ? "" : fields[kStart];
}

// A shell between launcher and rank has the rank's variables, too. 0 where the chain leads to the first process, with
// which all others end, or out of what is seen in a container.
pid_t launcher_of_this(const std::string& mark) {
  pid_t process = ::getppid();
  while (process > 1 && has_variable(process, mark)) process = parent_of(process);
  return process > 1 ? process : 0;
}

void watch(const std::stop_token& over, const Launcher& launcher) {
  constexpr std::chrono::milliseconds kLook{250};
  std::mutex mutex;
  std::condition_variable_any waiting;
  std::unique_lock lock(mutex);
  auto pause = [&](std::chrono::milliseconds time) { waiting.wait_for(lock, over, time, [] { return false; }); };
  while (!over.stop_requested() && start_of(launcher.process) == launcher.start) pause(kLook);
  if (over.stop_requested()) return;
  print_to_stderr(fmt::format("{}{} (process {}), which has started this rank, is gone; so it stops\n", rank_prefix(),
                              launcher.name, launcher.process));
  ::kill(::getpid(), SIGTERM);
  pause(end_times::kWithoutLauncher);
  if (!over.stop_requested()) std::_Exit(128 + SIGTERM);
}

}  // namespace

LauncherWatch::LauncherWatch() {
  auto variable = [](const char* name) -> const char* { return std::getenv(name); };
  std::string mark = launcher_mark(variable);
  if (mark.empty()) return;
  Launcher launcher{.name = rank_place(variable)->launcher, .process = launcher_of_this(mark)};
  launcher.start = start_of(launcher.process);
  if (launcher.start.empty()) return;
  thread_ = std::jthread([=](const std::stop_token& over) { watch(over, launcher); });
}

}  // namespace tokamak
