#include "cli/machine.h"

#include "backend/cpu/cpu_backend.h"
#include "backend/cuda/cuda_backend.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/file.h"
#include "base/one_of.h"
#include "base/parallel.h"
#include "compile/resolved_run.h"
#include "config/config.h"
#include "config/foreign_values.h"
#include "config/gpus.h"
#include "exec/task_queue.h"
#include "tune/tune.h"

#include <charconv>
#include <functional>
#include <stdexcept>
#include <stop_token>
#include <utility>

namespace tokamak {
namespace {

constexpr int kCpu = -1;

// The number of the GPU that is asked for, or kCpu.
int parse_device(const std::string& device) {
  if (device == "cpu") return kCpu;
  if (device == "cuda") return 0;
  if (device == "auto") return cuda::is_built() && cuda::device_count() > 0 ? 0 : kCpu;
  constexpr std::string_view kPrefix = "cuda:";
  int ordinal = 0;
  const char *begin = device.data() + std::min(kPrefix.size(), device.size()), *end = device.data() + device.size();
  auto [at, error] = std::from_chars(begin, end, ordinal);
  if (!device.starts_with(kPrefix) || error != std::errc() || at != end || ordinal < 0)
    user_error("[device] expected auto, cpu, cuda or cuda:<number>, got '{}'{}", device,
               value_hint("device", device, {"auto", "cpu", "cuda"}));
  return ordinal;
}

Machine open_cpu(const RunConfig& config, CpuRates rates) {
  set_num_threads(int(config.threads));
  Machine machine;
  if (rates == CpuRates::kTypical)
    machine.platform = cpu::nominal_platform(num_threads());
  else  // on a thread that takes its OpenMP team with it when it ends; a second team would slow the work that follows
    TaskQueue().run([&] { machine.platform = cpu::measure_platform(); });
  machine.backend = cpu::make_backend();
  return machine;
}

// One file per GPU, set of library versions and build of this program, whose kernels they are; in the cache.
std::string measurements_file(const Machine& machine) {
  std::filesystem::path cache = cuda::default_cache();
  if (cache.empty()) return {};
  Checksum of;
  of.update(std::as_bytes(std::span(machine.platform.tuning.machine)));
  of.update(MappedFile("/proc/self/exe").bytes());
  return cache / fmt::format("tuned-{:016x}.json", of.digest());
}

Machine open_gpu(const RunConfig& config, int ordinal, const std::shared_ptr<cuda::KernelCompiler>& early) {
  set_num_threads(int(config.threads));
  Machine machine;
  machine.is_gpu = true;
  machine.versions = cuda::describe_device(ordinal).versions;
  machine.backend = cuda::make_backend(ordinal, cuda::default_cache(), early);
  machine.platform = cuda::measure_platform(*machine.backend, ordinal);
  machine.platform.tuning.machine = machine.platform.target.name + ", " + machine.versions;
  machine.platform.tuning.measurements = measurements_file(machine);
  return machine;
}

bool may_be_first_gpu(const std::string& device) {
  return cuda::is_built() && is_one_of(device, {"auto", "cuda", "cuda:0"});
}

}  // namespace

bool is_gpu_device(const RunConfig& config) { return parse_device(config.device) != kCpu; }

std::string gpu_name(int ordinal) { return fmt::format("cuda:{}", ordinal); }

std::jthread begin_machine(const std::string& device) {
  if (!may_be_first_gpu(device)) return {};
  cuda::hide_other_devices();
  return std::jthread([] { cuda::begin_device(0); });
}

namespace {

// Ends with an exception when it is to stop.
class UntilStopped : public CodeAhead {
 public:
  UntilStopped(CodeAhead& code, std::stop_token stop) : code_(code), stop_(std::move(stop)) {}
  void compile_ahead(const Graph& graph, const Node& node) override {
    if (stop_.stop_requested()) throw std::runtime_error("stopped");
    code_.compile_ahead(graph, node);
  }

 private:
  CodeAhead& code_;
  std::stop_token stop_;
};

// What is wrong here is told when the GPU is opened, or the run's own kernels are compiled.
void compile_early(std::stop_token stop, const RunConfig& config, const GpuConfig& gpu, cuda::EarlyCode& early) {
  try {
    UntilStopped code(early, std::move(stop));
    Platform expected = cuda::nominal_platform(gpu);
    tune_ahead(resolve(config, expected.target), expected, code);
  } catch (const std::exception&) {
  }
}

}  // namespace

EarlyStep::EarlyStep(const RunConfig& config) {
  try {
    std::optional<GpuConfig> gpu = may_be_first_gpu(config.device) ? cuda::expected_gpu() : std::nullopt;
    if (!gpu) return;
    code_ = cuda::begin_code(*gpu, cuda::default_cache());
    compiles_ = std::jthread(compile_early, config, *gpu, std::ref(*code_));
  } catch (const std::exception&) {
    code_ = nullptr;  // as in compile_early
  }
}

EarlyStep::~EarlyStep() = default;

void EarlyStep::stop() { compiles_.request_stop(); }

std::shared_ptr<cuda::KernelCompiler> EarlyStep::compiler() const { return code_ ? code_->compiler() : nullptr; }

Machine open_machine(const RunConfig& config, CpuRates rates, const std::shared_ptr<cuda::KernelCompiler>& early) {
  int ordinal = parse_device(config.device);
  return ordinal == kCpu ? open_cpu(config, rates) : open_gpu(config, ordinal, early);
}

Platform nominal_machine(const RunConfig& config) {
  return config.device.starts_with("cuda") ? cuda::nominal_platform() : cpu::nominal_platform();
}

int64_t nominal_bytes(const RunConfig& config) {
  return config.device.starts_with("cuda") ? int64_t(gpu_model(kNominalGpu).memory_bytes.value) : 0;
}

std::string describe(const Machine& machine) {
  const Target& target = machine.platform.target;
  std::string rates = fmt::format("{:.0f} GFLOP/s fp32, {:.0f} bf16, {:.1f} GB/s", target.f32_flops * 1e-9,
                                  target.bf16_flops * 1e-9, target.memory_bandwidth * 1e-9);
  if (!machine.is_gpu)
    return fmt::format("{}: {} thread{}, {}", target.name, target.units, target.units == 1 ? "" : "s", rates);
  return fmt::format("{}: {} multiprocessors, {}; {}", target.name, target.units, rates, machine.versions);
}

}  // namespace tokamak
