#include "tests/support/run_program.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/support/quick_file.h"

namespace tokamak {

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string content_of(const std::filesystem::path& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

void redirect(int fd, const std::filesystem::path& path, int flags) {
  int file = ::open(path.c_str(), flags, 0600);
  if (file < 0 || ::dup2(file, fd) < 0) ::_exit(126);
}

}  // namespace

RunningProgram::RunningProgram(const std::filesystem::path& folder, std::vector<std::string> arguments,
                               const std::string& input, const ProgramStreams& streams,
                               const std::vector<std::string>& launcher) {
  write_file_quickly(files_ / "in", input);
  arguments.insert(arguments.begin(), TOKAMAK_PROGRAM);
  arguments.insert(arguments.begin(), launcher.begin(), launcher.end());
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  std::filesystem::path in = streams.in, out = streams.out, err = streams.err;
  if (in.empty()) in = files_ / "in";
  if (out.empty()) out = files_ / "out";
  if (err.empty()) err = files_ / "err";
  for (const char* file : {"out", "err"})
    write_file_quickly(files_ / file, "");  // wait_for() may look before the child
  started_ = now();
  process_ = ::fork();
  if (process_ < 0) throw std::runtime_error("cannot fork");
  if (process_ > 0) return;
  redirect(STDIN_FILENO, in, O_RDONLY);
  redirect(STDOUT_FILENO, out, O_WRONLY | O_CREAT | O_TRUNC);
  redirect(STDERR_FILENO, err, O_WRONLY | O_CREAT | O_TRUNC);
  if (::chdir(folder.c_str()) != 0) ::_exit(126);
  ::setenv("OMP_WAIT_POLICY", "passive", 1);  // tests share their cores, and threads that spin would block each other
  ::execvp(pointers[0], pointers.data());
  ::_exit(127);
}

RunningProgram::~RunningProgram() {
  if (waited_) return;
  ::kill(process_, SIGKILL);
  wait();
}

bool RunningProgram::ended() {
  siginfo_t info = {};
  ::waitid(P_PID, id_t(process_), &info, WEXITED | WNOHANG | WNOWAIT);
  return info.si_pid == process_;
}

bool RunningProgram::comes_into(const char* file, const std::string& text, double seconds) {
  double deadline = now() + seconds;
  while (true) {
    bool last = ended() || now() > deadline;  // looked at first, so that the last words are read
    if (content_of(files_ / file).find(text) != std::string::npos) return true;
    if (last) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void RunningProgram::send(int signal_number) { ::kill(process_, signal_number); }

ProgramResult RunningProgram::wait() {
  if (waited_) return result_;
  int status = 0;
  rusage usage = {};
  ::wait4(process_, &status, 0, &usage);
  waited_ = true;
  result_ = {.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
             .out = content_of(files_ / "out"),
             .err = content_of(files_ / "err"),
             .peak_bytes = int64_t(usage.ru_maxrss) * 1024,
             .seconds = now() - started_};
  return result_;
}

ProgramResult run_program(const std::filesystem::path& folder, std::vector<std::string> arguments,
                          const std::string& input, const ProgramStreams& streams) {
  return RunningProgram(folder, std::move(arguments), input, streams).wait();
}

}  // namespace tokamak
