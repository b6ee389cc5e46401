// What a step is compiled for: a target, the kernels that its backend has, and what tuning found there.
#pragma once

#include "graph/target.h"

#include <map>
#include <memory>
#include <set>

namespace tokamak {

class Graph;
struct Node;

/// What passes and the planner have to know of a backend's kernels beyond the target's flags. Pure, and asked without a
/// device: a step can be planned for a GPU that is not there. A backend overrides what its kernels do otherwise.
class KernelSet {
 public:
  virtual ~KernelSet() = default;

  /// Whether there is a kernel for a matmul group that the target's flags allow. Recomputing activations may give a
  /// product another form of bias and GELU, so all of them must give the same bits.
  virtual bool takes_matmul(const Graph& /*graph*/, const Node& /*group*/) const { return true; }

  /// Whether an attention or attention_grad node's kernel can also give dqkv's sums (attribute `sums`), and out or dqkv
  /// in eight bits (`float8`).
  virtual bool attention_extras(const Graph& /*graph*/, const Node& /*node*/) const { return false; }

  /// Whether a node should find a kernel (a library may yet refuse at the device); else its op's reference is run.
  virtual bool has_kernel(const Graph& /*graph*/, const Node& /*node*/) const { return true; }

  /// Bytes of scratch memory that a node's kernel takes beside its operands.
  virtual int64_t scratch_bytes(const Graph& /*graph*/, const Node& /*node*/) const { return 0; }
};

/// What only measuring tells (tune/tune.h); kernels are named by kernel_key (graph/single_node.h).
struct Tuning {
  std::map<std::string, double> measured_seconds;  // of single kernels
  std::set<std::string> slow_forms;                // matmul groups, and products in fp8, that simpler ones beat
  std::string tuned_for;                           // the step that slow_forms are of, in a word
  std::string machine;                             // what measurements hold for: device and versions of the libraries
  std::string measurements;                        // file that keeps them between runs; empty: none
};

/// A target alone stands for a platform of ordinary kernels on which nothing was measured.
struct Platform {
  Platform(Target of = {}, std::shared_ptr<const KernelSet> with = std::make_shared<const KernelSet>())
      : target(std::move(of)), kernels(std::move(with)) {}

  Target target;
  std::shared_ptr<const KernelSet> kernels;  // not null
  Tuning tuning;
};

}  // namespace tokamak
