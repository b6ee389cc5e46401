// Files that may not be read. Root reads everything, so tests that run as root must give up that power first.
#pragma once

#include <linux/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <thread>

namespace tokamak {

/// Runs `action`, in which every program that it starts obeys the permissions of files. False if that cannot be had
/// here; then nothing was run.
template <typename Action>
bool with_permissions_obeyed(Action&& action) {
  bool obeyed = false;
  // What a program may do once it is executed belongs to the thread that starts it.
  std::thread([&] {
    obeyed = ::geteuid() != 0 || (::prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0) == 0 &&
                                  ::prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH, 0, 0, 0) == 0);
    if (obeyed) action();
  }).join();
  return obeyed;
}

}  // namespace tokamak
