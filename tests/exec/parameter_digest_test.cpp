// The digest of parameters that ranks share, against one that looks at each element of the whole.
#include "exec/parameter_digest.h"

#include "backend/cpu/cpu_backend.h"
#include "backend/ranks/inprocess.h"
#include "base/random.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <map>

namespace tokamak {
namespace {

using Values = std::map<std::string, std::vector<uint32_t>>;

Values random_values(const std::vector<StoredTensor>& tensors) {
  Values values;
  for (const StoredTensor& tensor : tensors)
    for (std::vector<uint32_t>& bits = values[tensor.name]; int64_t(bits.size()) < num_elements(tensor.spec.global);)
      bits.push_back(philox4x32(digest_salt(tensor.name), uint64_t(bits.size()))[0]);
  return values;
}

/// Element by element.
uint64_t slow_digest(const std::vector<StoredTensor>& tensors, const Values& values) {
  uint64_t sum = 0;
  for (const StoredTensor& tensor : tensors) {
    if (!is_parameter(tensor.spec.role)) continue;
    const std::vector<uint32_t>& bits = values.at(tensor.name);
    for (size_t i = 0; i < bits.size(); ++i) sum += element_digest(digest_salt(tensor.name), i, bits[i]);
  }
  return sum;
}

uint64_t take(const std::vector<StoredTensor>& tensors, const Values& values, const MeshRanks* ranks) {
  auto backend = cpu::make_backend();
  TensorStore store(*backend, ranks);
  store.make(tensors);
  for (const StoredTensor& tensor : tensors) store.write_share(tensor.name, values.at(tensor.name).data());
  ParameterDigest digest(store, *backend, ranks);
  uint64_t first = ParameterDigest::sum(digest.take()->wait());
  EXPECT_EQ(ParameterDigest::sum(digest.take()->wait()), first) << "it can be taken again";
  return first;
}

/// A parameter of shape `global` of which ranks store `stored`.
StoredTensor parameter(const std::string& name, const Shape& stored, const Shape& global,
                       const std::vector<Cut>& cuts = {}, std::vector<int64_t> stages = {}) {
  return {name, {DType::kF32, stored}, ArgumentSpec{Role::kMatrix, "", global, 1, cuts}, 1, std::move(stages)};
}

void expect_same_on_ranks(const Mesh& mesh, const std::vector<StoredTensor>& tensors) {
  Values values = random_values(tensors);
  uint64_t expected = slow_digest(tensors, values);
  run_ranks(int(mesh.num_ranks()), [&](Communicator& world) {
    MeshRanks ranks(mesh, world);
    EXPECT_EQ(take(tensors, values, &ranks), expected) << "rank " << world.rank();
  });
}

TEST(ParameterDigest, OfOneRank) {
  std::vector<StoredTensor> tensors = {parameter("a", {40000}, {40000}), parameter("b", {3, 5}, {3, 5}),
                                       parameter("none", {0}, {0}), parameter("padded", {8, 3}, {7, 3})};
  Values values = random_values(tensors);
  EXPECT_EQ(take(tensors, values, nullptr), slow_digest(tensors, values));
  EXPECT_EQ(take({}, {}, nullptr), 0u);
}

TEST(ParameterDigest, IsTheSameHoweverTensorsAreCut) {
  const Mesh mesh{{{"data", 2}, {"tensor", 2}}};
  expect_same_on_ranks(mesh,
                       {parameter("whole", {4, 6}, {4, 6}), parameter("rows", {2, 6}, {4, 6}, {{"data", 2, 0, 1}}),
                        parameter("columns", {4, 3}, {4, 6}, {{"tensor", 2, 1, 1}}),
                        parameter("blocks", {4, 3}, {4, 6}, {{"tensor", 2, 1, 3}}),
                        parameter("both", {2, 3}, {4, 6}, {{"tensor", 2, 1, 1}, {"data", 2, 0, 1}}),
                        parameter("spread", {4, 3}, {8, 6}, {{"tensor", 2, 1, 1}, {"data", 2, 0, 2}}),
                        parameter("padded", {4, 3}, {6, 3}, {{"tensor", 2, 0, 1}}),
                        parameter("mirrored", {8}, {16}, {{"tensor", 2, 0, 4, true}}),
                        parameter("long rows", {3, 20000}, {3, 40000}, {{"data", 2, 1, 1}}),
                        parameter("many rows", {9000, 3}, {9000, 6}, {{"tensor", 2, 1, 1}})});
}

TEST(ParameterDigest, CountsWhatSeveralStagesHaveOnce) {
  const Mesh mesh{{{"pipe", 2}, {"data", 2}}};
  std::vector<StoredTensor> tensors = {parameter("first", {4, 6}, {4, 6}, {}, {0}),
                                       parameter("second", {2, 6}, {4, 6}, {{"data", 2, 0, 1}}, {1}),
                                       parameter("tied", {4, 6}, {4, 6}, {}, {0, 1})};
  expect_same_on_ranks(mesh, tensors);
}

TEST(ParameterDigest, StatesAreNoParameters) {
  StoredTensor moment = parameter("m", {5}, {5});
  moment.spec.role = Role::kMoment;
  std::vector<StoredTensor> tensors = {parameter("a", {5}, {5}), moment};
  Values values = random_values(tensors);
  uint64_t expected = take(tensors, values, nullptr);
  values["m"][2] ^= 1;
  EXPECT_EQ(take(tensors, values, nullptr), expected);
}

// One flipped bit is always seen, as are elements and tensors that have changed places.
TEST(ParameterDigest, IsAnotherAfterAnyChange) {
  std::vector<StoredTensor> tensors = {parameter("a", {7}, {7}), parameter("b", {7}, {7})};
  Values values = random_values(tensors);
  uint64_t good = take(tensors, values, nullptr);
  for (const char* name : {"a", "b"})
    for (size_t i = 0; i < 7; ++i)
      for (int bit = 0; bit < 32; ++bit) {
        values[name][i] ^= 1u << bit;
        EXPECT_NE(slow_digest(tensors, values), good);
        values[name][i] ^= 1u << bit;
      }
  std::swap(values["a"][1], values["a"][5]);
  EXPECT_NE(take(tensors, values, nullptr), good);
  std::swap(values["a"][1], values["a"][5]);
  std::swap(values["a"], values["b"]);
  EXPECT_NE(take(tensors, values, nullptr), good);
}

TEST(ParameterDigest, OfElementsOfOtherSizes) {
  std::vector<uint16_t> bits = {1, 65535, 0, 300};
  uint64_t expected = 0, got = 0;
  for (size_t i = 0; i < bits.size(); ++i) expected += element_digest(9, i + 10, bits[i]);
  void* to = &got;
  make_host_digest(digest_pieces(bits.data(), 2, 9, {{10, 0, 4}}))->run({}, std::span<void* const>(&to, 1));
  EXPECT_EQ(got, expected);
}

// The host adds up numbers of places as it goes, also past the places at which their upper half is another.
TEST(HostDigest, IsTheSumOfEveryElementsDigest) {
  constexpr int64_t kMany = int64_t(1) << 32;
  const std::vector<std::vector<PartRun>> shares = {{{0, 0, 1000}},
                                                    {{kMany - 3, 0, 20}},
                                                    {{5 * kMany - 1, 0, 40'001}},
                                                    {{kMany - 7, 0, 3}, {kMany - 1, 3, 3}, {kMany + 5, 6, 3}}};
  std::vector<uint8_t> data(4 * 40'001);
  for (size_t i = 0; i < data.size(); ++i) data[i] = uint8_t(i * 2654435761u >> 11);
  for (int64_t bytes : {1, 2, 4})
    for (const std::vector<PartRun>& share : shares) {
      uint64_t expected = 0, got = 0;
      for (const PartRun& run : share)
        for (int64_t i = 0; i < run.count; ++i) {
          uint32_t bits = 0;
          std::memcpy(&bits, data.data() + (run.part + i) * bytes, size_t(bytes));
          expected += element_digest(77, uint64_t(run.whole + i), bits);
        }
      void* to = &got;
      make_host_digest(digest_pieces(data.data(), bytes, 77, share))->run({}, std::span<void* const>(&to, 1));
      EXPECT_EQ(got, expected) << bytes << " bytes from " << share[0].whole;
    }
}

}  // namespace
}  // namespace tokamak
