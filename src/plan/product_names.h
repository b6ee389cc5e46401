// What a matrix product multiplies, in the model's words: which parameter, and which of its three products. Found from
// the graph alone, whatever passes have made of it. Tests: tests/plan/product_names_test.cpp.
#pragma once

#include "graph/graph.h"

#include <optional>
#include <span>
#include <string>

namespace tokamak {

/// Of y = x W: y itself, dx = dy W^T and dW = x^T dy.
enum class ProductPart : uint8_t { kForward, kInputGradient, kWeightGradient };

struct NamedProduct {
  std::string parameter;               // of W: "h.0.attn.c_attn.weight"; of several side by side: joined_name()
  const Argument* argument = nullptr;  // W itself, or the first of several; null where the graph has no more than a
                                       // copy or a gradient of it
  ProductPart part = ProductPart::kForward;
  bool again = false;  // computed again in the backward pass
};

class ProductFinder {
 public:
  /// The graph must outlive it.
  explicit ProductFinder(const Graph& graph) : graph_(graph), users_(graph) {}

  /// Of a matmul, a fused_matmul or a row_block; nothing for other nodes, and for products that no parameter is part
  /// of, as those that attention is made of.
  std::optional<NamedProduct> find(const Node& node) const;

 private:
  struct Name {
    std::string parameter;
    const Argument* argument;
  };
  std::optional<Name> name_of(const Argument& argument) const;
  std::optional<Name> name_of_parameter(const std::string& name) const;
  std::string parameter_within(const std::string& state) const;
  std::optional<Name> source_of(ValueId value) const;
  static std::optional<Name> joined(std::span<const std::optional<Name>> parts);
  std::optional<ValueId> copied_from(const Node& node, ValueId output) const;
  std::optional<Name> target_of(ValueId gradient) const;
  std::optional<Name> target_of_whole(ValueId gradient) const;
  std::optional<Name> read_by(const Node& user, ValueId gradient) const;
  std::optional<Name> with_shape(int64_t rows, int64_t columns) const;

  const Graph& graph_;
  Users users_;
};

/// "0.self_attn.q+k+v_proj.weight" of "0.self_attn.q_proj.weight", "0.self_attn.k_proj.weight" and so on: parameters
/// that are one matrix in a product.
std::string joined_name(std::span<const std::string> names);

/// "attn.c_attn", "attn.c_attn again", "attn.c_attn dgrad" (of its input), "attn.c_attn wgrad" (of its weights).
std::string product_label(const NamedProduct& product);

}  // namespace tokamak
