// The machine a program is made for, as plain data: passes and the planner read it, none of them asks a device.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

namespace tokamak {

class Graph;
struct Node;

struct Target {
  std::string name = "cpu";
  int units = 1;             // cores or SMs
  double f32_flops = 100e9;  // matmul rates, FLOP/s of the whole machine
  double bf16_flops = 100e9;
  double tf32_flops = 0;           // of f32 matmuls whose operands are rounded to TF32; 0: no such units
  double memory_bandwidth = 20e9;  // bytes/s
  double pointwise_flops = 20e9;   // scalar-function evaluations per second outside matmuls
  double cache_bytes = 32e6;       // last-level cache
  double launch_seconds = 2e-6;    // fixed cost of a kernel
  double attention_flops = 50e9;   // of the attention kernels, forward and backward together
  double sustained_share = 1;      // of what 16-bit matmuls and attention reach alone: what a long run's power leaves
  bool matmul_bias = true;         // the matmul can add a bias vector,
  bool matmul_gelu = true;         // and apply GELU to what it writes
  int64_t vocab_multiple = 128;    // what pad_vocab pads to

  // Kernels that only some backends have.
  bool chunked_classifier = false;     // the op `classifier`
  bool matmul_gelu_aux = false;        // matmul + bias stored both with and without GELU
  bool matmul_gelu_grad = false;       // matmul times the derivative of GELU at a stored matrix,
  bool matmul_gelu_grad_sums = false;  // and the sums of that over its rows, in f32
  bool matmul_accumulate = false;      // 16-bit matmul with an f32 result, and matmul added to a matrix in place
  bool row_column_groups = false;      // row groups that also sum over columns (passes/group_info.h)

  // Whether there is a kernel for a matmul group that the flags above allow; empty: for each. Recomputing activations
  // may give a product another form of bias and GELU, so all of them must give the same bits.
  std::function<bool(const Graph&, const Node&)> takes_matmul;

  // Whether an attention_grad node's kernel can also give dqkv's sums (attribute `sums`); empty: none can.
  std::function<bool(const Graph&, const Node&)> attention_sums;

  // Bytes of scratch memory that a node's kernel takes beside its operands, without asking a device; empty: none.
  std::function<int64_t(const Graph&, const Node&)> scratch_bytes;
  int streams = 1;  // of work, which the device runs side by side

  // What only measuring tells (train/tune.h); kernels are named by kernel_key (graph/single_node.h).
  bool tunable = false;                            // there is something to gain
  std::map<std::string, double> measured_seconds;  // of single kernels
  std::set<std::string> plain_matmuls;             // matmul groups that cost more than their parts
  std::string tuned_for;                           // the step that plain_matmuls was chosen for, in a word
  std::string machine;                             // what measurements hold for: device and versions of the libraries
  std::string measurements;                        // file that keeps them between runs; empty: none
};

}  // namespace tokamak
