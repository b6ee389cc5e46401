// Attention of one token to the keys of a block, as a step of generation has it: what 512 threads do with those that
// are in the cache. The text before this says Element (of qkv), Cached, kHeadDim and kTensor: the tensor cores
// multiply, where Element is Cached, has 16 bits, and kHeadDim is 64. Both have
//   start(): asks for the first keys and values, before the query is there;  attend(query, scale): finds the softmax
// and what it weighs;  put(parts): stores what a warp has found. Scores are in units of log(2).
#pragma once

#include "backend/cuda/kernels/mma.cuh"
#include "backend/cuda/kernels/scalar_float.cuh"

namespace tokamak {

constexpr int kThreads = 512, kParts = kThreads / 32;
constexpr float kNone = __builtin_bit_cast(float, 0xff800000u);  // minus infinity: the score of no key

/// Keys of a head in the cache.
struct Keys {
  const Cached* first;
  int64_t width;  // from a key to its value; twice that from a key to the next
  int count;      // up to 0: there are none

  __device__ const Cached* at(int j) const { return first + int64_t(j) * 2 * width; }
};

/// The factor of sums whose top was `from`.
__device__ inline float rescale(float from, float to) { return to == kNone ? 0.0f : scalar::power_of_two(from - to); }

/// What each warp found: its largest score, the sum of 2^(score - top), and the values weighed by those.
struct Parts {
  static constexpr int kRow = (kHeadDim + 7) / 4 * 4;  // padded: a multiple of 32 words would have all parts in one bank
  float top[kParts], sum[kParts];
  alignas(16) float value[kParts][kRow];
};

/// The new token, which each block has in shared memory, and what it adds to Parts: its score, a sum of 1, its value.
struct Token {
  alignas(16) Element query[kHeadDim];
  Cached key[kHeadDim], value[kHeadDim];
  float score;

  /// By one warp.
  __device__ void find_score(float scale) {
    float sum = 0;
    for (int c = threadIdx.x % 32; c < kHeadDim; c += 32) sum = fmaf(to_float(query[c]), to_float(key[c]), sum);
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    if (threadIdx.x % 32 == 0) score = sum * scale;
  }
};

constexpr int kTeam = 8;  // threads of a column of the result

/// A column of what all parts and the token found, by a team of threads, which all have it then.
struct Column {
  float top, sum = 0, value = 0;

  __device__ Column(const Parts& parts, const Token& token, int column) : top(token.score) {
    const int first = threadIdx.x % kTeam;
#pragma unroll
    for (int part = first; part < kParts; part += kTeam) top = fmaxf(top, parts.top[part]);
#pragma unroll
    for (int mask = 1; mask < kTeam; mask *= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, mask));
#pragma unroll
    for (int part = first; part < kParts; part += kTeam)
      add(parts.top[part], parts.sum[part], parts.value[part][column]);
#pragma unroll
    for (int mask = 1; mask < kTeam; mask *= 2) {
      sum += __shfl_xor_sync(0xffffffffu, sum, mask);
      value += __shfl_xor_sync(0xffffffffu, value, mask);
    }
    add(token.score, 1, to_float(token.value[column]));
  }
  __device__ void add(float of_top, float of_sum, float of_value) {
    float weight = rescale(of_top, top);
    sum = fmaf(weight, of_sum, sum);
    value = fmaf(weight, of_value, value);
  }
};

constexpr int largest_load() {
  int n = 16 / int(sizeof(Cached));
  while (kHeadDim % n != 0) n /= 2;
  return n;
}
constexpr int lanes_of_key(int load) {
  int lanes = 1;
  while (lanes < 32 && lanes * load < kHeadDim) lanes *= 2;
  return lanes;
}

/// A key is shared by kLanes threads.
struct FmaKeys {
  static constexpr int kLoad = largest_load();  // elements
  static constexpr int kLanes = lanes_of_key(kLoad), kLoads = (kHeadDim / kLoad + kLanes - 1) / kLanes;
  static constexpr int kAtOnce = kThreads / kLanes;  // keys
  static constexpr int kAhead = 5;                   // keys and values of a thread that are under way
  using Loaded = Vector<Cached, kLoad>;

  Keys keys;
  int lane = threadIdx.x % kLanes, group = threadIdx.x / kLanes;
  Loaded k[kAhead][kLoads], v[kAhead][kLoads];
  float top = kNone, sum = 0, value[kLoads][kLoad] = {};

  /// Column of element 0 of load l; from kHeadDim on there is none.
  __device__ int column_of(int l) const { return (l * kLanes + lane) * kLoad; }

  /// Key j and every kAtOnce-th from there.
  __device__ void load(int j) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i, j += kAtOnce)
#pragma unroll
      for (int l = 0; l < kLoads; ++l) {
        k[i][l] = v[i][l] = Loaded{};
        if (j >= keys.count || column_of(l) >= kHeadDim) continue;
        const Cached* from = keys.at(j) + column_of(l);
        k[i][l] = *reinterpret_cast<const Loaded*>(from);
        v[i][l] = *reinterpret_cast<const Loaded*>(from + keys.width);
      }
  }
  __device__ void start() { load(group); }

  __device__ void raise(float to) {
    float x = rescale(top, to);
    top = to;
    sum *= x;
#pragma unroll
    for (int l = 0; l < kLoads; ++l)
#pragma unroll
      for (int c = 0; c < kLoad; ++c) value[l][c] *= x;
  }

  __device__ void attend(const Element* query, float scale) {
    float q[kLoads][kLoad];
#pragma unroll
    for (int l = 0; l < kLoads; ++l)
#pragma unroll
      for (int c = 0; c < kLoad; ++c)
        q[l][c] = column_of(l) < kHeadDim ? to_float(query[column_of(l) + c]) * scale : 0.0f;
#pragma unroll 1
    for (int j = group; __any_sync(0xffffffffu, j < keys.count);) {
      float score[kAhead], largest = top;
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        score[i] = 0;
#pragma unroll
        for (int l = 0; l < kLoads; ++l)
#pragma unroll
          for (int c = 0; c < kLoad; ++c) score[i] = fmaf(q[l][c], to_float(k[i][l][c]), score[i]);
#pragma unroll
        for (int mask = kLanes / 2; mask > 0; mask /= 2) score[i] += __shfl_xor_sync(0xffffffffu, score[i], mask);
        if (j + i * kAtOnce >= keys.count) score[i] = kNone;
        largest = fmaxf(largest, score[i]);
      }
      raise(largest);
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        float weight = rescale(score[i], top);
        sum += weight;
#pragma unroll
        for (int l = 0; l < kLoads; ++l)
#pragma unroll
          for (int c = 0; c < kLoad; ++c) value[l][c] = fmaf(weight, to_float(v[i][l][c]), value[l][c]);
      }
      j += kAhead * kAtOnce;
      if (__any_sync(0xffffffffu, j < keys.count)) load(j);
    }
  }

  /// Adds what the thread at this distance has found.
  __device__ void add_lane(int mask) {
    raise(fmaxf(top, __shfl_xor_sync(0xffffffffu, top, mask)));  // both do
    sum += __shfl_xor_sync(0xffffffffu, sum, mask);
#pragma unroll
    for (int l = 0; l < kLoads; ++l)
#pragma unroll
      for (int c = 0; c < kLoad; ++c) value[l][c] += __shfl_xor_sync(0xffffffffu, value[l][c], mask);
  }
  __device__ void put(Parts& parts) {
#pragma unroll 1
    for (int mask = kLanes; mask < 32; mask *= 2) add_lane(mask);
    int warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) parts.top[warp] = top, parts.sum[warp] = sum;
    if (threadIdx.x % 32 >= kLanes) return;
#pragma unroll
    for (int l = 0; l < kLoads; ++l)
#pragma unroll
      for (int c = 0; c < kLoad; ++c)
        if (column_of(l) < kHeadDim) parts.value[warp][column_of(l) + c] = value[l][c];
  }
};

/// A warp has tiles of 16 keys; a thread of it is (g, t) as in kernels/mma.cuh. Scores are keys (16 rows) times the
/// query, which all eight columns have, so that each thread has those of keys g and g + 8. What they weigh is the
/// values, turned, times the weights, each as two numbers of 16 bits: column 0 has the weight, column 1 what its
/// rounding left, and the others nothing. Each of four products has 16 of a head's columns.
template <typename T>  // Element and Cached
struct TensorKeys {
  static constexpr int kTile = 16, kAtOnce = kParts * kTile;  // keys
  static constexpr int kAhead = 2;                            // tiles of a warp that are under way

  Keys keys;
  int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, warp = threadIdx.x / 32;
  uint32_t k[kAhead][2][2][4];  // columns 8 t and 32 + 8 t of keys g and g + 8
  uint32_t v[kAhead][4][4];     // columns 8 g of values 2t, 2t + 8, 2t + 1, 2t + 9
  float top = kNone, sum = 0, value[4][4] = {};

  __device__ int key_of(int half) const { return g + 8 * half; }
  __device__ int value_of(int r) const { return 2 * t + r / 2 + 8 * (r % 2); }

  __device__ static void copy(const T* from, uint32_t (&to)[4]) {
    uint4 x = *reinterpret_cast<const uint4*>(from);
    to[0] = x.x, to[1] = x.y, to[2] = x.z, to[3] = x.w;
  }
  __device__ void copy_key(const T* from, uint32_t (&to)[2][4]) {
#pragma unroll
    for (int l = 0; l < 2; ++l) copy(from + l * 32 + t * 8, to[l]);
  }

  /// The tile that begins with key j, and every kAtOnce keys from there. What is not in the cache is 0.
  __device__ void load(int j) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i, j += kAtOnce) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int l = 0; l < 2; ++l) k[i][half][l][0] = k[i][half][l][1] = k[i][half][l][2] = k[i][half][l][3] = 0;
        if (j + key_of(half) < keys.count) copy_key(keys.at(j + key_of(half)), k[i][half]);
      }
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        v[i][r][0] = v[i][r][1] = v[i][r][2] = v[i][r][3] = 0;
        if (j + value_of(r) < keys.count) copy(keys.at(j + value_of(r)) + keys.width + g * 8, v[i][r]);
      }
    }
  }
  __device__ void start() { load(warp * kTile); }

  __device__ void raise(float to) {
    float x = rescale(top, to);
    top = to;
    sum *= x;
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (float& y : value[j]) y *= x;
  }

  __device__ void add_values(const float (&weight)[2], int i) {
    Vector<T, 2> high, low;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      from_float(weight[half], high[half]);
      from_float(weight[half] - to_float(high[half]), low[half]);
    }
    // A row's four threads offer what columns 0, 1 and the others take.
    uint32_t pair = t == 0 ? std::bit_cast<uint32_t>(high) : t == 1 ? std::bit_cast<uint32_t>(low) : 0u;
    int from = 8 * t + (g < 2 ? g : 2);
    uint2 y = {__shfl_sync(0xffffffffu, pair, from), __shfl_sync(0xffffffffu, pair, from + 4)};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      uint2 first = pair_rows(v[i][0][j], v[i][1][j]), second = pair_rows(v[i][2][j], v[i][3][j]);
      multiply_16x8x16<T>(value[j], {first.x, first.y, second.x, second.y}, y);
    }
  }

  __device__ void attend(const Element* query, float scale) {
    uint32_t q[2][4];
    copy_key(query, q);
#pragma unroll 1
    for (int j = warp * kTile; j < keys.count;) {
      float score[kAhead][2], largest = top;
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        int first = j + i * kAtOnce;
        score[i][0] = score[i][1] = kNone;
        if (i > 0 && first >= keys.count) break;
        float product[4] = {};
#pragma unroll
        for (int l = 0; l < 2; ++l)
#pragma unroll
          for (int w = 0; w < 4; w += 2)
            multiply_16x8x16<T>(product, {k[i][0][l][w], k[i][1][l][w], k[i][0][l][w + 1], k[i][1][l][w + 1]},
                                {q[l][w], q[l][w + 1]});
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          score[i][half] = first + key_of(half) < keys.count ? product[2 * half] * scale : kNone;
          largest = fmaxf(largest, score[i][half]);
        }
      }
#pragma unroll
      for (int mask = 4; mask < 32; mask *= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, mask));
      raise(largest);
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        if (i > 0 && j + i * kAtOnce >= keys.count) break;
        const float weight[2] = {rescale(score[i][0], top), rescale(score[i][1], top)};
        sum += weight[0] + weight[1];
        add_values(weight, i);
      }
      j += kAhead * kAtOnce;
      if (j < keys.count) load(j);
    }
  }

  __device__ void put(Parts& parts) {
#pragma unroll
    for (int mask = 4; mask < 32; mask *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    if (threadIdx.x % 32 == 0) parts.top[warp] = top, parts.sum[warp] = sum;
    if (t != 0) return;
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        parts.value[warp][g * 8 + 2 * j + half] = value[j][2 * half] + value[j][2 * half + 1];
  }
};

using BlockKeys = std::conditional_t<kTensor, TensorKeys<Element>, FmaKeys>;

}  // namespace tokamak
