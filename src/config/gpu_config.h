// One kind of GPU as its vendor describes it, as plain data.
#pragma once

#include <string>

namespace tokamak {

/// A number and where it comes from. A source says so where nobody publishes the number.
struct Figure {
  double value = 0;
  std::string source;

  bool is_known() const { return value > 0; }
};

struct GpuConfig {
  std::string model;        // a shipped description (config/gpus/<model>.toml) that the rest starts from; empty: none
  std::string name;         // the piece of a device's name by which it is known: "A100-SXM4-80GB"
  Figure half_flops;        // FLOP/s of bf16 and fp16 products, added in fp32, without sparsity
  Figure tf32_flops;        // the same of tf32
  Figure fp32_flops;        // without tensor cores
  Figure memory_bytes;      // what a program can have
  Figure memory_bandwidth;  // bytes/s
  Figure power;             // watts, at most
  Figure multiprocessors;
  Figure compute_capability;
  Figure l2_bytes;
  Figure shared_bytes;  // that one block can have
  Figure load_clock;    // share of the clock at which it has these FLOP/s that a long run leaves it; unknown: 0.9

  /// Whether its units are described, too, as it takes to compile a step for it; else only what they make together.
  bool has_units() const { return compute_capability.is_known(); }
};

}  // namespace tokamak
