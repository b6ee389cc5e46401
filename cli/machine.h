// The machine that a command runs on: its backend and its measured rates.
#pragma once

#include "backend/backend.h"
#include "graph/platform.h"

#include <memory>
#include <string>
#include <thread>

namespace tokamak {

struct RunConfig;
namespace cuda {
class KernelCompiler;
class EarlyCode;
}  // namespace cuda

struct Machine {
  Platform platform;
  std::unique_ptr<Backend> backend;
  bool is_gpu = false;
  std::string versions;  // of driver and libraries; empty for the CPU
};

/// Whether config.device names a GPU, and the name of one of them. UserError when it names nothing that there is.
bool is_gpu_device(const RunConfig& config);
std::string gpu_name(int ordinal);

/// A model that is only used has nothing to choose by the rates of the CPU: typical ones will do.
enum class CpuRates : uint8_t { kMeasured, kTypical };

/// Begins the GPU that a run of one rank will open, beside what this thread does until then, and hides the others from
/// the process. Nothing on a CPU, or where it is not the first GPU. To be called before there are other threads.
std::jthread begin_machine(const std::string& device);

/// The device code of a run's step, compiled while the driver begins the GPU: a run of one rank has its first step the
/// earlier on a machine that has not compiled it before. Nothing where begin_machine does nothing; what goes wrong is
/// not told.
class EarlyStep {
 public:
  explicit EarlyStep(const RunConfig& config);
  ~EarlyStep();  // waits for what is under compilation, unless a backend has the compiler
  EarlyStep(const EarlyStep&) = delete;
  EarlyStep& operator=(const EarlyStep&) = delete;
  /// Asks for no more: whoever has opened the machine asks itself.
  void stop();
  /// Null: none.
  std::shared_ptr<cuda::KernelCompiler> compiler() const;

 private:
  std::unique_ptr<cuda::EarlyCode> code_;
  std::jthread compiles_;
};

/// The device that config.device names, opened, with its rates measured (a fraction of a second). Throws UserError when
/// it is not there.
Machine open_machine(const RunConfig& config, CpuRates rates = CpuRates::kMeasured,
                     const std::shared_ptr<cuda::KernelCompiler>& early = nullptr);

/// The same without opening anything or measuring: typical rates of the kind of machine that config.device names.
Platform nominal_machine(const RunConfig& config);

/// Bytes that a program can have there; 0: it is not known of a machine without a name.
int64_t nominal_bytes(const RunConfig& config);

/// Name, rates and versions in a line.
std::string describe(const Machine& machine);

}  // namespace tokamak
