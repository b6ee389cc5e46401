#include "passes/chunked_classifier.h"

#include "base/divide.h"
#include "graph/rewriter.h"
#include "ops/classifier.h"
#include "ops/collective.h"
#include "ops/cross_entropy.h"
#include "ops/matmul.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace tokamak {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;
constexpr double kMostBytes = 2 * kGib;
constexpr double kChunksInBudget = 4;   // of the memory budget, a chunk takes at most one part in so many
constexpr int64_t kFewestRows = 2048;   // enough to keep a GPU's matmul units busy
constexpr int64_t kRowsMultiple = 256;  // tiles of those matmuls

// The nodes of one classifier, by index.
struct Match {
  int logits, loss, dlogits, dx, dweight;
  std::vector<int> before;  // make the losses' gradient but stand after the loss
  std::vector<int> again;   // gather the matrix once more, for this alone
};

class ClassifierFinder {
 public:
  explicit ClassifierFinder(const Graph& graph)
      : graph_(graph), users_(find_users(graph)), escaping_(find_escaping(graph)) {}

  std::optional<Match> match(int n) const {
    const Node& grad = node(n);
    if (grad.op != &op::cross_entropy_grad) return {};
    Match m{graph_.producer(grad.inputs[0]), graph_.producer(grad.inputs[2]), n, -1, -1, {}, {}};
    if (m.logits < 0 || m.loss < 0 || !is_product(node(m.logits), false, true)) return {};
    const Node &logits = node(m.logits), &loss = node(m.loss);
    bool same_rows = loss.op == &op::cross_entropy && loss.inputs[0] == grad.inputs[0] &&
                     loss.inputs[1] == grad.inputs[1] && loss.outputs[1] == grad.inputs[2] && loss.attrs == grad.attrs;
    if (!same_rows || !is_read_by(logits.outputs[0], {m.loss, n}) || !is_read_by(loss.outputs[1], {n})) return {};
    if (!find_gradients(logits, m) || !find_before(grad.inputs[3], m)) return {};
    if (node(m.dx).inputs[1] != logits.inputs[1]) find_again(m);
    return m;
  }

 private:
  const Node& node(int n) const { return graph_.nodes()[size_t(n)]; }

  bool is_product(const Node& node, bool trans_a, bool trans_b) const {
    return node.op == &op::matmul && node.attrs.get_bool("trans_a") == trans_a &&
           node.attrs.get_bool("trans_b") == trans_b && graph_.shape(node.inputs[0]).size() == 2 &&
           graph_.shape(node.inputs[1]).size() == 2;
  }

  bool is_read_by(ValueId value, const std::vector<int>& readers) const {
    return !escaping_[size_t(value)] && std::ranges::equal(users_[size_t(value)], readers);
  }

  bool find_gradients(const Node& logits, Match& m) const {
    ValueId dlogits = node(m.dlogits).outputs[0];
    if (escaping_[size_t(dlogits)] || users_[size_t(dlogits)].size() != 2) return false;
    for (int user : users_[size_t(dlogits)]) {
      const Node& product = node(user);
      if (product.inputs[0] != dlogits) continue;
      if (is_product(product, false, false) && is_same_matrix(product.inputs[1], logits.inputs[1])) m.dx = user;
      if (is_product(product, true, false) && product.inputs[1] == logits.inputs[0]) m.dweight = user;
    }
    return m.dx >= 0 && m.dweight >= 0;
  }

  // A parameter that ZeRO cuts is gathered once for each pass; here one of them serves both.
  bool is_same_matrix(ValueId a, ValueId b) const {
    if (a == b) return true;
    int maker_a = graph_.producer(a), maker_b = graph_.producer(b);
    if (maker_a < 0 || maker_b < 0) return false;
    const Node &by_a = node(maker_a), &by_b = node(maker_b);
    return by_a.op == &op::all_gather && by_b.op == &op::all_gather && by_a.attrs == by_b.attrs &&
           is_same_matrix(by_a.inputs[0], by_b.inputs[0]);
  }

  void find_again(Match& m) const {
    ValueId matrix = node(m.dx).inputs[1];
    for (int reader = m.dx, n = graph_.producer(matrix); n >= 0 && is_read_by(matrix, {reader});
         n = graph_.producer(matrix)) {
      if (node(n).op != &op::all_gather) break;
      m.again.push_back(n);
      reader = n;
      matrix = node(n).inputs[0];
    }
  }

  bool find_before(ValueId dloss, Match& m) const {
    ValueIds open{dloss};
    std::set<int> found;
    while (!open.empty()) {
      int n = graph_.producer(open.back());
      open.pop_back();
      if (n == m.loss || n == m.logits) return false;
      if (n < m.loss || !found.insert(n).second) continue;
      if (node(n).op == &op::cross_entropy) return false;  // a later loss: may become a classifier itself
      if (node(n).op->effects) return false;               // stays where it is
      open.insert(open.end(), node(n).inputs.begin(), node(n).inputs.end());
    }
    m.before.assign(found.begin(), found.end());
    return true;
  }

  const Graph& graph_;
  Users users_;
  std::vector<bool> escaping_;
};

class ClassifierMaker {
 public:
  ClassifierMaker(const Graph& graph, const PassContext& context)
      : graph_(graph), rewriter_(graph), done_(graph.nodes().size(), false),
        most_bytes_(most_logit_bytes(context.options)) {
    if (is_low(context.options.precision)) element_bytes_ = 2;
  }

  bool find() {
    ClassifierFinder finder(graph_);
    for (size_t n = 0; n < graph_.nodes().size(); ++n)
      if (std::optional<Match> match = finder.match(int(n))) {
        for (int gone : {match->logits, match->dlogits, match->dx, match->dweight}) done_[size_t(gone)] = true;
        for (int gone : match->again) done_[size_t(gone)] = true;
        matches_.emplace(match->loss, std::move(*match));
      }
    return !matches_.empty();
  }

  Graph run() {
    for (size_t n = 0; n < graph_.nodes().size(); ++n)
      if (auto match = matches_.find(int(n)); match != matches_.end())
        emit(match->second);
      else
        copy(int(n));
    return rewriter_.finish();
  }

 private:
  const Node& node(int n) const { return graph_.nodes()[size_t(n)]; }

  void copy(int n) {
    if (done_[size_t(n)]) return;
    done_[size_t(n)] = true;
    rewriter_.copy(node(n));
  }

  void emit(const Match& m) {
    for (int n : m.before) copy(n);
    const Node &logits = node(m.logits), &grad = node(m.dlogits);
    const Shape& shape = graph_.shape(logits.outputs[0]);
    int64_t chunk = choose_chunk(shape[0], shape[1] * element_bytes_, most_bytes_);
    Attrs attrs = grad.attrs;
    attrs.set("chunk", chunk);
    ValueIds made = rewriter_.in_place_of(grad).add(
        op::classifier, rewriter_.map(ValueIds{logits.inputs[0], logits.inputs[1], grad.inputs[1], grad.inputs[3]}),
        attrs);
    rewriter_.replace(node(m.loss).outputs[0], made[0]);
    rewriter_.replace(node(m.dx).outputs[0], made[1]);
    rewriter_.replace(node(m.dweight).outputs[0], made[2]);
  }

  const Graph& graph_;
  Rewriter rewriter_;
  std::map<int, Match> matches_;  // by the node of the loss
  std::vector<bool> done_;        // by node: copied early, or replaced
  int64_t element_bytes_ = 4;
  double most_bytes_;
};

}  // namespace

double most_logit_bytes(const CompileConfig& options) {
  double budget = options.memory_budget_gib * kGib;
  return budget > 0 ? std::min(kMostBytes, budget / kChunksInBudget) : kMostBytes;
}

int64_t choose_chunk(int64_t rows, int64_t row_bytes, double limit_bytes) {
  int64_t most = std::max(kFewestRows, int64_t(limit_bytes / double(row_bytes)));
  if (most >= rows) return rows;
  for (int64_t chunk = most / kRowsMultiple * kRowsMultiple; chunk >= kFewestRows; chunk -= kRowsMultiple)
    if (rows % chunk == 0) return chunk;
  int64_t even = ceil_div(rows, ceil_div(rows, most));
  return std::min(most, round_up(even, kRowsMultiple));
}

bool chunked_classifier(Graph& graph, const PassContext& context) {
  ClassifierMaker maker(graph, context);
  if (!maker.find()) return false;
  graph = maker.run();
  return true;
}

}  // namespace tokamak
