// Reductions over contiguous floats in a fixed order of 64 lanes, so that they vectorise and give the same bits each
// time.
#pragma once

#include <array>
#include <cstdint>

namespace tokamak::cpu {

/// A sum along a row that comes in pieces: the same bits however it is cut, where every piece but the last has a
/// multiple of 64 elements. Products are rounded before they are added, as if they had been stored.
class RowSum {
 public:
  void add(const float* x, int64_t n);
  void add_products(const float* x, const float* y, int64_t n);
  float total() const;

 private:
  static constexpr int64_t kLength = 64;
  template <typename Terms>
  void add_terms(const Terms& terms, int64_t n);

  alignas(64) std::array<float, kLength> lanes_ = {};
  std::array<float, kLength> tail_;  // what follows the last whole 64
  int64_t tail_size_ = 0;
};

float maximum(const float* x, int64_t n);          // minus infinity for n = 0
double sum_of_squares(const float* x, int64_t n);  // in double: n may be large
void add_to(const float* x, int64_t n, float* sums);
void max_to(const float* x, int64_t n, float* maxima);

}  // namespace tokamak::cpu
