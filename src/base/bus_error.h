// What reads past the end of a mapped file, because someone has cut the file short or its disk fails, gets SIGBUS: the
// end of the process, of which nothing can be saved, but not without a word. Tests: tests/base/bus_error_test.cpp.
#pragma once

namespace tokamak {

/// From now on such a process ends with exit status 1 and a message that names the file.
void explain_bus_errors();

}  // namespace tokamak
