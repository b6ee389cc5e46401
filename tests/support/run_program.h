// Runs the tokamak program as a user would: arguments, standard input, a working folder, signals.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace tokamak {

/// How a process ended and what it said.
struct ProgramResult {
  int status = 0;  // exit status; minus the signal's number when a signal ended it
  std::string out, err;
  int64_t peak_bytes = 0;  // most resident memory
  double seconds = 0;      // wall time
};

/// Where a program's streams lead; empty: to files that ProgramResult shows, and from one that holds the input.
struct ProgramStreams {
  std::filesystem::path out = {}, err = {}, in = {};
};

/// The program under way. Killed by the destructor if nobody waited for it.
class RunningProgram {
 public:
  /// `folder` becomes its working folder. `launcher`: another program, found by PATH, with the arguments that come
  /// before this program's path.
  RunningProgram(const std::filesystem::path& folder, std::vector<std::string> arguments, const std::string& input = "",
                 const ProgramStreams& streams = {}, const std::vector<std::string>& launcher = {});
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;
  ~RunningProgram();

  /// True as soon as standard output holds `text`; false when the program ended without it or a minute has passed.
  bool wait_for(const std::string& text) { return comes_into("out", text); }
  /// The same of standard error, with `seconds` instead of the minute.
  bool wait_for_error(const std::string& text, double seconds = 60) { return comes_into("err", text, seconds); }
  void send(int signal_number);
  ProgramResult wait();

 private:
  bool ended();
  bool comes_into(const char* file, const std::string& text, double seconds = 60);

  TemporaryFolder files_;  // standard input, output and error
  pid_t process_ = -1;
  bool waited_ = false;
  double started_ = 0;
  ProgramResult result_;
};

/// Runs it to the end.
ProgramResult run_program(const std::filesystem::path& folder, std::vector<std::string> arguments,
                          const std::string& input = "", const ProgramStreams& streams = {});

}  // namespace tokamak
