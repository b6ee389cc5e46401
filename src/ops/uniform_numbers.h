// The uniform numbers of random_uniform's and dropout's elements.
#pragma once

#include "base/dropout_random.h"
#include "graph/op_def.h"
#include "ops/element_place.h"
#include "ops/generate.h"

namespace tokamak {

/// Throws where rng is not as the attributes ask for, or `matrix`, if it is there, does not divide the whole of which a
/// tensor of this shape is a part.
void check_numbers(const NodeSpec& spec, const ValueType& rng, const Shape& shape);

/// Those of a tensor in a step, multiples of 2^-15 in [0, 1): dropout_numbers() of its elements, or with the attribute
/// `matrix`, (rows, columns), MatrixRandom's of its matrices. Of a part (ops/element_place.h), those of the whole.
class UniformNumbers {
 public:
  /// `rng` gives the node's numbers, (seed, step, coordinates).
  template <typename Rng>
  UniformNumbers(const Attrs& attrs, const Rng& rng)
      : place_(attrs, rng), key_(step_key(int32_t(rng[0]), int32_t(rng[1]))),
        random_stream_(uint64_t(attrs.get_int(kRandomStream))), matrix_(attrs.find("matrix") != nullptr),
        rows_(matrix_ ? attrs.get_ints("matrix")[0] : 1), columns_(matrix_ ? attrs.get_ints("matrix")[1] : 1),
        random_(key_, random_stream_, columns_) {}

  float operator()(int64_t element) const {
    element = place_(element);
    if (!matrix_) return scaled(dropout_numbers(key_, uint64_t(element / 8), random_stream_)[size_t(element % 8)]);
    int64_t row = element / columns_;
    return scaled(random_(row / rows_, row % rows_, element % columns_));
  }
  static float scaled(uint32_t number) { return float(number) / kDropoutRange; }

 private:
  ElementPlace place_;
  uint64_t key_, random_stream_;
  bool matrix_;
  int64_t rows_, columns_;
  MatrixRandom random_;
};

}  // namespace tokamak
