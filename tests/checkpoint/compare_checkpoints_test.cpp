#include "checkpoint/compare_checkpoints.h"
#include "checkpoint/checkpoint_tensors.h"
#include "checkpoint/hugging_face_files.h"
#include "checkpoint/safetensors.h"
#include "config/config.h"
#include "config/json.h"
#include "tests/support/host_store.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using test::HostStore;

class Compare : public testing::Test {
 protected:
  Compare() { a_.fill(1), b_.fill(1); }

  fs::path save(const std::string& run, const HostStore& store, const ModelConfig& model = test::small_model()) {
    RunConfig config;
    config.model = model;
    CheckpointState state{.step = 1, .config_json = to_json(config), .for_others = hugging_face_files(model, nullptr)};
    return save_checkpoint(folder_ / run, state, store.store, 1);
  }
  CheckpointDifference compare() {
    return compare_checkpoints(open_unverified(save("a", a_)), open_unverified(save("b", b_)));
  }
  /// What is not equal, by name.
  static std::map<std::string, TensorDifference> different(const CheckpointDifference& difference) {
    std::map<std::string, TensorDifference> tensors;
    for (const TensorDifference& tensor : difference.tensors)
      if (!tensor.is_equal()) tensors[tensor.name] = tensor;
    return tensors;
  }
  static void set(HostStore& store, const std::string& name, const std::map<size_t, float>& elements) {
    std::vector<float> values = store.read(name);
    for (const auto& [at, value] : elements) values.at(at) = value;
    store.write(name, values);
  }

  TemporaryFolder folder_;
  HostStore a_, b_;
};

TEST_F(Compare, Equal) {
  CheckpointDifference difference = compare();
  EXPECT_TRUE(difference.is_equal());
  EXPECT_TRUE(difference.has_states);
  EXPECT_EQ(difference.tensors.size(), 3 * a_.parameters.size() + 1);
}

TEST_F(Compare, ElementsThatDiffer) {
  set(a_, "wpe.weight", {{3, 1.0f}, {10, -2.0f}, {47, 0.0f}});
  set(b_, "wpe.weight", {{3, std::nextafter(1.0f, 2.0f)}, {10, -1.5f}, {47, -0.0f}});
  set(a_, "adam.m.wpe.weight", {{0, 0x1p-149f}});
  set(b_, "adam.m.wpe.weight", {{0, -0x1p-149f}});
  CheckpointDifference all = compare();
  std::map<std::string, TensorDifference> tensors = different(all);
  EXPECT_FALSE(all.is_equal());
  ASSERT_EQ(tensors.size(), 2u);
  const TensorDifference& wpe = tensors.at("wpe.weight");
  EXPECT_EQ(wpe.differing, 3) << "0 and -0 have other bits";
  EXPECT_EQ(wpe.first, 3);
  EXPECT_EQ(wpe.largest, 0.5);
  EXPECT_EQ(wpe.relative, 0.25);
  EXPECT_EQ(wpe.ulps, 1 << 22) << "half of the floats from 1 to 2";
  const TensorDifference& moment = tensors.at("adam.m.wpe.weight");
  EXPECT_EQ(moment.differing, 1);
  EXPECT_EQ(moment.ulps, 2) << "over zero";
  EXPECT_EQ(moment.relative, 2);
}

// Larger than what is compared at a time.
TEST_F(Compare, TensorsOfManyPieces) {
  ModelConfig model = test::small_model();
  model.vocab = (1 << 18) + 5;  // times 8
  HostStore a(model), b(model);
  std::vector<float> values(size_t(model.vocab * 8));
  for (size_t i = 0; i < values.size(); ++i) values[i] = float(i % 1000);
  a.write("wte.weight", values);
  values[(1 << 20) + 7] += 1, values.back() += 3;
  b.write("wte.weight", values);
  CheckpointDifference all =
      compare_checkpoints(open_unverified(save("a", a, model)), open_unverified(save("b", b, model)));
  const TensorDifference wte = different(all).at("wte.weight");
  EXPECT_EQ(wte.differing, 2);
  EXPECT_EQ(wte.first, (1 << 20) + 7);
  EXPECT_EQ(wte.largest, 3);
}

TEST_F(Compare, OtherModels) {
  ModelConfig model = test::small_model();
  model.context = 7, model.layers = 2;
  HostStore other(model);
  CheckpointDifference all =
      compare_checkpoints(open_unverified(save("a", a_)), open_unverified(save("other", other, model)));
  std::map<std::string, TensorDifference> tensors = different(all);
  EXPECT_FALSE(tensors.at("wpe.weight").is_compared());
  EXPECT_EQ(tensors.at("wpe.weight").b->shape, (Shape{7, 8}));
  EXPECT_FALSE(tensors.at("h.1.ln_1.weight").a);
  EXPECT_TRUE(tensors.at("h.1.ln_1.weight").b);
  EXPECT_TRUE(tensors.contains("adam.v.h.1.ln_1.weight"));
}

// Types are other types, but values may be equal.
TEST_F(Compare, AModelInAnotherTypeAndUnderOtherNames) {
  set(a_, "ln_f.bias", {{0, 1.0f}, {1, 2.0f}, {2, 3.0f}, {3, 0.1f}, {4, 0.5f}, {5, 0.5f}, {6, 0.5f}, {7, 0.5f}});
  fs::path own = save("a", a_), model = folder_ / "model";
  fs::create_directory(model);
  fs::copy(own / "config.json", model / "config.json");
  std::vector<NamedType> types;
  for (const ParameterInfo& p : a_.parameters) types.push_back({"transformer." + p.name, {DType::kBF16, p.shape}});
  SafetensorsWriter writer(model / kModelFile, types);
  for (const ParameterInfo& p : a_.parameters) {
    std::vector<float> values = a_.read(p.name);
    std::vector<uint16_t> narrow;
    for (float value : values) narrow.push_back(uint16_t(std::bit_cast<uint32_t>(value) >> 16));
    writer.write("transformer." + p.name, std::as_bytes(std::span(narrow)));
  }
  writer.finish();
  CheckpointDifference all = compare_checkpoints(open_unverified(own), open_unverified(model));
  EXPECT_FALSE(all.has_states);
  EXPECT_EQ(all.tensors.size(), a_.parameters.size());
  const TensorDifference bias = different(all).at("ln_f.bias");
  EXPECT_EQ(bias.differing, 1);
  EXPECT_EQ(bias.first, 3);
  EXPECT_FALSE(bias.ulps);
  EXPECT_NEAR(bias.relative, 0.004, 0.004);
  EXPECT_FALSE(all.is_equal());
}

// Nothing that was saved is, so it comes from elsewhere.
TEST_F(Compare, NumbersThatAreNotFinite) {
  fs::path a = save("a", a_), b = save("b", b_);
  std::string content = read_file(b / kModelFile);
  content.replace(content.size() - 4, 4, "\1\0\x80\x7F", 4);
  write_file_atomic(b / kModelFile, content);
  std::map<std::string, TensorDifference> tensors =
      different(compare_checkpoints(open_unverified(a), open_unverified(b)));
  ASSERT_EQ(tensors.size(), 1u);
  EXPECT_EQ(tensors.begin()->second.largest, std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace tokamak
