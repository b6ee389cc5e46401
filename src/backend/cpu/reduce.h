// Reductions over contiguous floats in a fixed order of 64 lanes, so that they vectorise and give the same bits each
// time.
#pragma once

#include <cstdint>

namespace tokamak::cpu {

float sum(const float* x, int64_t n);
float dot(const float* x, const float* y, int64_t n);
float maximum(const float* x, int64_t n);          // minus infinity for n = 0
double sum_of_squares(const float* x, int64_t n);  // in double: n may be large
void add_to(const float* x, int64_t n, float* sums);
void max_to(const float* x, int64_t n, float* maxima);

}  // namespace tokamak::cpu
