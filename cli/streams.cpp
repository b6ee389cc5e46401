#include "cli/streams.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fmt/core.h>

#include "base/printable.h"

namespace tokamak {

bool takes_escape_codes(int descriptor) {
  const char* terminal = std::getenv("TERM");
  return ::isatty(descriptor) == 1 && terminal && *terminal && std::string_view(terminal) != "dumb";
}

void print_to_stderr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void print_warning(std::string_view text) { print_to_stderr(fmt::format("warning: {}\n", printable(text))); }

void drop_output_without_reader() {
  if (errno == EPIPE && !std::freopen("/dev/null", "w", stdout)) std::clearerr(stdout);
}

int finish_output(int status) {
  errno = 0;
  bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (written) return status;
  print_to_stderr(
      fmt::format("error: [output] expected to write all of standard output, lost some of it{}; run the "
                  "command again with an output that can be written\n",
                  errno != 0 ? fmt::format(" ({})", std::strerror(errno)) : ""));
  return status == 0 ? 1 : status;
}

}  // namespace tokamak
