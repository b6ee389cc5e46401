// The chunked classifier: for every chunk of rows the logits' matmul, one row kernel that turns them into losses and
// their own gradient, and the two matmuls of the gradients. dW is written by the first chunk and added to by the
// others.
#include "backend/cuda/kernels.h"
#include "base/error.h"
#include "graph/builder.h"
#include "graph/op_def.h"
#include "ops/ops.h"
#include "passes/classifier_softmax.h"

#include <algorithm>

namespace tokamak::cuda {
namespace {

struct Sizes {
  int64_t rows, width, vocab, chunk, classes;
  DType dtype;  // of x, W and the logits
};

Sizes sizes_of(const Graph& graph, const Node& node) {
  const ValueType& x = graph.type(node.inputs[0]);
  return {x.shape[0],
          x.shape[1],
          graph.shape(node.inputs[1])[0],
          node.attrs.get_int("chunk"),
          node.attrs.get_int("classes"),
          x.dtype};
}

// Graphs whose last node is a kernel of the classifier.
Graph product(const ValueType& a, const ValueType& b, bool trans_a, bool trans_b) {
  Graph graph("part");
  GraphBuilder g(graph);
  ValueId left = g.input("a", a), right = g.input("b", b);
  matmul(g, left, right, trans_a, trans_b);
  return graph;
}

// dlogits^T x in f32: alone, or added to what stands in dW.
Graph weight_gradient(const ValueType& dlogits, const ValueType& x, bool adds) {
  auto body = std::make_shared<Graph>("body");
  GraphBuilder b(*body);
  ValueType dweight{DType::kF32, {dlogits.shape[1], x.shape[1]}};
  ValueId left = b.input("a0", dlogits), right = b.input("a1", x);
  ValueId sum = adds ? b.input("a2", dweight) : kNoValue;
  ValueId product = cast(b, matmul(b, left, right, true, false), DType::kF32);
  body->add_result("r0", adds ? add(b, sum, product) : product);
  Graph graph("part");
  GraphBuilder g(graph);
  std::vector<ValueId> inputs{g.input("a", dlogits), g.input("b", x)};
  if (adds) inputs.push_back(g.input("c", dweight));
  g.add(op::group, inputs, {{"kind", std::string("matmul")}}, body);
  return graph;
}

// The row group between the matmuls: (logits, targets, dloss) -> (losses, dlogits), whatever the order in which the
// group has its operands.
class SoftmaxKernel : public Kernel {
 public:
  SoftmaxKernel(Context& context, const Graph& graph) : group_(make_group_kernel(context, graph, graph.nodes()[0])) {
    const Node& node = graph.nodes()[0];
    for (ValueId input : node.inputs)
      for (size_t i = 0; i < graph.arguments().size(); ++i)
        if (graph.arguments()[i].value == input) inputs_.push_back(i);
    for (ValueId output : node.outputs)
      for (size_t i = 0; i < graph.results().size(); ++i)
        if (graph.results()[i].value == output) outputs_.push_back(i);
    TOKAMAK_CHECK(inputs_.size() == node.inputs.size() && outputs_.size() == node.outputs.size(),
                  "the classifier's softmax has operands of its own");
  }
  int64_t workspace_bytes() const override { return group_->workspace_bytes(); }
  void use_workspace(void* memory) override { group_->use_workspace(memory); }
  void run(std::span<const void* const> in, std::span<void* const> out) override {
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (size_t i : inputs_) inputs.push_back(in[i]);
    for (size_t i : outputs_) outputs.push_back(out[i]);
    group_->run(inputs, outputs);
  }

 private:
  KernelPtr group_;
  std::vector<size_t> inputs_, outputs_;  // by operand of the group: the place in run()'s
};

Graph softmax_graph(const Sizes& s, int64_t rows) { return classifier_softmax(rows, s.vocab, s.classes, s.dtype); }

// The kernels of a chunk with so many rows, as graphs.
struct ChunkGraphs {
  ChunkGraphs(const Sizes& s, int64_t rows) {
    ValueType x{s.dtype, {rows, s.width}}, weight{s.dtype, {s.vocab, s.width}}, logits{s.dtype, {rows, s.vocab}};
    softmax = softmax_graph(s, rows);
    forward = product(x, weight, false, true);
    dx = product(logits, weight, false, false);
    first_dweight = weight_gradient(logits, x, false);
    next_dweight = weight_gradient(logits, x, true);
  }
  Graph forward, softmax, dx, first_dweight, next_dweight;
};

// The kernels for one number of rows; those of the weight's gradient only where there is a chunk that needs them.
struct ChunkKernels {
  ChunkKernels(Context& context, const Sizes& s, int64_t rows, bool has_first, bool has_next) {
    ChunkGraphs graphs(s, rows);
    auto make = [&](const Graph& graph) { return make_matmul_kernel(context, graph, graph.nodes().back()); };
    softmax = std::make_unique<SoftmaxKernel>(context, graphs.softmax);  // compiled while the matmuls are chosen
    forward = make(graphs.forward);
    dx = make(graphs.dx);
    if (has_first) first_dweight = make(graphs.first_dweight);
    if (has_next) next_dweight = make(graphs.next_dweight);
  }
  std::vector<Kernel*> all() const {
    std::vector<Kernel*> kernels;
    for (const KernelPtr* kernel : {&forward, &softmax, &dx, &first_dweight, &next_dweight})
      if (*kernel) kernels.push_back(kernel->get());
    return kernels;
  }
  KernelPtr forward, softmax, dx, first_dweight, next_dweight;
};

class ClassifierKernel : public Kernel {
 public:
  ClassifierKernel(Context& context, const Graph& graph, const Node& node)
      : s_(sizes_of(graph, node)), chunk_(context, s_, s_.chunk, true, s_.rows >= 2 * s_.chunk) {
    int64_t rest = s_.rows % s_.chunk;
    if (rest > 0) rest_ = std::make_unique<ChunkKernels>(context, s_, rest, false, true);
  }

  int64_t workspace_bytes() const override {
    int64_t bytes = 0;
    for (Kernel* kernel : kernels()) bytes = std::max(bytes, kernel->workspace_bytes());
    return bytes;
  }
  void use_workspace(void* memory) override {
    for (Kernel* kernel : kernels()) kernel->use_workspace(memory);
  }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    for (int64_t row = 0; row < s_.rows; row += s_.chunk)
      run_chunk(row + s_.chunk <= s_.rows ? chunk_ : *rest_, row, in, out);
  }

 private:
  std::vector<Kernel*> kernels() const {
    std::vector<Kernel*> all = chunk_.all();
    if (rest_)
      for (Kernel* kernel : rest_->all()) all.push_back(kernel);
    return all;
  }

  void run_chunk(ChunkKernels& k, int64_t row, std::span<const void* const> in, std::span<void* const> out) const {
    auto from = [](const void* base, int64_t bytes) { return static_cast<const char*>(base) + bytes; };
    auto to = [](void* base, int64_t bytes) { return static_cast<char*>(base) + bytes; };
    int64_t x_bytes = row * s_.width * dtype_bytes(s_.dtype);
    const void *x = from(in[0], x_bytes), *weight = in[1], *targets = from(in[2], row * 4);
    const void* dloss = from(in[3], row * 4);
    void *losses = to(out[0], row * 4), *dx = to(out[1], x_bytes), *dweight = out[2], *logits = out[3];
    run(*k.forward, {x, weight}, {logits});
    run(*k.softmax, {logits, targets, dloss}, {losses, logits});
    run(*k.dx, {logits, weight}, {dx});
    row == 0 ? run(*k.first_dweight, {logits, x}, {dweight}) : run(*k.next_dweight, {logits, x, dweight}, {dweight});
  }

  static void run(Kernel& kernel, std::initializer_list<const void*> in, std::initializer_list<void*> out) {
    kernel.run({in.begin(), in.size()}, {out.begin(), out.size()});
  }

  Sizes s_;
  ChunkKernels chunk_;
  std::unique_ptr<ChunkKernels> rest_;  // of the last rows, when they are fewer
};

}  // namespace

KernelPtr make_classifier_kernel(Context& context, const Graph& graph, const Node& node) {
  return std::make_unique<ClassifierKernel>(context, graph, node);
}

void compile_classifier_ahead(Context& context, const Graph& graph, const Node& node) {
  Sizes s = sizes_of(graph, node);
  SoftmaxKernel(context, softmax_graph(s, s.chunk));
  if (int64_t rest = s.rows % s.chunk; rest > 0) SoftmaxKernel(context, softmax_graph(s, rest));
}

int64_t classifier_scratch(const DeviceInfo& info, const Graph& graph, const Node& node) {
  Sizes s = sizes_of(graph, node);
  int64_t bytes = 0;
  for (int64_t rows : {s.chunk, s.rows % s.chunk}) {
    if (rows == 0) continue;
    ChunkGraphs graphs(s, rows);
    for (const Graph* part : {&graphs.forward, &graphs.softmax, &graphs.dx, &graphs.first_dweight})
      bytes = std::max(bytes, scratch_bytes(info, *part, part->nodes().back()));
  }
  return bytes;
}

}  // namespace tokamak::cuda
