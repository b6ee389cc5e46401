// A line that somebody types: on a terminal with editing (arrow keys, Ctrl-R, words) and the lines before it, where
// libedit was found; from pipes and files as it comes. Test: tests/e2e/optional/typed_line_test.cpp.
#pragma once

#include <string>

namespace tokamak {

/// Reads one line, without its end, behind a prompt "> " on a terminal. False at the end of the input; an empty line is
/// none.
bool read_typed_line(std::string& line);

}  // namespace tokamak
