#include "backend/cuda/matmul_shares.h"

#include "backend/cuda/classifier_parts.h"
#include "backend/cuda/matmul_problem.h"
#include "base/error.h"
#include "graph/op_def.h"
#include "ops/classifier.h"
#include "ops/group.h"
#include "ops/matmul.h"
#include "ops/row_block.h"

#include <numeric>

namespace tokamak::cuda {
namespace {

struct Part {
  MatmulProblem problem;
  double flops;  // of all of these in the node
};

Part part_of(const Graph& graph, const Node& node, int64_t times = 1) {
  MatmulProblem problem = matmul_node(graph, node).problem;
  return {problem, problem.flops() * double(times)};
}

std::vector<Part> parts_of_classifier(const ClassifierSizes& s) {
  std::vector<Part> parts;
  auto add = [&](const Graph& graph, int64_t times) {
    if (times > 0) parts.push_back(part_of(graph, graph.nodes().back(), times));
  };
  int64_t chunks = s.rows / s.chunk, rest = s.rows % s.chunk;
  add(classifier_logits(s, s.chunk), chunks);
  add(classifier_dx(s, s.chunk), chunks);
  add(classifier_dweight(s, s.chunk, false), 1);
  add(classifier_dweight(s, s.chunk, true), chunks - 1);
  if (rest == 0) return parts;
  add(classifier_logits(s, rest), 1);
  add(classifier_dx(s, rest), 1);
  add(classifier_dweight(s, rest, true), 1);
  return parts;
}

std::vector<Part> parts_of(const Graph& graph, const Node& node) {
  if (node.op == &op::classifier) return parts_of_classifier(read_classifier(graph, node));
  KernelNode kernel = kernel_node(graph, node);
  if (kernel.node.op == &op::matmul || kernel.node.op == &op::fused_matmul) return {part_of(kernel.graph, kernel.node)};
  return {};
}

}  // namespace

std::map<std::string, double> matmul_shares(const Graph& step, std::span<const double> seconds) {
  TOKAMAK_CHECK(seconds.size() == step.nodes().size(), "seconds of {} nodes of {}", seconds.size(),
                step.nodes().size());
  double all = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  std::map<std::string, double> shares;
  for (size_t n = 0; n < seconds.size() && all > 0; ++n) {
    if (seconds[n] <= 0) continue;
    std::vector<Part> parts = parts_of(step, step.nodes()[n]);
    double flops = 0;
    for (const Part& part : parts) flops += part.flops;
    for (const Part& part : parts) shares[part.problem.key()] += seconds[n] / all * part.flops / flops;
  }
  return shares;
}

}  // namespace tokamak::cuda
