#include "cli/start_again.h"

#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "base/file.h"

namespace tokamak {
namespace {

// This program's arguments, as the system has them.
std::vector<std::string> own_arguments() {
  std::vector<std::string> arguments;
  std::string text = read_file("/proc/self/cmdline");
  for (size_t at = 0; at < text.size(); at = text.find('\0', at) + 1) arguments.emplace_back(text.c_str() + at);
  return arguments;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  return all;
}

}  // namespace

int start_again(std::vector<std::string> variables, pid_t& process) {
  std::vector<std::string> arguments = own_arguments();
  std::vector<char*> argv = pointers(arguments), environment = pointers(variables);  // the first of a name counts
  argv.push_back(nullptr);
  for (char** old = environ; *old; ++old) environment.push_back(*old);
  environment.push_back(nullptr);
  return ::posix_spawn(&process, "/proc/self/exe", nullptr, nullptr, argv.data(), environment.data());
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("was ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("ended with status {}", WEXITSTATUS(status));
}

}  // namespace tokamak
