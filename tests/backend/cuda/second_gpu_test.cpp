// A backend on another GPU than the first, used from two threads.
#include "backend/cuda/check.h"
#include "exec/task_queue.h"
#include "graph/builder.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "tests/backend/cuda/gpu_harness.h"

namespace tokamak::test {
namespace {

// Device code compiled in the background and a library, launched by a thread of its own.
void run_on_a_thread(int ordinal) {
  auto backend = cuda::make_backend(ordinal, std::filesystem::temp_directory_path() / "tokamak_gpu_tests");
  Graph graph("g");
  GraphBuilder g(graph);
  ValueId x = g.input("x", {DType::kF32, {64, 64}});
  graph.add_result("y", matmul(g, x, transpose(g, x, {1, 0})));
  TensorStore store(*backend);
  Program program(make_plan(graph, cuda::nominal_platform()), *backend, store, {.record = true});
  std::vector<float> ones(64 * 64, 1), y(64 * 64);
  int device = -1;
  TaskQueue queue;
  queue.submit([&] { backend->use_in_this_thread(); });
  for (int run = 0; run < 3; ++run)  // as launches, recorded, replayed
    queue.submit([&] {
      program.set_input("x", ones.data(), int64_t(ones.size() * sizeof(float)));
      program.run();
      auto more = backend->allocate(1 << 20);
      backend->copy_in(more->data(), y.data(), 1024);
      program.get_result("y", y.data(), int64_t(y.size() * sizeof(float)));
      TOKAMAK_CUDA(cudaGetDevice(&device));
    });
  queue.wait();
  EXPECT_EQ(device, ordinal);
  for (float value : y) ASSERT_EQ(value, 64);
  EXPECT_GT(backend->used_bytes(), 0);
}

TEST(GpuSecond, WorksOnAnotherThread) {
  if (cuda::device_count() < 2) GTEST_SKIP() << "there are no two GPUs here";
  run_on_a_thread(1);
  TOKAMAK_CUDA(cudaSetDevice(0));  // as the tests after it expect
}

}  // namespace
}  // namespace tokamak::test
