// The machine a program is made for, as plain data: passes and the planner read it, none of them asks a device.
// Tests: tests/graph/target_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace tokamak {

/// Between ranks: bytes/s that a rank sends in a collective, and the fixed seconds of one.
struct LinkRate {
  double bandwidth = 0, seconds = 0;
};

struct Target {
  std::string name = "cpu";
  int units = 1;             // cores or SMs
  double f32_flops = 100e9;  // matmul rates, FLOP/s of the whole machine
  double bf16_flops = 100e9;
  double tf32_flops = 0;           // of f32 matmuls whose operands are rounded to TF32; 0: no such units
  double fp8_flops = 0;            // of operands of 8 bits, both with their sums along rows; 0: no such units
  double memory_bandwidth = 20e9;  // bytes/s
  double pointwise_flops = 20e9;   // scalar-function evaluations per second outside matmuls
  double cache_bytes = 32e6;       // last-level cache
  double launch_seconds = 2e-6;    // fixed cost of a kernel
  double attention_flops = 50e9;   // of the attention kernels, forward and backward together, of long sequences
  double attention_tile = 0;       // side of what of a causal mask's diagonal is computed whole, half of it in vain
  double draw_rate = 0;            // random numbers of dropout a second, beside what a kernel does; 0: not priced
  double sustained_share = 1;      // of what tensor cores reach alone at their rate: what a long run's power leaves
  bool matmul_bias = true;         // the matmul can add a bias vector,
  bool matmul_function = true;     // and apply a function to what it writes (ops/matmul_form.h)
  int64_t vocab_multiple = 128;    // what pad_vocab pads to

  // Kernels that only some backends have.
  bool chunked_classifier = false;   // the op `classifier`
  bool matmul_argument = false;      // matmul + bias stored both with and without the function
  bool matmul_operand = false;       // function of a stored matrix and the product, as GELU's derivative,
  bool matmul_operand_sums = false;  // and the sums of that over its rows, in f32
  bool matmul_prologue = false;      // a row group, such as a norm, that makes the left operand
  bool matmul_accumulate = false;    // 16-bit matmul with an f32 result, and matmul added to a matrix in place
  bool row_column_groups = false;    // row groups that also sum over columns (ops/group_form.h)
  int streams = 1;                   // of work, which the device runs side by side

  // Between devices.
  double link_bandwidth = 10e9;  // bytes/s that a rank sends in a collective,
  double gather_share = 1;       // and of that in an all_gather or a reduce_scatter
  double link_seconds = 20e-6;   // fixed cost of a collective
  double link_units = 0;         // share of the device's work that a collective takes from what runs beside it
  std::map<std::string, std::array<double, 2>> axis_links;  // bandwidth and seconds of axes with other links

  LinkRate link(const std::string& axis) const;

  bool operator==(const Target&) const = default;
};

/// One line of JSON, from which parse_target makes an equal target.
std::string print(const Target& target);

/// Throws UserError unless the text has every member and no other.
Target parse_target(std::string_view text);

}  // namespace tokamak
