#include "tests/train/host_store.h"

#include "base/error.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

class CountingBackend : public HostBackend {
 public:
  std::unique_ptr<Memory> allocate(int64_t bytes) override {
    allocated.push_back(bytes);
    return HostBackend::allocate(bytes);
  }
  std::vector<int64_t> allocated;
};

TEST(TensorStore, MakesTensorsInOnePieceAndKeepsThoseThatAreThere) {
  CountingBackend backend;
  TensorStore store(backend);
  ValueType five{DType::kF32, {5}}, many{DType::kBF16, {7, 9}};
  void* first = store.get("a", five);
  store.make({{"a", five}, {"b", five}, {"c", many}, {"b", five}});
  EXPECT_EQ(backend.allocated, (std::vector<int64_t>{64, 64 + 128}));  // each begins at a multiple of 64
  EXPECT_EQ(store.get("a", five), first);
  auto *b = static_cast<char*>(store.get("b", five)), *c = static_cast<char*>(store.get("c", many));
  EXPECT_EQ(std::abs(c - b) % 64, 0);
  EXPECT_NE(b, c);
  float values[5] = {1, 2, 3, 4, 5}, read[5] = {};
  store.write("b", values, sizeof values);
  store.read("b", read, sizeof read);
  EXPECT_EQ(read[4], 5);
  EXPECT_EQ(store.bytes(), 20 + 20 + 126);
  EXPECT_THROW(store.get("b", many), InternalError);
}

}  // namespace
}  // namespace tokamak::test
