// Products of few rows with a matrix that is read once: y (M, N) = f(a (M, K) b + bias), or addend + a b. What counts
// is to have many loads of b under way. The text before this says Element (of a and b), Output, kM, kN, kK, kBias,
// kAddend, kFunction, finish() and kThreads; kBf16: Element is bf16; kColumns, those of a block where b is (K, N), and kWarpRows, rows of b for
// a warp where it is (N, K); kPrologue: there is no a, but make_rows(), with which each block makes it of RowArguments;
// kEarly: b may be read while the kernel before this one runs. Every sum is made in one order that does not depend on
// M. Of a link of a chain (kLinked; b is (K, N)), kAwaits: an operand is awaited, of which a (kAwaitsGiven), the addend
// (kAwaitsAddend) and what await_rows() awaits of RowArguments.
//
// No parameter is `__restrict__`: the assembler moves loads that are read-only over the wait of begin_kernel().
#include "backend/cuda/kernels/chain.cuh"

namespace tokamak {

constexpr int kVector = 16 / int(sizeof(Element)), kWarps = kThreads / 32;
using Elements = Vector<Element, kVector>;

__device__ inline Elements load_elements(const Element* from) { return *reinterpret_cast<const Elements*>(from); }

/// Until here a word is only loaded: the compiler makes nothing of it before, for which it would have to wait.
__device__ inline void hold(uint32_t& word) { asm volatile("" : "+r"(word)); }
__device__ inline void hold(float& word) { asm volatile("" : "+f"(word)); }
__device__ inline void hold(bf16& x) { asm volatile("" : "+h"(x.bits)); }
__device__ inline void hold(f16& x) { asm volatile("" : "+h"(x.bits)); }

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

/// Rows of a in shared memory, while weights are under way: made, awaited or copied.
__device__ inline void stage_rows(const Element* given, RowArguments& arguments, Element* staged) {
  if (kAwaits && kPrologue) await_rows(arguments);
  if (kPrologue) make_rows(arguments, staged);
  if constexpr (kAwaitsGiven) {
    const Element* const from[] = {given};
    Element* const to[] = {staged};
    await_all<kThreads>(from, to, kM * kK);
  }
#pragma unroll 1
  for (int i = threadIdx.x; !kPrologue && !kAwaitsGiven && i < kM * kK / kVector; i += kThreads)
    reinterpret_cast<Elements*>(staged)[i] = load_elements(given + i * kVector);
  __syncthreads();
}

__device__ inline Output load_addend(const Output* from) { return kAwaitsAddend ? await_element(from) : *from; }

/// y may lie where the addend does.
__device__ inline void store_result(float sum, float bias, float addend, Output& y) {
  if (kBias) sum += bias;
  if (kAddend) sum += addend;
  if (kFunction) sum = finish(rounded<Output>(sum), 0.0f);
  if constexpr (kLinked) {
    Output result;
    from_float(sum, result);
    hand_over(result, &y);
  } else {
    from_float(sum, y);
  }
}

/// A thread's loads of b, in batches, and its sums: kVector columns in every kRows-th row.
struct FmaColumns {
  static constexpr int kLanes = kColumns / kVector, kRows = kThreads / kLanes, kSteps = (kK + kRows - 1) / kRows;
  static constexpr int kMost = kM > 2 ? 4 : 12, kBatch = kSteps < kMost ? kSteps : kMost;  // loads of a thread under way
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

/// The same of 16-bit elements by the tensor cores (PTX ISA, "mma.m16n8k16"), whose 16 rows are columns of b and whose 8
/// columns are rows of a. A thread is (g, t) = (lane / 4, lane % 4) and loads 8 columns of 4 rows of b, which it pairs
/// along k; the 8 g have all columns, kShares times: then each has its share of k, and there is a column of a's for
/// each row of a and share, of which a g takes its own.
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

  __device__ static void multiply_add(float (&sum)[4], const uint32_t (&x)[4], uint2 y) {
    if constexpr (kBf16)
      asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
          "%3};"
          : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
          : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y.x), "r"(y.y));
    else
      asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
          "%3};"
          : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
          : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y.x), "r"(y.y));
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
          const uint32_t pairs[] = {
              __byte_perm(w[i][0][j], w[i][1][j], 0x5410), __byte_perm(w[i][0][j], w[i][1][j], 0x7632),
              __byte_perm(w[i][2][j], w[i][3][j], 0x5410), __byte_perm(w[i][2][j], w[i][3][j], 0x7632)};
#pragma unroll
          for (int p = 0; p < kPasses; ++p) multiply_add(sum[p][j], pairs, x[p]);
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

template <bool kOf>
struct Columns {
  using Type = FmaColumns;
};
template <>
struct Columns<true> {
  using Type = TensorColumns;
};

}  // namespace tokamak

// b as (K, N): a block has kColumns columns. Grid: N / kColumns, up.
extern "C" __global__ void __launch_bounds__(tokamak::kThreads)
    multiply_columns(const tokamak::Element* given, const tokamak::Element* b,
                     const tokamak::Output* bias, const tokamak::Output* addend, tokamak::Output* y,
                     tokamak::RowArguments arguments, tokamak::Emptied emptied) {
  using namespace tokamak;
  using Product = Columns<kTensor>::Type;
  // Rows of a that are not large come to shared memory all at once; else the compiler loads some after others were
  // used.
  constexpr bool kStaged = kPrologue || kAwaitsGiven || kM * kK * int(sizeof(Element)) <= 12 << 10;
  constexpr int kTeam = 4;  // threads of a result
  using Parts = float[Product::kParts][kM][kColumns];
  constexpr int kRowBytes = kStaged ? kM * kK * int(sizeof(Element)) : 0;
  // Sums of many rows take the place of a when all threads have read that.
  constexpr bool kInPlace = kM > 2;
  constexpr int kFree = kInPlace ? 0 : (kRowBytes + 15) / 16 * 16, kSumBytes = kFree + int(sizeof(Parts));
  __shared__ __align__(16) char memory[kRowBytes > kSumBytes ? kRowBytes : kSumBytes];
  auto* staged = reinterpret_cast<Element*>(memory);
  auto& parts = *reinterpret_cast<Parts*>(memory + kFree);
  Product product{b};
  if (kAwaits) begin_link();
  if (kAwaits) fetch_columns(arguments);
  if (kEarly) product.start();
  if (!kAwaits) begin_kernel();
  if (!kEarly) product.start();
  const auto column_of = [&](int result) { return int(blockIdx.x) * kColumns + result % kColumns; };
  const int mine = threadIdx.x / kTeam;  // the first
  const bool finishes = threadIdx.x % kTeam == 0 && mine < kM * kColumns && column_of(mine) < kN;
  Output bias_n{}, addend_n{};  // of the first
  if (kBias && finishes) bias_n = bias[column_of(mine)];
  if (kAddend && finishes) addend_n = load_addend(addend + mine / kColumns * kN + column_of(mine));
  if (kStaged) stage_rows(given, arguments, staged);
  product.multiply(kStaged ? staged : given);
  if (kInPlace) __syncthreads();
  product.put(parts);
  __syncthreads();
  hold(bias_n);
  hold(addend_n);
  for (int result = mine; result < kM * kColumns; result += kThreads / kTeam) {
    int m = result / kColumns, n = column_of(result);
    float total = 0;
#pragma unroll
    for (int part = threadIdx.x % kTeam; part < Product::kParts; part += kTeam)
      total += parts[part][m][result % kColumns];
#pragma unroll
    for (int mask = 1; mask < kTeam; mask *= 2) total += __shfl_xor_sync(0xffffffffu, total, mask);
    if (threadIdx.x % kTeam != 0 || n >= kN) continue;
    int64_t at = int64_t(m) * kN + n;
    if (kBias && result != mine) bias_n = bias[n];
    if (kAddend && result != mine) addend_n = load_addend(addend + at);
    store_result(total, to_float(bias_n), to_float(addend_n), y[at]);
  }
  if constexpr (kLinked)
    end_link<kAwaits>(emptied, int64_t(blockIdx.x) * kThreads + threadIdx.x, int64_t(gridDim.x) * kThreads);
}

// b as (N, K): a warp has kWarpRows rows of b. Grid: N / (kWarps * kWarpRows), up.
extern "C" __global__ void __launch_bounds__(tokamak::kThreads)
    multiply_rows(const tokamak::Element* given, const tokamak::Element* b,
                  const tokamak::Output* bias, const tokamak::Output* addend, tokamak::Output* y,
                  tokamak::RowArguments arguments, tokamak::Emptied emptied) {
  using namespace tokamak;
  constexpr int kVectors = kK / kVector, kSteps = (kVectors + 31) / 32, kBatch = kSteps < 4 ? kSteps : 4;
  constexpr bool kStaged = kPrologue || kAwaitsGiven;
  __shared__ __align__(16) Element staged[kStaged ? kM * kK : 1];
  int lane = threadIdx.x % 32, first = (blockIdx.x * kWarps + threadIdx.x / 32) * kWarpRows;
  Packed<Element, kVector> w[kBatch][kWarpRows];
  const auto load = [&](int begin) {
#pragma unroll
    for (int i = 0; i < kBatch; ++i)
#pragma unroll
      for (int r = 0; r < kWarpRows; ++r) {
        int at = (begin + i) * 32 + lane, n = first + r < kN ? first + r : kN - 1;
        if (at < kVectors) w[i][r] = load_packed<kVector>(b + int64_t(n) * kK + at * kVector);
      }
  };
  if (kAwaits) begin_link();
  if (kAwaits) fetch_columns(arguments);
  if (kEarly) load(0);
  if (!kAwaits) begin_kernel();
  if (!kEarly) load(0);
  if (kStaged) stage_rows(given, arguments, staged);
  const Element* a = kStaged ? staged : given;
  float sum[kM][kWarpRows] = {};
  for (int begin = 0; begin < kSteps; begin += kBatch) {
    if (begin > 0) load(begin);
#pragma unroll
    for (int i = 0; i < kBatch; ++i)
#pragma unroll
      for (int r = 0; r < kWarpRows; ++r)
#pragma unroll
        for (auto& word : w[i][r].words) hold(word);
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      int at = (begin + i) * 32 + lane;
      if (at >= kVectors) continue;
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        Elements x = load_elements(a + m * kK + at * kVector);
#pragma unroll
        for (int r = 0; r < kWarpRows; ++r)
#pragma unroll
          for (int v = 0; v < kVector; ++v) sum[m][r] = fmaf(to_float(x[v]), w[i][r][v], sum[m][r]);
      }
    }
  }
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int r = 0; r < kWarpRows; ++r) {
#pragma unroll
      for (int mask = 16; mask > 0; mask /= 2) sum[m][r] += __shfl_xor_sync(0xffffffffu, sum[m][r], mask);
      int64_t n = first + r, at = m * int64_t(kN) + n;
      if (lane == m * kWarpRows + r && n < kN)
        store_result(sum[m][r], kBias ? to_float(bias[n]) : 0, kAddend ? to_float(load_addend(addend + at)) : 0,
                     y[at]);
    }
  if constexpr (kLinked)
    end_link<kAwaits>(emptied, int64_t(blockIdx.x) * kThreads + threadIdx.x, int64_t(gridDim.x) * kThreads);
}
