// This program as another process: a rank of its run, or the run again.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace tokamak {

/// Starts this program again, with the same arguments. `variables` ("NAME=value") go before those of its environment.
/// 0, or the system's number of what is wrong.
int start_again(std::vector<std::string> variables, pid_t& process);

/// "was ended by signal 9 (Killed)", "ended with status 1": of what waitpid tells.
std::string describe_end(int status);

}  // namespace tokamak
