#include "base/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <new>

#include "base/error.h"

namespace tokamak {

namespace {

/// Before each request and answer. A request's kind says nothing.
struct Header {
  enum Kind : uint64_t { kAnswer, kUserError, kNoMemory, kInternalError };
  uint64_t kind = kAnswer;
  uint64_t bytes = 0;
};

int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}

/// False if the other end is gone.
bool send_all(int socket, const void* data, size_t bytes) {
  for (auto at = static_cast<const char*>(data); bytes > 0;) {
    ssize_t sent = ::send(socket, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= size_t(sent);
  }
  return true;
}

bool receive_all(int socket, void* data, size_t bytes) {
  for (auto at = static_cast<char*>(data); bytes > 0;) {
    ssize_t got = ::recv(socket, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= size_t(got);
  }
  return true;
}

bool send_message(int socket, uint64_t kind, std::string_view text) {
  Header header{kind, text.size()};
  return send_all(socket, &header, sizeof header) && send_all(socket, text.data(), text.size());
}

/// Files of the parent (locks among them) are not the child's; its crash is silent; Ctrl-C is the parent's matter.
void leave_parent(int socket) {
  ::dup2(socket, STDIN_FILENO);
  int nothing = ::open("/dev/null", O_WRONLY);
  for (int output : {STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, output);
  ::close_range(STDERR_FILENO + 1, ~0u, 0);
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::signal(number, SIG_IGN);
  for (int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  rlimit no_core = {0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
}

bool answer_one(int socket, const ChildProcess::Answer& answer, const std::string& request) {
  try {
    return send_message(socket, Header::kAnswer, answer(request));
  } catch (const UserError& error) {
    return send_message(socket, Header::kUserError, error.what());
  } catch (const std::bad_alloc&) {
    return send_message(socket, Header::kNoMemory, "");
  } catch (const std::exception& error) {
    return send_message(socket, Header::kInternalError, error.what());
  }
}

/// Until the parent closes its end. No destructor of the parent's objects runs here.
[[noreturn]] void serve(const ChildProcess::Answer& answer) {
  std::string request;
  for (Header header; receive_all(STDIN_FILENO, &header, sizeof header);) {
    request.resize(header.bytes);
    if (!receive_all(STDIN_FILENO, request.data(), request.size())) break;
    if (!answer_one(STDIN_FILENO, answer, request)) break;
  }
  ::_exit(0);
}

}  // namespace

ChildProcess::ChildProcess(std::string place, Answer answer, int seconds)
    : place_(std::move(place)), seconds_(seconds) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    user_error("{}: cannot connect a process that reads it: {}; raise the limit of open files", place_,
               std::strerror(errno));
  socket_ = FileDescriptor(ends[0]);
  FileDescriptor theirs(ends[1]);
  child_ = ::fork();
  if (child_ < 0)
    user_error("{}: cannot start a process that reads it: {}; raise the limit of processes (ulimit -u)", place_,
               std::strerror(errno));
  if (child_ > 0) return;
  leave_parent(theirs.get());
  serve(answer);
}

ChildProcess::~ChildProcess() {
  if (child_ <= 0) return;
  ::kill(child_, SIGKILL);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void ChildProcess::fail(std::string how) {
  failure_ = std::move(how);
  user_error("{}: expected a file that can be read, got one {}; it is damaged: copy it again", place_, failure_);
}

void ChildProcess::receive(char* out, size_t bytes, int64_t deadline) {
  while (bytes > 0) {
    pollfd ready = {socket_.get(), POLLIN, 0};
    int64_t left = deadline - now_ms();
    int count = left > 0 ? ::poll(&ready, 1, int(left)) : 0;
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) fail(fmt::format("on which its library hangs (no answer in {} s)", seconds_));
    ssize_t got = ::recv(socket_.get(), out, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail("on which its library crashes");
    out += got;
    bytes -= size_t(got);
  }
}

std::string ChildProcess::ask(std::string_view request) {
  std::lock_guard lock(mutex_);
  if (!failure_.empty()) fail(failure_);
  int64_t deadline = now_ms() + int64_t(seconds_) * 1000;
  if (!send_message(socket_.get(), Header::kAnswer, request)) fail("on which its library crashes");
  Header header;
  receive(reinterpret_cast<char*>(&header), sizeof header, deadline);
  std::string text(header.bytes, '\0');
  receive(text.data(), text.size(), deadline);
  if (header.kind == Header::kUserError) throw UserError(text);
  if (header.kind == Header::kNoMemory)
    user_error(
        "{}: expected parts that fit into memory, got one that does not; it is damaged, or its parts are too large",
        place_);
  TOKAMAK_CHECK(header.kind == Header::kAnswer, "the process that reads {}: {}", place_, text);
  return text;
}

}  // namespace tokamak
