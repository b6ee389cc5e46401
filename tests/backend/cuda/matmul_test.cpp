// Matmuls on the GPU, plain and with every epilogue, against the interpreter.
#include "ops/group.h"
#include "tests/backend/cuda/matmul_forms.h"

#include "backend/cuda/hopper_matmul.h"
#include "backend/cuda/kernels.h"
#include "backend/cuda/matmul_library.h"
#include "graph/builder.h"
#include "tests/backend/cuda/gpu_harness.h"
#include "tests/backend/cuda/matmul_step.h"
#include "tests/support/random_tensors.h"
#include "tests/support/temporary_folder.h"

#include <chrono>
#include <cstdio>

namespace tokamak::test {
namespace {

Tolerance tolerance_for(const MatmulCase& c) { return c.tf32 ? kTf32Tolerance : tolerance_of(c.dtype); }

void expect_right(const MatmulCase& c) {
  Graph graph = matmul_graph(c);
  expect_matches_interpreter(graph, random_arguments(graph), tolerance_for(c));
}

// GELU in the epilogue is promised for 16-bit types with rows of a multiple of 8; elsewhere the library may lack it.
bool may_be_missing(const MatmulCase& c) {
  bool gelu = c.form == MatmulForm::kBiasGelu || c.form == MatmulForm::kBiasGeluAux || c.form == MatmulForm::kGeluGrad;
  return gelu && (!is_low(c.dtype) || c.n % 8 != 0 || c.batch > 1);
}

bool is_supported(const MatmulCase& c) {
  static cuda::StreamHandle stream;
  static cuda::MatmulLibrary library(cuda::describe_device(0), stream.get(), {});
  Graph graph = matmul_graph(c);
  const Node& node = graph.nodes()[0];
  cuda::MatmulCall call(cuda::matmul_node(graph, node).problem);
  bool supported = library.supports(call);
  if (!supported) std::printf("not supported: %s\n", call.problem().key().c_str());
  return supported;
}

struct Sizes {
  int64_t m, n, k;
};

class GpuMatmulTest : public ::testing::TestWithParam<DType> {};

// Sizes with rows of every alignment: 16 bytes and more, 8, 4 and 2; one row, one column, one term.
TEST_P(GpuMatmulTest, every_transpose_and_size) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (Sizes s : {Sizes{64, 128, 96}, {40, 36, 20}, {34, 50, 66}, {33, 57, 71}, {1, 130, 65}, {129, 1, 33}, {7, 5, 1}})
    for (bool ta : {false, true})
      for (bool tb : {false, true}) expect_right({MatmulForm::kPlain, GetParam(), 1, s.m, s.n, s.k, ta, tb});
}

TEST_P(GpuMatmulTest, batches) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (Sizes s : {Sizes{32, 48, 64}, {17, 9, 31}})
    for (bool ta : {false, true})
      for (bool tb : {false, true}) expect_right({MatmulForm::kPlain, GetParam(), 6, s.m, s.n, s.k, ta, tb});
}

TEST_P(GpuMatmulTest, every_form) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (MatmulForm form : kMatmulForms)
    for (Sizes s : {Sizes{64, 128, 96}, {40, 72, 264}, {33, 56, 71}, {1, 64, 32}})
      for (bool ta : {false, true})
        for (bool tb : {false, true}) {
          MatmulCase c{form, GetParam(), 1, s.m, s.n, s.k, ta, tb};
          if (exists(c) && (!may_be_missing(c) || is_supported(c))) expect_right(c);
        }
}

TEST_P(GpuMatmulTest, forms_of_odd_sizes) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (MatmulForm form : kMatmulForms) {
    MatmulCase c{form, GetParam(), 1, 35, 57, 71, false, true};
    if (exists(c) && (!may_be_missing(c) || is_supported(c))) expect_right(c);
  }
}

TEST_P(GpuMatmulTest, batched_forms) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (MatmulForm form : {MatmulForm::kGeluGrad, MatmulForm::kCast, MatmulForm::kAccumulate, MatmulForm::kBias}) {
    MatmulCase c{form, GetParam(), 3, 24, 40, 16, false, true};
    if (exists(c) && (!may_be_missing(c) || is_supported(c))) expect_right(c);
  }
}

// Long sums, where split-K is worth it; GPT-2's vocabulary.
TEST_P(GpuMatmulTest, long_sums_and_wide_rows) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  expect_right({MatmulForm::kPlain, GetParam(), 1, 24, 32, 8192, true, false});
  expect_right({MatmulForm::kPlain, GetParam(), 1, 16, 50257, 32, false, true});
  expect_right({MatmulForm::kPlain, GetParam(), 1, 50257, 32, 16, true, false});
}

TEST_P(GpuMatmulTest, same_bits_every_time) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (MatmulForm form : kMatmulForms) {
    MatmulCase c{form, GetParam(), 1, 128, 192, 8192, true, false};
    if (!exists(c) || (may_be_missing(c) && !is_supported(c))) continue;
    Graph graph = matmul_graph(c);
    expect_deterministic(graph, random_arguments(graph));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GpuMatmulTest, ::testing::Values(DType::kF32, DType::kBF16, DType::kF16),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

double error_of(const MatmulCase& c) {
  Graph graph = matmul_graph(c);
  std::vector<HostTensor> arguments = random_arguments(graph);
  HostTensor expected = interpret(graph, arguments).results[0], got = run_on_gpu(graph, arguments).results[0];
  double square = 0, reference = 0;
  for (int64_t i = 0; i < got.size(); ++i) {
    square += (got[i] - expected[i]) * (got[i] - expected[i]);
    reference += expected[i] * expected[i];
  }
  return std::sqrt(square / reference);
}

// Which units compute shows in the error: TF32 has 10 bits of mantissa, f32 has 23.
TEST(gpu_matmul, tf32_only_where_it_is_asked_for) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (MatmulForm form : {MatmulForm::kPlain, MatmulForm::kBias}) {
    MatmulCase c{form, DType::kF32, 1, 256, 256, 256, false, true};
    EXPECT_LT(error_of(c), 2e-6);
    c.tf32 = true;
    EXPECT_GT(error_of(c), 2e-5);
    EXPECT_LT(error_of(c), 2e-3);
  }
}

// The kernel alone: `operands` are the node's inputs and then its outputs.
std::vector<std::byte> run_kernel(cuda::Context& context, const Graph& graph, const std::vector<void*>& operands) {
  const Node& node = graph.nodes()[0];
  cuda::KernelPtr kernel = make_matmul_kernel(context, graph, node);
  cuda::DeviceBuffer workspace(kernel->workspace_bytes());
  kernel->use_workspace(workspace.get());
  std::vector<const void*> in(operands.begin(), operands.begin() + long(node.inputs.size()));
  std::vector<void*> out(operands.begin() + long(node.inputs.size()), operands.end());
  kernel->run(in, out);
  std::vector<std::byte> result(size_t(num_bytes(graph.type(node.outputs[0]))));
  TOKAMAK_CUDA(cudaStreamSynchronize(context.queue()));
  TOKAMAK_CUDA(cudaMemcpy(result.data(), out[0], result.size(), cudaMemcpyDeviceToHost));
  return result;
}

cuda::DeviceBuffer on_device(const HostTensor& tensor) {
  std::vector<std::byte> bytes = to_storage(tensor);
  cuda::DeviceBuffer buffer(int64_t(bytes.size()));
  TOKAMAK_CUDA(cudaMemcpy(buffer.get(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
  return buffer;
}

TEST(gpu_matmul, adds_to_what_stands_there_in_place_or_not) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  cuda::Context context(cuda::describe_device(0), std::filesystem::path());
  Graph graph = matmul_graph({MatmulForm::kAccumulateCast, DType::kBF16, 1, 48, 64, 80, true, false});
  std::vector<HostTensor> arguments = random_arguments(graph);
  HostTensor expected = interpret(graph, arguments).results[0];
  cuda::DeviceBuffer a = on_device(arguments[0]), b = on_device(arguments[1]), c = on_device(arguments[2]);
  cuda::DeviceBuffer other(c.bytes());
  auto apart = run_kernel(context, graph, {a.get(), b.get(), c.get(), other.get()});
  auto in_place = run_kernel(context, graph, {a.get(), b.get(), c.get(), c.get()});
  EXPECT_EQ(apart, in_place);
  expect_near(from_storage(expected.type, apart.data()), expected, kBf16Tolerance, "accumulated");
}

// A choice is found again: same bits, nothing to be timed.
TEST(gpu_matmul, choices_are_kept_on_disk) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  TemporaryFolder folder;
  cuda::DeviceInfo device = cuda::describe_device(0);
  Graph graph = matmul_graph({MatmulForm::kBias, DType::kBF16, 1, 512, 768, 4096, false, true});
  cuda::MatmulNode node = cuda::matmul_node(graph, graph.nodes()[0]);
  cuda::MatmulCall call(node.problem);
  cuda::StreamHandle stream;
  std::string used;
  auto chosen = [&](const std::string& adopted = {}) {
    cuda::MatmulLibrary library(device, stream.get(), folder.path());
    EXPECT_TRUE(adopted.empty() || library.adopt_choices(adopted));
    cublasLtMatmulAlgo_t algorithm = library.choose(call).algorithm;
    library.end_tuning();
    used = library.choices();
    return std::vector<uint64_t>(std::begin(algorithm.data), std::end(algorithm.data));
  };
  cuda::MatmulMachine machine{device.name, uint64_t(cublasLtGetVersion())};
  std::vector<uint64_t> first = chosen();
  cuda::MatmulCache cache(folder.path(), machine);
  const cuda::MatmulChoice* kept = cache.find(node.problem.key());
  ASSERT_NE(kept, nullptr);
  EXPECT_GT(kept->seconds, 0);
  EXPECT_EQ(chosen(), first);
  // An earlier run's choice comes before the cache's.
  cuda::MatmulChoices other = *cuda::parse_matmul_choices(machine, used);
  EXPECT_EQ(other.size(), 1u);
  std::vector<cuda::MatmulAlgorithm> candidates;
  {
    cuda::MatmulLibrary library(device, stream.get(), {});
    candidates = call.candidates(library.handle(), int64_t(128) << 20, 2);
  }
  for (const cuda::MatmulAlgorithm& candidate : candidates) {
    std::vector<uint64_t> words(std::begin(candidate.algorithm.data), std::end(candidate.algorithm.data));
    std::copy(words.begin(), words.end(), other.begin()->second.algorithm.begin());
    EXPECT_EQ(chosen(cuda::print_matmul_choices(machine, other)), words);
  }
  // A choice that the library does not know: made anew.
  cuda::MatmulChoice damaged = *kept;
  damaged.algorithm.fill(0xdeadbeefdeadbeefull);
  cache.put(node.problem.key(), damaged);
  cache.save();
  EXPECT_NE(chosen(), std::vector<uint64_t>(8, 0xdeadbeefdeadbeefull));
}

// All that was timed on is given back, and the largest operands of GPT-2 124M fit or are not timed.
TEST(gpu_matmul, timing_leaves_no_memory_behind) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  cuda::StreamHandle stream;
  cuda::MatmulLibrary library(cuda::describe_device(0), stream.get(), {});
  auto choose = [&](int64_t m) {
    cuda::MatmulProblem problem;
    problem.a = problem.b = NumberFormat::kBf16;
    problem.output = DType::kBF16;
    problem.m = m, problem.n = 50304, problem.k = 768;
    problem.trans_b = true;
    cuda::MatmulCall call(problem);
    library.choose(call);
    library.end_tuning();
  };
  choose(1024);  // loads code, which stays
  size_t before = 0, after = 0, total = 0;
  TOKAMAK_CUDA(cudaMemGetInfo(&before, &total));
  choose(8192);
  TOKAMAK_CUDA(cudaMemGetInfo(&after, &total));
  EXPECT_LT(before - std::min(before, after), size_t(256) << 20);
  choose(int64_t(1) << 21);  // 211 GB of result: the library's favourite
}

// Every matmul of a step in full size: the short search that a start affords loses little against a long one. Prints
// both.
TEST(gpu_matmul, times_the_matmuls_of_a_whole_step) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  cuda::StreamHandle stream;
  cuda::MatmulLibrary library(cuda::describe_device(0), stream.get(), {});
  cuda::MatmulTuner tuner(stream.get());
  const cuda::SearchEffort patient{.candidates = 128, .seconds = 1, .loading_seconds = 1};
  library.handle();
  double took = 0, seconds = 0, least = 0;
  StepMatmuls step = matmuls_of_step(Precision::kBf16);
  for (const auto& [key, node] : step.matmuls) {
    if (hopper_supports(node, {9, 0})) continue;  // not the library's
    cuda::MatmulCall call(node.problem);
    auto candidates = [&](const cuda::SearchEffort& effort) {
      return call.candidates(library.handle(), int64_t(128) << 20, int(effort.candidates));
    };
    auto start = std::chrono::steady_clock::now();
    cuda::SearchEffort effort = cuda::effort_for(step.shares.at(key));
    std::vector<cuda::MatmulAlgorithm> some = candidates(effort), all = candidates(patient);
    ASSERT_FALSE(some.empty()) << key;
    std::optional<cuda::SearchResult> found = tuner.fastest(library.handle(), call, some, effort);
    double ms = 1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!found) continue;  // a small GPU
    EXPECT_GE(found->tried, 1u) << key;
    std::optional<cuda::SearchResult> best = tuner.fastest(library.handle(), call, all, patient);
    ASSERT_TRUE(best) << key;
    // Both winners once more, side by side.
    auto pair = {some[found->best], all[best->best]};
    std::optional<cuda::SearchResult> final = tuner.fastest(library.handle(), call, pair, patient);
    ASSERT_TRUE(final) << key;
    double other = final->runner_up_seconds > 0 ? final->runner_up_seconds : final->seconds;
    double again = final->best == 0 ? final->seconds : other, long_again = final->best == 0 ? other : final->seconds;
    took += ms, seconds += again, least += long_again;
    std::printf("%-36s first %7.3f ms, best of %2zu in %5.1f ms %7.3f ms (%.0f ms of loading), best of %3zu %7.3f ms\n",
                key.c_str(), found->first_seconds * 1e3, found->tried, ms, again * 1e3, found->loading_seconds * 1e3,
                best->tried, long_again * 1e3);
  }
  std::printf("in all: %.1f ms for a choice of %.3f ms; a long search finds %.3f ms\n", took, seconds * 1e3,
              least * 1e3);
}

// What a whole program does: recorded and replayed, with an update that adds to a state.
TEST(gpu_matmul, accumulates_in_recorded_programs) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  Graph single = matmul_graph({MatmulForm::kAccumulateCast, DType::kBF16, 1, 48, 64, 80, true, false});
  const Node& group = single.nodes()[0];
  Graph graph("step");
  GraphBuilder g(graph);
  ValueId a = g.input("a", single.type(group.inputs[0])), b = g.input("b", single.type(group.inputs[1]));
  ValueId c = g.state("c", single.type(group.inputs[2]));
  graph.add_update(c, g.add(op::fused_matmul, {a, b, c}, {}, group.body)[0]);
  std::vector<HostTensor> arguments = random_arguments(graph);
  Interpretation once = run_on_gpu(graph, arguments, 1), four = run_on_gpu(graph, arguments, 4, true);
  HostTensor expected = once.updates[0];
  for (int64_t i = 0; i < expected.size(); ++i) expected[i] += 3 * (once.updates[0][i] - arguments[2][i]);
  expect_near(four.updates[0], expected, kF32Tolerance, "four runs");
}

}  // namespace
}  // namespace tokamak::test
