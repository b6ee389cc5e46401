#include "cli/machine.h"

#include "backend/cpu/cpu_backend.h"
#include "base/parallel.h"
#include "exec/stream.h"

namespace tokamak {

Machine open_machine(const RunConfig& config) {
  set_num_threads(int(config.threads));
  Machine machine;
  Stream stream;  // whose thread takes its OpenMP team with it when it ends; a second team would slow the work that
                  // follows
  stream.submit([&] { machine.target = cpu::measure_target(); });
  stream.wait();
  machine.backend = cpu::make_backend();
  return machine;
}

}  // namespace tokamak
