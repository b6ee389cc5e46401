// A rank ends when whoever launched it is gone: kill -9 of mpirun or of torchrun's agent leaves their ranks running,
// each of them well, but nobody to stop them.
#pragma once

#include <thread>

namespace tokamak {

/// While it lives: once the torchrun, mpirun or srun that has started this process is gone, it is told to stop as by
/// SIGTERM, and ended if it still runs two and a half seconds later. Does nothing in a process that none of them has
/// started, such as one of a shell, which may go on without it (nohup).
class LauncherWatch {
 public:
  LauncherWatch();

 private:
  std::jthread thread_;
};

}  // namespace tokamak
