// What the ranks of a layout send of a block's parameters, gradients and stream, in closed form, and when gradients are
// added. Tests: tests/advise/layout_links_test.cpp; tests/advise/estimate_test.cpp holds what follows of it.
#pragma once

#include "advise/axis_seconds.h"
#include "advise/backward_timeline.h"
#include "advise/block_work.h"
#include "advise/forward_timeline.h"

namespace tokamak {

/// Of a block's parameters: each by itself, and as they fill buckets.
struct Collectives {
  double each = 0, filled = 0;
};

class LayoutLinks {
 public:
  /// All outlive it.
  LayoutLinks(const ModelConfig& model, const ParallelLayout& layout, const ClusterConfig& cluster,
              const Target& target, const BlockWork& block);

  const AxisSeconds& axes() const { return axes_; }

  bool accumulates() const { return layout_.micro_batches > 1 || mesh_.pipe > 1; }
  /// Data ranks add up gradients in the update, not in each micro-batch.
  bool adds_once() const { return accumulates() && mesh_.zero <= 1; }
  /// Other ranks' gradients are added in each micro-batch.
  bool sends_of_each_run() const { return mesh_.context > 1 || (mesh_.data > 1 && !adds_once()); }
  /// In which they are scattered to the ranks that have them, or else added up for all.
  bool scatters() const { return mesh_.zero >= 2 || (mesh_.zero == 1 && !accumulates()); }

  double bucket_bytes() const;  // of parameters that are gathered
  /// Seconds of those gradients, without latencies.
  double gradient_seconds(const ZeroCut& sizes, double bytes) const;
  /// Buckets are filled along one axis. Where two cut a parameter, gradients fill those of the second, and updated
  /// parameters none.
  Collectives collectives(double element_bytes) const;

  BlockLinks backward() const;
  /// Where one axis cuts parameters.
  ForwardLinks forward() const;

 private:
  double ahead_bytes() const;  // of what is gathered before it is read
  MatrixLinks of_matrix(const MatrixSize& matrix) const;

  const ModelConfig& model_;
  const ParallelLayout& layout_;
  const MeshConfig& mesh_;
  const Target& target_;
  const BlockWork& block_;
  AxisSeconds axes_;
  bool sends_keys_early_;
};

}  // namespace tokamak
