#include "backend/cuda/cuda_backend.h"

namespace tokamak::cuda {

Target nominal_target() {
  Target target;
  target.name = "NVIDIA H200 (nominal)";
  target.units = 132;
  target.f32_flops = 50e12;
  target.bf16_flops = 680e12;
  target.memory_bandwidth = 4.0e12;
  target.pointwise_flops = 8e12;
  target.cache_bytes = 50e6;
  target.launch_seconds = 2e-6;
  target.attention_flops = 400e12;
  return target;
}

Target measure_target(Backend&) { return nominal_target(); }

}  // namespace tokamak::cuda
