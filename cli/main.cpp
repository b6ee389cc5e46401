// The program: finds the command, runs it, and turns errors into messages and exit statuses. 0: done; 1: a mistake in
// what was asked for; 70: a bug of ours; 128 + its number: a signal ended the work early.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <system_error>

#include "backend/cuda/cuda_backend.h"
#include "base/bus_error.h"
#include "base/communication_error.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/system.h"
#include "cli/commands.h"
#include "cli/local_ranks.h"
#include "cli/ranks.h"
#include "cli/streams.h"
#include "cli/supervisor.h"
#include "cli/version.h"
#include "config/suggest.h"
#include "config/toml.h"

namespace tokamak {

namespace {

constexpr int kUserErrorStatus = 1;
constexpr int kInternalErrorStatus = 70;  // EX_SOFTWARE of sysexits.h
constexpr const char* kMoreThreads =
    "allow more threads (ulimit -u, the container's limit of processes) or more memory, or ask for fewer with "
    "--threads";

/// Removes `option` from the arguments before "--"; true when it was there.
bool take_option(std::vector<std::string>& arguments, std::initializer_list<std::string_view> spellings) {
  auto end = std::find(arguments.begin(), arguments.end(), "--");
  auto found = std::find_if(arguments.begin(), end, [&](const std::string& argument) {
    return std::find(spellings.begin(), spellings.end(), argument) != spellings.end();
  });
  if (found == end) return false;
  arguments.erase(found);
  return true;
}

/// `tokamak train help` is `tokamak train --help`, unless there is something of that name to train on.
void read_help_word(std::vector<std::string>& arguments) {
  constexpr const char* kWord = "help";
  if (arguments.size() == 1 && arguments[0] == kWord && !std::filesystem::exists(kWord)) arguments[0] = "--help";
}

/// A name of two words takes both from the arguments: `tokamak data inspect`.
std::string take_name(std::vector<std::string>& arguments) {
  std::string name = arguments.front();
  arguments.erase(arguments.begin());
  read_help_word(arguments);
  if (arguments.empty() || arguments.front().starts_with("-") || group_help(name).empty()) return name;
  name += " " + arguments.front();
  arguments.erase(arguments.begin());
  read_help_word(arguments);
  return name;
}

Command find_command(const std::string& name) {
  std::vector<std::string> known;
  for (Command& command : all_commands()) {
    if (command.name == name) return command;
    if (!command.hidden) known.push_back(command.name);
  }
  user_error("[tokamak] expected a command, got '{}'{}; `tokamak --help` lists the commands", name,
             did_you_mean(name, known));
}

/// Between loops libgomp's threads spin for milliseconds, which costs a busy machine dearly. Some microseconds are
/// enough for the small loops between generation's matmuls, where to sleep and wake took a third of a token's time. It
/// reads its settings before main(), so the program starts itself once more, unless the user has chosen.
void let_threads_sleep(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
  ::setenv("GOMP_SPINCOUNT", "3000", 1);
  ::execv("/proc/self/exe", argv);  // where that fails, the program just goes on
}

/// `argv` is what the program was started with.
int run_command(std::vector<std::string> arguments, char** argv) {
  std::string name = take_name(arguments);
  if (std::string help = group_help(name); !help.empty()) {
    bool wanted = take_option(arguments, {"--help", "-h"});
    wanted ? fmt::print("{}", help) : print_to_stderr(help);
    return wanted ? 0 : kUserErrorStatus;
  }
  Command command = find_command(name);
  if (take_option(arguments, {"--help", "-h"})) {
    fmt::print("{}", command_help(command));
    return 0;
  }
  if (command.print_config && take_option(arguments, {"--print-config", "--print_config"})) {
    command.print_config(arguments);
    return 0;
  }
  if (take_option(arguments, {"--print-config", "--print_config"}))
    user_error(
        "[--print-config] expected a command that takes a run file, got {}; `tokamak {} --help` lists its options",
        name, name);
  let_threads_sleep(argv);  // not before: what only prints starts once
  return command.run(arguments);
}

int run_program(char** argv) {
  std::vector<std::string> arguments;
  for (char** argument = argv + 1; *argument; ++argument) arguments.emplace_back(*argument);
  if (arguments.empty()) {
    print_to_stderr(program_help());
    return kUserErrorStatus;
  }
  std::string name = arguments.front();
  if (name == "help" && arguments.size() == 2 && arguments[1] == kNamesTopic) {
    fmt::print("{}", names_help());
    return 0;
  }
  if (name == "help" && arguments.size() > 1) {
    arguments.erase(arguments.begin());
    arguments.push_back("--help");
    return run_command(arguments, argv);
  }
  if (name == "--help" || name == "-h" || name == "help") {
    fmt::print("{}", program_help());
    return 0;
  }
  if (name == "--version") {
    fmt::print("tokamak {}\nCUDA: {}\n", kVersion, cuda::library_versions());
    return 0;
  }
  return run_command(std::move(arguments), argv);
}

/// With the rank's number where a launcher has started several and this is not the first of them.
void complain(const std::string& text) { print_to_stderr(rank_prefix() + text); }

/// Runs the program and says what went wrong; the exit status.
int run_and_explain(char** argv) {
  try {
    return run_program(argv);
  } catch (const UserError& error) {
    complain(fmt::format("error: {}\n", printable(error.what())));
  } catch (const ToldByLeader&) {
    // Another process has the word.
  } catch (const CommunicationError& error) {
    complain(fmt::format("error: {}\n", printable(error.what())));
    return lost_ranks_status();
  } catch (const std::filesystem::filesystem_error& error) {
    // Of files that are merely looked at: a folder that must not be entered, a link that leads in circles.
    complain(fmt::format("error: [file] cannot use {}: {}; check the path and its permissions\n",
                         printable(error.path1().string()), error.code().message()));
  } catch (const std::bad_alloc&) {
    complain(
        "error: [memory] expected more free memory; use a smaller model, batch or context, or set "
        "compile.memory_budget_gib\n");
  } catch (const std::system_error& error) {
    if (std::ferror(stdout)) return 0;  // fmt's: finish_output() tells it
    complain(fmt::format("error: [system] cannot go on: {}; {}\n", error.code().message(),
                         error.code() == std::errc::resource_unavailable_try_again
                             ? kMoreThreads
                             : "check what the system allows this program"));
  } catch (const std::exception& error) {
    complain(fmt::format("{}\nThis is a bug in tokamak {}. Please report it with the line above and the command.\n",
                         printable(error.what()), kVersion));
    return kInternalErrorStatus;
  }
  return kUserErrorStatus;
}

/// libgomp ends the process where it gets no thread, and says no more than that.
void explain_foreign_exit() {
  complain(fmt::format("error: [threads] cannot go on: expected to start a thread, got none; {}\n", kMoreThreads));
}

}  // namespace

void print_config(const std::vector<Field>& fields) { fmt::print("{}", printable(print_toml(fields))); }

}  // namespace tokamak

int main(int, char** argv) {
  using namespace tokamak;
  end_with_leader();
  stop_with_supervisor();
  raise_open_file_limit();
  explain_bus_errors();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grows beyond its limit (ulimit -f) is an error with a message
  static std::atomic<bool> returned = false;
  std::atexit([] {
    if (!returned) explain_foreign_exit();
  });
  int status = finish_output(run_and_explain(argv));
  returned = true;
  return status;
}
