#include "passes/bucket.h"

#include "base/bytes.h"
#include "graph/rewriter.h"
#include "ops/collective.h"
#include "passes/gathered_parameters.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace tokamak {
namespace {

constexpr double kShareOfBudget = 1.0 / 16;

// What two collectives must have in common to become one.
struct Kind {
  const OpDef* op;
  Attrs attrs;  // but for the tensors' own
  DType dtype;
  Phase phase;
  int gathers;  // of a parameter that several axes cut, this one included; 0: it is not gathered ahead
  bool operator==(const Kind&) const = default;
  bool is_alike(const Kind& other) const {  // but for the phase
    return op == other.op && attrs == other.attrs && dtype == other.dtype && gathers == other.gathers;
  }
};

struct Bucket {
  Kind kind;
  std::vector<int> members;  // nodes
  int64_t bytes = 0;
  int at = 0;              // in place of, or before, this node
  std::vector<int> views;  // of what it gives, that stand before
  bool is_open = true;
};

// Chooses which nodes become one, and where it stands.
class BucketChooser {
 public:
  BucketChooser(const Graph& graph, const BucketBytes& bytes)
      : graph_(graph), bytes_(bytes), gathers_(count_gathers(graph)), delayed_(size_t(graph.num_values()), -1) {}

  std::vector<Bucket> run() {
    for (int n = 0; n < int(graph_.nodes().size()); ++n) {
      const Node& node = graph_.nodes()[size_t(n)];
      if (delay_view(n)) continue;
      for (ValueId input : node.inputs)
        if (int bucket = delayed_[size_t(input)]; bucket >= 0) buckets_[size_t(bucket)].is_open = false;
      if (!is_joinable(node)) continue;
      std::optional<int> gathers = gathers_[size_t(node.outputs[0])];
      gathers ? gather_ahead(n, *gathers) : delay(n);
    }
    return std::move(buckets_);
  }

 private:
  static bool is_joinable(const Node& node) {
    return node.op == &op::all_reduce || node.op == &op::reduce_scatter || node.op == &op::all_gather;
  }

  Kind kind_of(const Node& node, int gathers) const {
    Kind kind{node.op, {}, graph_.dtype(node.inputs[0]), node.phase, gathers};
    for (const auto& [name, value] : node.attrs)
      if (name != "dims" && name != "blocks") kind.attrs.set(name, value);
    return kind;
  }

  // The bytes of a collective: of its inputs or its outputs, whichever are more.
  int64_t bytes_of(const Node& node) const {
    int64_t in = 0, out = 0;
    for (ValueId input : node.inputs) in += num_bytes(graph_.type(input));
    for (ValueId output : node.outputs) out += num_bytes(graph_.type(output));
    return std::max(in, out);
  }

  // Of the buckets with a kind that `is_wanted`, the one that was begun last; -1: there is none.
  template <typename Is>
  int last_of(const Is& is_wanted) const {
    int last = int(buckets_.size()) - 1;
    while (last >= 0 && !is_wanted(buckets_[size_t(last)].kind)) --last;
    return last;
  }
  int last_of(const Kind& kind) const {
    return last_of([&](const Kind& other) { return other == kind; });
  }

  bool has_room(int bucket, int64_t bytes, int64_t most) const {
    return bucket >= 0 && buckets_[size_t(bucket)].is_open && buckets_[size_t(bucket)].bytes + bytes <= most;
  }

  void delay(int n) {
    const Node& node = graph_.nodes()[size_t(n)];
    Kind kind = kind_of(node, 0);
    int64_t bytes = bytes_of(node);
    if (bytes > bytes_.most)  // what comes before it need not wait for what comes behind it
      for (Bucket& before : buckets_)
        if (before.kind.op == kind.op && before.kind.attrs == kind.attrs && before.kind.gathers == 0)
          before.is_open = false;
    int bucket = last_of(kind);
    if (!has_room(bucket, bytes, bytes_.most)) {
      bucket = int(buckets_.size());
      buckets_.push_back({std::move(kind), {}});
    }
    add(buckets_[size_t(bucket)], n, bytes);
    buckets_[size_t(bucket)].at = n;
    for (ValueId output : node.outputs) delayed_[size_t(output)] = bucket;
  }

  // A view of what a waiting collective gives waits as well.
  bool delay_view(int n) {
    const Node& node = graph_.nodes()[size_t(n)];
    int bucket = node.op->fusion == Fusion::kView ? delayed_[size_t(node.inputs[0])] : -1;
    if (bucket < 0 || !buckets_[size_t(bucket)].is_open) return false;
    buckets_[size_t(bucket)].views.push_back(n);
    delayed_[size_t(node.outputs[0])] = bucket;
    return true;
  }

  void gather_ahead(int n, int gathers) {
    const Node& node = graph_.nodes()[size_t(n)];
    Kind kind = kind_of(node, gathers);
    int64_t bytes = bytes_of(node);
    int bucket = last_of(kind);
    if (!has_room(bucket, bytes, bytes_.gathered)) {
      int before = last_of([&](const Kind& other) { return other.is_alike(kind); });  // of the phase before, perhaps
      int at = before >= 0 && bytes <= bytes_.ahead ? buckets_[size_t(before)].members[0] : n;
      bucket = int(buckets_.size());
      buckets_.push_back({std::move(kind), {}, 0, at});
    }
    add(buckets_[size_t(bucket)], n, bytes);
  }

  static void add(Bucket& bucket, int n, int64_t bytes) {
    bucket.members.push_back(n);
    bucket.bytes += bytes;
  }

  const Graph& graph_;
  const BucketBytes& bytes_;
  std::vector<std::optional<int>> gathers_;  // by value: see count_gathers
  std::vector<int> delayed_;                 // by value: the bucket that makes it late; -1: none
  std::vector<Bucket> buckets_;              // in the order in which they were begun
};

// Makes the graph of the buckets.
class Joiner {
 public:
  Joiner(const Graph& graph, const std::vector<Bucket>& buckets)
      : graph_(graph), buckets_(buckets), rewriter_(graph), bucket_of_(graph.nodes().size(), -1),
        is_done_(graph.nodes().size(), false) {
    for (size_t b = 0; b < buckets.size(); ++b)
      for (const auto& nodes : {buckets[b].members, buckets[b].views})
        for (int n : nodes) bucket_of_[size_t(n)] = int(b);
  }

  Graph run() {
    std::vector<std::vector<int>> buckets_at(graph_.nodes().size());
    for (size_t b = 0; b < buckets_.size(); ++b) buckets_at[size_t(buckets_[b].at)].push_back(int(b));
    for (int n = 0; n < int(buckets_at.size()); ++n) {
      for (int bucket : buckets_at[size_t(n)]) make(buckets_[size_t(bucket)]);
      if (bucket_of_[size_t(n)] < 0) make(n);
    }
    return rewriter_.finish();
  }

 private:
  void make(int n) {
    if (is_done_[size_t(n)]) return;
    if (bucket_of_[size_t(n)] >= 0) return make(buckets_[size_t(bucket_of_[size_t(n)])]);
    is_done_[size_t(n)] = true;
    for (ValueId input : graph_.nodes()[size_t(n)].inputs) make_producer(input);
    rewriter_.copy(graph_.nodes()[size_t(n)]);
  }

  // What is gathered ahead may be made of nodes that stand further down: they come first now.
  void make_producer(ValueId value) {
    if (int producer = graph_.producer(value); producer >= 0) make(producer);
  }

  void make(const Bucket& bucket) {
    if (is_done_[size_t(bucket.members[0])]) return;
    ValueIds inputs, outputs;
    std::vector<CutDim> at;
    for (int member : bucket.members) {
      const Node& node = graph_.nodes()[size_t(member)];
      is_done_[size_t(member)] = true;
      for (ValueId input : node.inputs) {
        make_producer(input);
        inputs.push_back(rewriter_.map(input));
      }
      outputs.insert(outputs.end(), node.outputs.begin(), node.outputs.end());
      if (node.attrs.find("dims")) {
        std::vector<CutDim> more = cut_dims(node.attrs);
        at.insert(at.end(), more.begin(), more.end());
      }
    }
    const Node& first = graph_.nodes()[size_t(bucket.members[0])];
    Attrs attrs = first.attrs;
    if (!at.empty()) set_cut_dims(attrs, at);
    rewriter_.replace(outputs, rewriter_.in_place_of(first).add(*first.op, std::move(inputs), std::move(attrs)));
    for (int view : bucket.views) rewriter_.copy(graph_.nodes()[size_t(view)]);
  }

  const Graph& graph_;
  const std::vector<Bucket>& buckets_;
  Rewriter rewriter_;
  std::vector<int> bucket_of_;  // by node that is part of one, or a view of what it gives; -1: none
  std::vector<bool> is_done_;   // by node
};

}  // namespace

bool bucket_graph(Graph& graph, const BucketBytes& bytes) {
  std::vector<Bucket> buckets = BucketChooser(graph, bytes).run();
  bool changes = std::any_of(buckets.begin(), buckets.end(),
                             [](const Bucket& b) { return b.members.size() > 1 || b.at != b.members[0]; });
  if (changes) graph = Joiner(graph, buckets).run();
  return changes;
}

double nearby_budget(double gib) { return std::exp2(std::round(2 * std::log2(gib)) / 2); }

bool bucket(Graph& graph, const PassContext& context) {
  int64_t most = context.bucket_mib << 20, ahead = std::numeric_limits<int64_t>::max();
  if (double budget = context.options.memory_budget_gib; budget > 0)
    ahead = int64_t(nearby_budget(budget) * kShareOfBudget * kGiB);
  return bucket_graph(graph, {.most = most, .gathered = std::min(most, ahead), .ahead = most > 0 ? ahead : 0});
}

}  // namespace tokamak
