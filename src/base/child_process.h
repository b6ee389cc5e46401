// A child process that answers requests, for libraries that a damaged file can crash or hang: what happens to it is an
// error here, not the end of the program. Tests: tests/base/child_process_test.cpp.
#pragma once

#include <sys/types.h>

#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "base/file.h"

namespace tokamak {

class ChildProcess {
 public:
  /// Answers a request, in the child. What it throws is thrown by ask(): a UserError as one, others as our bug.
  using Answer = std::function<std::string(std::string_view request)>;

  /// Forks. The child keeps none of the open files, prints nothing, has one thread, and lives as long as this object.
  /// UserErrors begin with `place`: what the child works on. An answer that takes `seconds` counts as a hang.
  ChildProcess(std::string place, Answer answer, int seconds = 30);
  ChildProcess(const ChildProcess&) = delete;
  ~ChildProcess();

  /// The child's answer. A UserError when the child crashes or hangs, then and ever after. For any thread, one at a
  /// time.
  std::string ask(std::string_view request);

 private:
  /// Reads as many bytes, waiting for them until `deadline` (steady, ms); throws the UserError if the child fails.
  void receive(char* out, size_t bytes, int64_t deadline);
  [[noreturn]] void fail(std::string how);

  std::string place_;
  int seconds_;
  FileDescriptor socket_;
  pid_t child_ = -1;
  std::string failure_;  // what befell the child, once something did
  std::mutex mutex_;
};

}  // namespace tokamak
