#include "advise/axis_seconds.h"

namespace tokamak {
namespace {

double bandwidth_seconds(const Link& link, int64_t ranks, double bytes) {
  return ranks == 1 ? 0 : bytes * double(ranks - 1) / double(ranks) / link.bandwidth;
}

}  // namespace

AxisSeconds::AxisSeconds(const ClusterConfig& cluster, const MeshConfig& mesh, double gather_share)
    : tensor_(axis_link(cluster, 1, mesh.tensor)), context_(axis_link(cluster, mesh.tensor, mesh.context)),
      data_(axis_link(cluster, mesh.tensor * mesh.context, mesh.data)), tensor_ranks_(mesh.tensor),
      context_ranks_(mesh.context), data_ranks_(mesh.data), gather_share_(gather_share) {}

double AxisSeconds::added(const Link& link, int64_t ranks, double bytes, double scattered, double all) const {
  return bandwidth_seconds(link, ranks, bytes * scattered / gather_share_) +
         2 * bandwidth_seconds(link, ranks, bytes * (all - scattered));
}

double AxisSeconds::added_over_context(const ZeroCut& sizes, double bytes, bool scatters) const {
  return added(context_, context_ranks_, bytes, scatters ? sizes.by_context + sizes.by_both : 0, sizes.all());
}

double AxisSeconds::added_over_data(const ZeroCut& sizes, double bytes, bool scatters) const {
  if (!scatters) return added(data_, data_ranks_, bytes, 0, sizes.all());
  auto ranks = double(context_ranks_);
  double all = sizes.whole + sizes.by_data + (sizes.by_context + sizes.by_both) / ranks;
  return added(data_, data_ranks_, bytes, sizes.by_data + sizes.by_both / ranks, all);
}

double AxisSeconds::gathered_over_context(const ZeroCut& sizes, double bytes) const {
  return bandwidth_seconds(context_, context_ranks_, bytes * (sizes.by_context + sizes.by_both) / gather_share_);
}

double AxisSeconds::gathered_over_data(const ZeroCut& sizes, double bytes) const {
  double sent = sizes.by_data + sizes.by_both / double(context_ranks_);
  return bandwidth_seconds(data_, data_ranks_, bytes * sent / gather_share_);
}

double AxisSeconds::gather_latencies(const ZeroCut& sizes, double count) const {
  return count / sizes.all() *
         ((sizes.by_data + sizes.by_both) * data_latency() + (sizes.by_context + sizes.by_both) * context_latency());
}

double AxisSeconds::context_gather(double bytes) const {
  return all_gather_seconds(context_, context_ranks_, bytes / gather_share_);
}
double AxisSeconds::tensor_gather(double bytes) const {
  return all_gather_seconds(tensor_, tensor_ranks_, bytes / gather_share_);
}

}  // namespace tokamak
