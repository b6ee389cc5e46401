// Runs graphs on the GPU backend and compares with the interpreter. Every GPU test begins with
//   if (!has_gpu()) GTEST_SKIP() << kNoGpu;
#pragma once

#include "backend/cuda/cuda_backend.h"
#include "exec/program.h"
#include "graph/text.h"
#include "ops/host_storage.h"
#include "ops/interpret.h"
#include "plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <vector>

namespace tokamak::test {

inline constexpr const char* kNoGpu = "there is no GPU here";

inline bool has_gpu() { return cuda::device_count() > 0; }

/// For kernels that use what only compute capability 9.0 has.
inline constexpr const char* kNoHopper = "no GPU of compute capability 9.0 here";

inline bool has_hopper() {
  if (!has_gpu()) return false;
  cuda::DeviceInfo info = cuda::describe_device(0);
  return info.major == 9 && info.minor == 0;
}

/// A backend on device 0, made once for the test program; all test programs share a cache of compiled kernels.
inline Backend& gpu_backend() {
  static const std::unique_ptr<Backend> backend =
      cuda::make_backend(0, std::filesystem::temp_directory_path() / "tokamak_gpu_tests");
  return *backend;
}

/// The largest errors that pass, of the whole tensor: ||out - ref|| / ||ref||, and max |out - ref| / max |ref|.
struct Tolerance {
  double norm;
  double max;
};

/// Per type of what is computed, for results that are sums of no more than some thousand terms.
inline constexpr Tolerance kF32Tolerance{1e-5, 1e-4};
inline constexpr Tolerance kTf32Tolerance{1e-3, 1e-2};
inline constexpr Tolerance kBf16Tolerance{1e-2, 4e-2};
inline constexpr Tolerance kF16Tolerance{2e-3, 1e-2};
inline constexpr Tolerance kExact{0, 0};

inline Tolerance tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::kF32: return kF32Tolerance;
    case DType::kBF16: return kBf16Tolerance;
    case DType::kF16: return kF16Tolerance;
    case DType::kF8E4M3:
    case DType::kF8E5M2:
    case DType::kI32:
    case DType::kU8: return kExact;
  }
  return kExact;
}

/// That of the least precise type in the graph, bodies of groups included: a bf16 input of an f32 result may have been
/// rounded between.
inline DType lowest_dtype(const Graph& graph) {
  DType lowest = DType::kF32;
  for (ValueId v = 0; v < graph.num_values(); ++v) {
    if (graph.dtype(v) == DType::kBF16) return DType::kBF16;
    if (graph.dtype(v) == DType::kF16) lowest = DType::kF16;
  }
  return lowest;
}

/// Fills memory of the backend with NaN (every float type; -1 in i32), so that what is never written is seen.
inline void poison(Backend& backend, void* at, int64_t bytes) {
  std::vector<unsigned char> ones(size_t(bytes), 0xff);
  backend.copy_in(at, ones.data(), bytes);
}

inline HostTensor read_tensor(const ValueType& type, const std::function<void(void*, int64_t)>& read) {
  std::vector<std::byte> bytes(size_t(num_bytes(type)));
  read(bytes.data(), int64_t(bytes.size()));
  return from_storage(type, bytes.data());
}

/// Plans, compiles and runs the graph `runs` times (the updates add up; with `record` from the third run on replayed)
/// from `arguments` as for interpret(); where the rank stands on the mesh of `ranks` comes from there. The arena is
/// poisoned before the first run. `chain`: kernels that can be links of one are.
inline Interpretation run_on_gpu(const Graph& graph, const std::vector<HostTensor>& arguments, int runs = 1,
                                 bool record = false, const MeshRanks* ranks = nullptr, bool chain = false) {
  Backend& backend = gpu_backend();
  TensorStore store(backend);
  Plan plan = make_plan(graph, cuda::nominal_platform());
  std::shared_ptr<Memory> arena = backend.allocate(std::max<int64_t>(plan.arena_bytes, 64));
  poison(backend, arena->data(), plan.arena_bytes);
  ProgramOptions options;
  options.arena = arena;
  options.record = record;
  options.ranks = ranks;
  options.chain = chain;
  Program program(std::move(plan), backend, store, options);
  if (chain) EXPECT_NE(program.chain(), nullptr) << print(graph);
  for (size_t i = 0; i < graph.arguments().size(); ++i) {
    const Argument& argument = graph.arguments()[i];
    if (ranks && ranks->coordinate_of(argument)) continue;
    std::vector<std::byte> bytes = to_storage(arguments[i]);
    if (argument.kind == Argument::Kind::kInput)
      program.set_input(argument.name, bytes.data(), int64_t(bytes.size()));
    else
      store.write(argument.name, bytes.data(), int64_t(bytes.size()));
  }
  for (int run = 0; run < runs; ++run) program.run();
  Interpretation out;
  const Graph& planned = program.plan().graph;
  for (const Result& result : planned.results())
    out.results.push_back(read_tensor(planned.type(result.value),
                                      [&](void* to, int64_t bytes) { program.get_result(result.name, to, bytes); }));
  for (const Update& update : planned.updates())
    out.updates.push_back(read_tensor(planned.type(update.target), [&](void* to, int64_t bytes) {
      store.read(planned.argument_of(update.target)->name, to, bytes);
    }));
  return out;
}

/// Runs that are replayed from a recording give the bits of those that are launched one by one.
inline void expect_same_when_recorded(const Graph& graph, const std::vector<HostTensor>& arguments) {
  Interpretation plain = run_on_gpu(graph, arguments, 3), recorded = run_on_gpu(graph, arguments, 3, true);
  for (size_t i = 0; i < plain.results.size(); ++i)
    EXPECT_EQ(plain.results[i].data, recorded.results[i].data) << "result " << i;
}

/// Infinities and NaN of the reference must be in `out` as well; a NaN that is not fails.
inline void expect_near(const HostTensor& out, const HostTensor& ref, Tolerance tolerance, const std::string& what) {
  ASSERT_EQ(to_string(out.type), to_string(ref.type)) << what;
  double square = 0, ref_square = 0, worst = 0, largest = 0;
  for (int64_t i = 0; i < ref.size(); ++i) {
    if (std::isnan(ref[i]) && std::isnan(out[i])) continue;
    if (out[i] == ref[i] && std::isinf(ref[i])) continue;
    double d = std::fabs(out[i] - ref[i]);
    ASSERT_TRUE(std::isfinite(d)) << what << ", element " << i << ": got " << out[i] << ", expected " << ref[i];
    square += d * d, ref_square += ref[i] * ref[i];
    worst = std::max(worst, d), largest = std::max(largest, std::fabs(ref[i]));
  }
  // A reference of zeros: as if its elements were 1.
  if (ref_square == 0) ref_square = double(ref.size()), largest = 1;
  EXPECT_LE(std::sqrt(square / std::max(ref_square, 1e-300)), tolerance.norm) << what << ": relative norm of the error";
  EXPECT_LE(worst, tolerance.max * largest) << what << ": largest error, of elements of at most " << largest;
}

/// The graph on the GPU against `reference` (the same results and updates) in the interpreter.
inline void expect_gpu_equals(const Graph& graph, const Graph& reference, const std::vector<HostTensor>& arguments,
                              Tolerance tolerance) {
  Interpretation expected = interpret(reference, arguments), got = run_on_gpu(graph, arguments);
  ASSERT_EQ(got.results.size(), expected.results.size());
  ASSERT_EQ(got.updates.size(), expected.updates.size());
  auto check = [&](const HostTensor& out, const HostTensor& ref, const std::string& what) {
    Tolerance t = ref.type.dtype == DType::kI32 ? kExact : tolerance;
    expect_near(out, ref, t, what + " of\n" + print(graph));
  };
  for (size_t i = 0; i < expected.results.size(); ++i)
    check(got.results[i], expected.results[i], "result " + graph.results()[i].name);
  for (size_t i = 0; i < expected.updates.size(); ++i)
    check(got.updates[i], expected.updates[i], "update " + std::to_string(i));
}

/// The graph on the GPU against itself in the interpreter.
inline void expect_matches_interpreter(const Graph& graph, const std::vector<HostTensor>& arguments,
                                       Tolerance tolerance) {
  expect_gpu_equals(graph, graph, arguments, tolerance);
}
inline void expect_matches_interpreter(const Graph& graph, const std::vector<HostTensor>& arguments) {
  expect_gpu_equals(graph, graph, arguments, tolerance_of(lowest_dtype(graph)));
}

/// Two runs from the same arguments give the same bits.
inline void expect_deterministic(const Graph& graph, const std::vector<HostTensor>& arguments) {
  Interpretation a = run_on_gpu(graph, arguments), b = run_on_gpu(graph, arguments);
  auto bits = [](const HostTensor& tensor) { return to_storage(tensor); };
  for (size_t i = 0; i < a.results.size(); ++i) EXPECT_EQ(bits(a.results[i]), bits(b.results[i])) << "result " << i;
  for (size_t i = 0; i < a.updates.size(); ++i) EXPECT_EQ(bits(a.updates[i]), bits(b.updates[i])) << "update " << i;
}

}  // namespace tokamak::test
