// Products of few rows: what a block does with its kColumns columns of b (K, N), of which each thread has some loads
// under way. The text before this says what kernels/thin.cuh expects, kColumns and kTensor: the tensor cores multiply,
// elements of 16 bits, at most kMostAhead tiles of a warp being under way. Both have
//   start(): asks for the first rows of b;  multiply(a): makes a thread's sums;  put(parts): stores them, kParts of
// each.
#pragma once

#include "backend/cuda/kernels/mma.cuh"
#include "backend/cuda/kernels/thin.cuh"

namespace tokamak {

/// Which of the kVector columns of a thread it has the sums of.
struct Share {
  int first, count;
};

/// Sums over the threads of a warp that have the same columns, every kLanes-th one. In each round a thread gives half
/// of its sums to another, whose other half it takes. Several may end with the same one.
template <int kLanes>
__device__ inline Share add_columns(float (&sum)[kVector]) {
  Share mine{0, kVector};
#pragma unroll
  for (int mask = 16; mask >= kLanes; mask /= 2) {
    bool upper = threadIdx.x & mask;
    int half = mine.count / 2;
    if (half == 0) sum[0] += __shfl_xor_sync(0xffffffffu, sum[0], mask);
#pragma unroll
    for (int v = 0; v < half; ++v) {
      float kept = upper ? sum[half + v] : sum[v], given = upper ? sum[v] : sum[half + v];
      sum[v] = kept + __shfl_xor_sync(0xffffffffu, given, mask);
    }
    if (half > 0) mine = {mine.first + (upper ? half : 0), half};
  }
  return mine;
}

/// A thread's loads of b, in batches, and its sums: kVector columns in every kRows-th row.
struct FmaColumns {
  static constexpr int kLanes = kColumns / kVector, kRows = kThreads / kLanes, kSteps = (kK + kRows - 1) / kRows;
  static constexpr int kMost = kM > 2 ? 4 : 12, kBatch = kSteps < kMost ? kSteps : kMost;  // loads under way
  static constexpr bool kWhole = kK % (kRows * kBatch) == 0 && kN % kColumns == 0;
  static constexpr int kParts = kWarps;

  const Element* b;
  int lane = threadIdx.x % kLanes, first_row = threadIdx.x / kLanes;
  int column = blockIdx.x * kColumns + lane * kVector, rows = column < kN ? kK : 0;
  Packed<Element, kVector> w[kBatch];
  float sum[kM][kVector] = {};

  __device__ void load(int begin) {
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      int k = (begin + i) * kRows + first_row;
      if (kWhole || k < rows) w[i] = load_packed<kVector>(b + int64_t(k) * kN + column);
    }
  }
  __device__ void start() { load(0); }

  __device__ void multiply(const Element* a) {
    for (int begin = 0; begin < kSteps; begin += kBatch) {
      if (begin > 0) load(begin);
#pragma unroll
      for (int i = 0; i < kBatch; ++i)
#pragma unroll
        for (auto& word : w[i].words) hold(word);
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        int k = (begin + i) * kRows + first_row;
        if (!kWhole && k >= rows) continue;
#pragma unroll
        for (int m = 0; m < kM; ++m) {
          float x = to_float(a[m * kK + k]);
#pragma unroll
          for (int v = 0; v < kVector; ++v) sum[m][v] = fmaf(x, w[i][v], sum[m][v]);
        }
      }
    }
  }

  __device__ void put(float (&parts)[kParts][kM][kColumns]) {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
      Share mine = add_columns<kLanes>(sum[m]);
#pragma unroll
      for (int v = 0; v < mine.count; ++v) parts[threadIdx.x / 32][m][lane * kVector + mine.first + v] = sum[m][v];
    }
  }
};

/// The same of 16-bit elements by the tensor cores (kernels/mma.cuh), whose 16 rows are columns of b and whose 8
/// columns are rows of a. A thread (g, t) loads 8 columns of 4 rows of b, which it pairs along k; the 8 g have all
/// columns, kShares times: then each has its share of k, and there is a column of a's for each row of a and share, of
/// which a g takes its own.
template <typename T>  // Element
struct TensorColumns {
  static constexpr int kShares = 64 / kColumns, kTileRows = 16 * kShares, kRows = kWarps * kTileRows;
  static constexpr int kSteps = (kK + kRows - 1) / kRows, kPasses = (kM * kShares + 7) / 8;
  static constexpr int kAhead = kSteps < kMostAhead ? kSteps : kMostAhead;  // tiles under way
  static constexpr bool kWhole = kK % kRows == 0 && kN % kColumns == 0;
  static constexpr int kParts = kWarps * kShares;

  const Element* b;
  int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, warp = threadIdx.x / 32;
  int share = g / (kColumns / 8), column = g % (kColumns / 8) * 8;  // in the block
  bool inside = int(blockIdx.x) * kColumns + column < kN;
  uint32_t w[kAhead][4][4];
  float sum[kPasses][4][4] = {};

  __device__ int first_row(int step, int of_share) const {
    return step * kRows + warp * kTileRows + of_share * 16 + t * 4;
  }
  __device__ void load(int step, uint32_t (&tile)[4][4]) {
    int k = first_row(step, share);
    bool there = kWhole || (inside && k < kK);
    const Element* from = b + int64_t(k) * kN + blockIdx.x * kColumns + column;
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      uint4 v = there ? *reinterpret_cast<const uint4*>(from + int64_t(r) * kN) : uint4{};
      tile[r][0] = v.x, tile[r][1] = v.y, tile[r][2] = v.z, tile[r][3] = v.w;
    }
  }
  __device__ void start() {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) load(i, w[i]);
  }

  __device__ void multiply(const Element* a) {
#pragma unroll 1
    for (int begin = 0; begin < kSteps; begin += kAhead)
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        int step = begin + i;
        if (kSteps % kAhead != 0 && step >= kSteps) break;
        uint2 x[kPasses];
#pragma unroll
        for (int p = 0; p < kPasses; ++p) {
          int column_of_a = p * 8 + g, k = first_row(step, column_of_a % kShares);
          bool there = column_of_a < kM * kShares && (kWhole || k < kK);
          x[p] = there ? *reinterpret_cast<const uint2*>(a + column_of_a / kShares * kK + k) : uint2{};
        }
#pragma unroll
        for (int r = 0; r < 4; ++r)
#pragma unroll
          for (uint32_t& word : w[i][r]) hold(word);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          uint2 first = pair_rows(w[i][0][j], w[i][1][j]), second = pair_rows(w[i][2][j], w[i][3][j]);
#pragma unroll
          for (int p = 0; p < kPasses; ++p)
            multiply_16x8x16<T>(sum[p][j], {first.x, first.y, second.x, second.y}, x[p]);
        }
        if (step + kAhead < kSteps) load(step + kAhead, w[i]);
      }
  }

  __device__ void put(float (&parts)[kParts][kM][kColumns]) {
#pragma unroll
    for (int p = 0; p < kPasses; ++p)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        int column_of_a = p * 8 + 2 * t + i;
        if (column_of_a % kShares != share || column_of_a >= kM * kShares) continue;
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
          for (int h = 0; h < 2; ++h)
            parts[warp * kShares + share][column_of_a / kShares][column + 2 * j + h] = sum[p][j][2 * h + i];
      }
  }
};

using Columns = std::conditional_t<kTensor, TensorColumns<Element>, FmaColumns>;

}  // namespace tokamak
