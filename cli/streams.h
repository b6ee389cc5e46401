// Standard output and standard error when they cannot be written: a full disk, a reader or a terminal that is gone.
#pragma once

#include <string_view>

namespace tokamak {

/// Is this descriptor a terminal that can move its cursor? Not with TERM=dumb, as in Emacs' shell and many CI logs.
bool takes_escape_codes(int descriptor);

/// Writes to standard error. Where that fails, nothing is left to tell it with, and the work goes on.
void print_to_stderr(std::string_view text);

/// "warning: " and the text, as a terminal may show it, as a line of standard error.
void print_warning(std::string_view text);

/// To be called after a failed write to standard output: when nobody reads it any more (`| head`), what is still
/// written there is dropped from now on and counts as written.
void drop_output_without_reader();

/// Ends a command's output: `status`, or 1 with a message when some of the output was lost and the status was 0.
int finish_output(int status);

}  // namespace tokamak
