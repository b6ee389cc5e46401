// What it takes to send parameters and gradients along the axes data and context, which cut them for ZeRO: inside a
// node, over context, first, and then a rank's share of that. Seconds are without latencies; of an axis of one rank
// they are 0. Tests: tests/advise/axis_seconds_test.cpp.
#pragma once

#include "advise/links.h"
#include "advise/zero_cut.h"

namespace tokamak {

class AxisSeconds {
 public:
  /// `gather_share`: of a link's bandwidth, what a gather or a scatter has (graph/target.h).
  AxisSeconds(const ClusterConfig& cluster, const MeshConfig& mesh, double gather_share);

  /// Gradients of so many bytes an element, scattered to the ranks that have them, or else added up for all.
  double added_over_context(const ZeroCut& sizes, double bytes, bool scatters) const;
  double added_over_data(const ZeroCut& sizes, double bytes, bool scatters) const;

  double gathered_over_context(const ZeroCut& sizes, double bytes) const;
  double gathered_over_data(const ZeroCut& sizes, double bytes) const;
  double gathered(const ZeroCut& sizes, double bytes) const {
    return gathered_over_context(sizes, bytes) + gathered_over_data(sizes, bytes);
  }

  /// Of a collective.
  double context_latency() const { return context_ranks_ > 1 ? context_.latency : 0; }
  double data_latency() const { return data_ranks_ > 1 ? data_.latency : 0; }
  /// Of so many, each over the axes that cut what it is of.
  double gather_latencies(const ZeroCut& sizes, double count) const;

  /// Of `bytes` that all ranks have then, one collective, its latency included.
  double context_gather(double bytes) const;
  double tensor_gather(double bytes) const;

 private:
  double added(const Link& link, int64_t ranks, double bytes, double scattered, double all) const;

  Link tensor_, context_, data_;
  int64_t tensor_ranks_, context_ranks_, data_ranks_;
  double gather_share_;
};

}  // namespace tokamak
