#include "cli/machine.h"

#include "backend/cpu/cpu_backend.h"
#include "base/parallel.h"

namespace tokamak {

Machine open_machine(const RunConfig& config) {
  set_num_threads(int(config.threads));
  return {cpu::measure_target(), cpu::make_backend()};
}

}  // namespace tokamak
