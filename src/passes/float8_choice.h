// Which products float8_products gives operands of eight bits, and where those are made.
// Tests: tests/passes/float8_products_test.cpp
#pragma once

#include "passes/pass.h"
#include "passes/product_use.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tokamak {

/// Of a graph on which the pass has not run.
struct Float8Uses {
  std::map<int, ProductUse> products;  // by node
  /// What is rounded to eight bits for their operands, weights apart, and whether it is a gradient: the operands
  /// themselves, or what views of them show.
  std::map<ValueId, bool> sources;
  std::map<int, ValueId> hidden;  // by product: GELU of it, which is stored in eight bits
  /// Sources that are gathered over ranks, and views of them, which nothing else reads: gathered in eight bits. Where
  /// something else reads what is gathered, that is the source.
  std::set<ValueId> narrow;
};
Float8Uses choose_float8(const Graph& graph, const PassContext& context);

/// What the pass makes of a product, and why it leaves it.
enum class Float8Choice : uint8_t {
  kEightBits,
  kNumbersSaid,    // the node says its numbers already
  kSizes,          // no multiples of 16
  kCastsTakeMore,  // than the product would save
  kRangeUnknown,   // of an operand
  kSlowerHere,     // in eight bits, as was measured (tune/tune.h)
  kExcepted,       // compile.fp8_except has its weight's kind
};

/// By node; none where it is no product.
std::vector<std::optional<Float8Choice>> float8_choices(const Graph& graph, const PassContext& context);

/// What tuning.slow_forms has of a product that is left in bf16, as it was measured to be faster with all that it
/// takes: its sizes, and whether it is of the forward pass. Of a matmul, a fused_matmul or a classifier, before the
/// pass and behind it; nothing of other nodes.
std::optional<std::string> float8_key(const Graph& graph, const Node& node);
/// Whether an operand has eight bits.
bool has_float8_operand(const Graph& graph, const Node& node);

/// Null: it is an argument.
const Node* maker_of(const Graph& graph, ValueId value);
/// The value whose elements views and gathers show.
ValueId origin_of(const Graph& graph, ValueId value);
/// The norm that makes the elements of a value; null where it is something else.
const Node* norm_behind(const Graph& graph, ValueId value);
/// Whether a chosen product's left operand is a gradient.
bool reads_gradient(const Node& node, ProductUse use);

}  // namespace tokamak
