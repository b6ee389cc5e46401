// Lines that libedit lets be edited.
#include "cli/typed_line.h"

#include <editline/readline.h>
#include <unistd.h>

#include <clocale>
#include <cstdlib>
#include <iostream>
#include <memory>

namespace tokamak {

bool read_typed_line(std::string& line) {
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1) return bool(std::getline(std::cin, line));
  // Letters beyond ASCII are typed as the terminal's locale has them.
  static const char* const locale = std::setlocale(LC_CTYPE, "");
  if (!locale) std::setlocale(LC_CTYPE, "C.UTF-8");
  auto free_line = [](char* typed) { std::free(typed); };
  std::unique_ptr<char, decltype(free_line)> typed(::readline("> "), free_line);
  if (!typed) return false;
  line = typed.get();
  if (!line.empty()) ::add_history(line.c_str());
  return true;
}

}  // namespace tokamak
