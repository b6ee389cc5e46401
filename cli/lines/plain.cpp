// Lines as the terminal itself lets them be typed.
#include "cli/typed_line.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

namespace tokamak {

bool read_typed_line(std::string& line) {
  if (::isatty(STDIN_FILENO) == 1) {
    fmt::print("> ");
    std::fflush(stdout);
  }
  return bool(std::getline(std::cin, line));
}

}  // namespace tokamak
