// What join_projections and join_gates share: products of one input with several weights become one of the weights put
// side by side, forward and in both gradients, where the weights are copies in bf16 or f16 anyway and there are more
// tokens than columns. Within rounding: the input's gradient is one sum. The weights' gradients are in f32 where they
// would be apart: a product that only f32 is made of is stored so, or added onto f32, and never rounded. Tests: those
// of the two passes, and tests/passes/join_products_test.cpp
#pragma once

#include "graph/rewriter.h"
#include "passes/pass.h"

#include <map>
#include <optional>
#include <set>

namespace tokamak {

/// Products of one input, each with a weight (columns, width) of its own, and all with the same attributes.
struct ForwardProducts {
  ValueId input = kNoValue;
  ValueIds weights;
  std::vector<int> products;  // nodes
};

/// Those of the gradients of what such products gave: of the input's gradient, which `sum` adds up, of three terms with
/// `inner` before it, and of the weights, of views of the gradients where there are any.
struct GradientProducts {
  ValueId input = kNoValue;  // of the weights' products
  ValueIds weights;
  std::vector<int> input_products, weight_products;
  std::set<int> views, inner;
  int sum = -1;
  bool is_widened = false;   // what reads the weights' gradients alone reads them in f32:
  std::set<int> casts = {};  // these nodes, and additions onto f32
};

class JoinableProducts {
 public:
  JoinableProducts(const Graph& graph, const Target& target);

  /// Nodes that read the value; none where it leaves the graph.
  std::span<const int> readers(ValueId value) const;
  /// The products that give these values, if they may be joined; who reads the values is not asked.
  std::optional<ForwardProducts> forward(const ValueIds& projected) const;
  /// The products that read these gradients, two or three, if nothing else does and they may be joined.
  std::optional<GradientProducts> gradients(const ValueIds& gradients) const;

 private:
  const Node& node(int n) const { return graph_.nodes()[size_t(n)]; }
  bool is_product(int n, bool trans_a, bool trans_b) const;
  bool are_copies(const ValueIds& weights) const;
  bool pays(ValueId projected, const ValueIds& weights) const;
  bool add_products(ValueId gradient, GradientProducts& found) const;
  bool are_alike(const GradientProducts& found) const;
  bool find_sum(GradientProducts& found) const;
  void find_widened(GradientProducts& found) const;

  const Graph& graph_;
  bool stores_f32_;  // products of 16 bits, without rounding them
  Users users_;
  std::vector<bool> escaping_;
};

/// A pass that joins products: it finds places in the graph, each by a node, and then goes over all nodes of it.
class ProductJoiner {
 public:
  ProductJoiner(const Graph& graph, const PassContext& context)
      : graph_(graph), products_(graph, context.target), rewriter_(graph) {}
  virtual ~ProductJoiner() = default;

  /// Joins what there is to join; whether there was anything.
  bool run(Graph& joined);

 protected:
  /// Asked of each node, in order: take() what is joined there.
  virtual void find(int n) = 0;
  /// Puts something else in place of a node that is the pass's own; false: it is not, and copied.
  virtual bool replace(int n) = 0;

  void take(const ForwardProducts& found, int place);
  /// `place` stands for the gradients until set_gradient().
  void take(const GradientProducts& found, int place);
  bool has_forward(int place) const { return forward_.contains(place); }
  bool has_backward(int place) const { return backward_.contains(place); }

  /// The one product instead of several, of which the last may be anywhere before the node `place`; (..., all columns).
  ValueId product(int place);
  /// The gradients of `place`, side by side as the products' results would be.
  void set_gradient(int place, ValueId gradient) { gradients_[place] = gradient; }

  const Graph& graph() const { return graph_; }
  const Node& node(int n) const { return graph_.nodes()[size_t(n)]; }
  const JoinableProducts& products() const { return products_; }
  Rewriter& rewriter() { return rewriter_; }

 private:
  bool rewrite(int n);
  ValueId side_by_side(const ValueIds& weights, const Node& at);
  void join_sum(const Node& sum, int place);
  void join_weights(int place);

  const Graph& graph_;
  JoinableProducts products_;
  Rewriter rewriter_;
  std::map<int, ForwardProducts> forward_;    // by place
  std::map<int, GradientProducts> backward_;  // by place
  std::map<int, int> sums_, weights_;         // places by last sum, and by products of weights
  std::set<int> replaced_, done_;             // nodes without a place of their own; places whose weights are joined
  std::set<int> casts_;                       // of gradients that are in f32 already
  std::map<int, ValueId> gradients_;          // by place, in the new graph
  std::map<ValueIds, ValueId> joined_;        // weights side by side, likewise
};

}  // namespace tokamak
