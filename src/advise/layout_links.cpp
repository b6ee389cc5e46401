#include "advise/layout_links.h"

#include <algorithm>
#include <limits>

namespace tokamak {
namespace {

constexpr double kLow = 2;  // bytes of bf16

// Of many blocks alike, in which tensors fill buckets in their order.
double buckets_of_block(const std::vector<double>& bytes, double bucket) {
  constexpr int kBlocks = 8;
  double filled = bucket, count = 0;
  for (int block = 0; block < kBlocks; ++block)
    for (double one : bytes) {
      if (filled + one > bucket) ++count, filled = 0;
      filled += one;
    }
  return count / kBlocks;
}

}  // namespace

LayoutLinks::LayoutLinks(const ModelConfig& model, const ParallelLayout& layout, const ClusterConfig& cluster,
                         const Target& target, const BlockWork& block)
    : model_(model), layout_(layout), mesh_(layout.mesh), target_(target), block_(block),
      axes_(cluster, mesh_, target.gather_share),
      sends_keys_early_(block.has_context_kernel(cluster.gpu.compute_capability.value)) {}

double LayoutLinks::bucket_bytes() const {
  double largest = 4 * kLow * double(model_.width * model_.width) / double(mesh_.tensor);
  return std::max(double(mesh_.bucket_mib << 20), largest);
}

// A sixteenth of a budget of memory (passes/bucket.h).
double LayoutLinks::ahead_bytes() const {
  double budget = layout_.budget_gib > 0 ? layout_.budget_gib : std::numeric_limits<double>::infinity();
  return budget / 16 * double(1 << 30);
}

double LayoutLinks::gradient_seconds(const ZeroCut& sizes, double bytes) const {
  return axes_.added_over_context(sizes, bytes, scatters()) +
         (adds_once() ? 0 : axes_.added_over_data(sizes, bytes, scatters()));
}

Collectives LayoutLinks::collectives(double element_bytes) const {
  // In the order of the model, of vectors first those of a norm: with bf16 these are of another type than the rest.
  std::vector<MatrixSize> matrices = block_matrices(model_, mesh_.tensor),
                          vectors = block_vectors(model_, mesh_.tensor);
  size_t norms = vectors.size() - (model_.bias ? matrices.size() : 0);
  std::vector<double> bytes;
  for (size_t i = 0; i < matrices.size(); ++i) {
    if (i % 2 == 0 && element_bytes > kLow)
      for (size_t norm = 0; norm < norms / 2; ++norm) bytes.push_back(element_bytes * vectors[norm].elements());
    bytes.push_back(element_bytes * matrices[i].elements());
    if (model_.bias) bytes.push_back(element_bytes * vectors[norms + i].elements());
  }
  return {double(matrices.size() + vectors.size()), buckets_of_block(bytes, double(mesh_.bucket_mib << 20))};
}

// Over two axes one has a collective for each tensor: context where gradients are scattered, and else data.
MatrixLinks LayoutLinks::of_matrix(const MatrixSize& matrix) const {
  ZeroCut cut;
  cut.add(matrix, mesh_);
  bool scatters_context = scatters() && cut.by_context + cut.by_both > 0;
  bool by_data = mesh_.data > 1 && !adds_once();
  double over_context = mesh_.context > 1 ? axes_.added_over_context(cut, kLow, scatters()) : 0;
  double over_data = by_data ? axes_.added_over_data(cut, kLow, scatters()) : 0, bytes = kLow * matrix.elements();
  MatrixLinks links{.in_bucket = by_data ? over_data : over_context,
                    .is_scattered = scatters() && (by_data ? cut.by_data + cut.by_both > 0 : scatters_context)};
  if (by_data && mesh_.context > 1 && scatters()) {
    links.alone = over_context + axes_.context_latency();
    if (scatters_context) bytes /= double(mesh_.context);
  } else if (by_data && mesh_.context > 1) {
    links.alone = over_data + axes_.data_latency();
    links.in_bucket = over_context;
  }
  links.share = mesh_.bucket_mib > 0 ? bytes / double(mesh_.bucket_mib << 20) : 1;
  if (mesh_.zero == 3) {
    links.parameter_bytes = kLow * matrix.elements();
    links.parameters = axes_.gathered(cut, kLow) +
                       axes_.gather_latencies(cut, std::min(1.0, kLow * matrix.elements() / bucket_bytes()));
  }
  return links;
}

BlockLinks LayoutLinks::backward() const {
  BlockLinks links;
  bool by_data = mesh_.data > 1 && !adds_once(), by_context = mesh_.context > 1;
  links.stream = axes_.tensor_gather(block_.stream_bytes());
  if (by_context) {
    double bytes = 2 * block_.stream_bytes() * double(mesh_.context) / double(mesh_.tensor);
    links.keys = axes_.context_gather(bytes);
    links.sends_keys_early = sends_keys_early_;
  }
  std::vector<MatrixSize> matrices = block_matrices(model_, mesh_.tensor);
  std::reverse(matrices.begin(), matrices.end());
  std::transform(matrices.begin(), matrices.end(), links.matrices.begin(),
                 [&](const MatrixSize& matrix) { return of_matrix(matrix); });
  links.ahead_bytes = ahead_bytes();
  links.gather_bytes = std::min(double(mesh_.bucket_mib << 20), ahead_bytes());
  double data = axes_.data_latency(), context = axes_.context_latency();
  links.bucket_latency = by_data && (!by_context || scatters()) ? data : context;
  if (by_data && by_context) {
    double alone = scatters() ? context : data;
    links.norm_vectors = (model_.bias ? 3 : 1) * alone;
    links.bias_vector = model_.bias ? alone : 0;
  } else if (mesh_.tensor > 1 && (by_data || by_context)) {
    links.norm_vectors = (model_.bias ? 3 : 1) * links.bucket_latency;  // those of tensor stand between them
  }
  links.units = target_.link_units;
  return links;
}

ForwardLinks LayoutLinks::forward() const {
  ForwardLinks links{.bucket_bytes = std::min(double(mesh_.bucket_mib << 20), ahead_bytes()),
                     .ahead_bytes = ahead_bytes(),
                     .latency = axes_.data_latency() + axes_.context_latency(),
                     .stream = axes_.tensor_gather(block_.stream_bytes()),
                     .units = target_.link_units};
  std::vector<MatrixSize> matrices = block_matrices(model_, mesh_.tensor);
  for (size_t i = 0; i < matrices.size(); ++i)
    for (bool is_bias : {false, true}) {
      if (is_bias && !model_.bias) continue;
      MatrixSize size = matrices[i];
      if (is_bias) size.rows = 1;
      ZeroCut cut;
      cut.add(size, mesh_);
      links.parameters[2 * i + size_t(is_bias)] = {kLow * size.elements(), axes_.gathered(cut, kLow)};
    }
  return links;
}

}  // namespace tokamak
