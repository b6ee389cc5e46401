// Where the threads of this process are, for one that seems to hang. Tests: tests/base/thread_stacks_test.cpp.
#pragma once

namespace tokamak {

/// From now on SIGUSR1 makes this process write the stacks of all its threads to standard error, and go on. To be
/// called again is no matter.
void tell_stacks_on_request();

/// Does that now, and waits a moment for threads that do not run. tell_stacks_on_request() comes first.
void tell_stacks();

}  // namespace tokamak
