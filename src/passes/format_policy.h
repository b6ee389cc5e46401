// Which number formats each product of a step gets: the one place where that is decided. autocast asks for every
// product and writes the answer on its node; whatever prices, fuses, measures or computes the node goes by that. Tests:
// tests/passes/format_policy_test.cpp
#pragma once

#include "config/precision.h"
#include "ops/matmul_formats.h"
#include "passes/product_use.h"

#include <functional>

namespace tokamak {

/// A node of the class Autocast::kLow in the step before its operands are cast.
struct Product {
  const Graph& graph;
  const Node& node;
  ProductUse use = ProductUse::kForward;
};

/// Pure. Of attention and the classifier, which are several products, `a` holds for all operands and nothing else
/// counts.
using FormatPolicy = std::function<MatmulFormats(const Product&)>;

/// One format for all: what a run of this precision, a resolved one, has on the target. TF32 needs units for it.
FormatPolicy policy_of(Precision precision, const Target& target);

/// Formats by what a product is for.
FormatPolicy policy_by_use(const MatmulFormats& forward, const MatmulFormats& input_gradient,
                           const MatmulFormats& weight_gradient);

}  // namespace tokamak
