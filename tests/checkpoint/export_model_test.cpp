#include "checkpoint/export_model.h"
#include "base/file.h"
#include "base/json.h"
#include "checkpoint/hugging_face_files.h"
#include "checkpoint/model_types.h"
#include "checkpoint/safetensors.h"
#include "config/config.h"
#include "config/json.h"
#include "ops/scalar_math.h"
#include "tests/support/expect_error.h"
#include "tests/support/host_store.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstring>
#include <limits>
#include <set>

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::HostStore;
using test::small_model;

class ExportModel : public testing::Test {
 protected:
  void SetUp() override {
    saved_.fill(5);
    save();
  }

  void save() {
    RunConfig run;
    run.model = small_model();
    CheckpointState state{.step = 2, .config_json = to_json(run), .for_others = hugging_face_files(run.model, nullptr)};
    checkpoint_ = save_checkpoint(folder_.path(), state, saved_.store, 1);
  }
  ExportedModel exported(const fs::path& from, const std::string& to, const ExportOptions& options = {}) {
    return export_model(open_checkpoint(from, nullptr), nullptr, folder_ / to, options);
  }
  void expect_refused(const ExportOptions& options, std::initializer_list<std::string> pieces) {
    expect_user_error([&] { exported(checkpoint_, "out", options); }, pieces);
  }
  std::set<std::string> names(const fs::path& folder) {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
    return names;
  }
  std::vector<std::byte> bytes(const std::string& folder, const std::string& name) {
    SafetensorsReader reader(folder_ / folder / "model.safetensors");
    std::span<const std::byte> bytes = reader.bytes(name);
    return {bytes.begin(), bytes.end()};
  }

  TemporaryFolder folder_;
  HostStore saved_;
  fs::path checkpoint_;
};

TEST_F(ExportModel, HasNothingOfTrainingAndTheSameBytes) {
  ExportedModel model = exported(checkpoint_, "out");
  EXPECT_EQ(names(folder_ / "out"),
            (std::set<std::string>{"config.json", "generation_config.json", "model.safetensors"}));
  EXPECT_EQ(read_file(folder_ / "out/model.safetensors"), read_file(checkpoint_ / "model.safetensors"));
  EXPECT_EQ(read_file(folder_ / "out/config.json"), read_file(checkpoint_ / "config.json"));
  EXPECT_EQ(model.tensors, int64_t(saved_.parameters.size()));
  HostStore loaded;
  load_parameters(open_checkpoint(folder_ / "out", nullptr), loaded.store);
  for (const ParameterInfo& p : saved_.parameters) EXPECT_EQ(loaded.read(p.name), saved_.read(p.name)) << p.name;
}

// A model without biases, for those who want them.
TEST(ExportModelWithoutBiases, ZerosAreInAFileOfTheirOwn) {
  TemporaryFolder folder;
  RunConfig run;
  run.model = small_model();
  run.model.bias = false;
  HostStore saved(run.model);
  saved.fill(5);
  CheckpointState state{
      .step = 2, .config_json = to_json(run), .for_others = checkpoint_files_for_others(run.model, nullptr)};
  fs::path checkpoint = save_checkpoint(folder.path(), state, saved.store, 1);
  export_model(open_checkpoint(checkpoint, nullptr), nullptr, folder / "out", {});
  ModelConfig biased = small_model();
  for (const fs::path& model : {checkpoint, folder / "out"}) {
    SafetensorsReader own(model / "model.safetensors"), zeros(model / "model-zeros.safetensors");
    json map = parse_json(read_file(model / "model.safetensors.index.json"))["weight_map"];
    for (const NamedType& tensor : model_types(biased)) {
      bool is_bias = tensor.name.ends_with(".bias");
      EXPECT_EQ(map[tensor.name], is_bias ? "model-zeros.safetensors" : "model.safetensors") << tensor.name;
      EXPECT_EQ((is_bias ? zeros : own).type(tensor.name), tensor.type) << tensor.name;
      if (!is_bias) continue;
      for (std::byte byte : zeros.bytes(tensor.name)) EXPECT_EQ(byte, std::byte{}) << tensor.name;
    }
    EXPECT_EQ(map.size(), model_types(biased).size());
    HostStore loaded(run.model);
    load_parameters(open_checkpoint(model, nullptr), loaded.store);
    for (const ParameterInfo& p : saved.parameters) EXPECT_EQ(loaded.read(p.name), saved.read(p.name)) << p.name;
  }
}

// In and out again, in each type: what has the type keeps its bytes.
TEST_F(ExportModel, ThereAndBackGivesTheSameBytes) {
  for (DType type : {DType::kF32, DType::kBF16, DType::kF16}) {
    std::string name(dtype_name(type));
    exported(checkpoint_, name, {.type = type});
    exported(folder_ / name, name + "_again");
    exported(folder_ / name, name + "_wide", {.type = DType::kF32});
    exported(folder_ / (name + "_wide"), name + "_back", {.type = type});
    for (const ParameterInfo& p : saved_.parameters) {
      EXPECT_EQ(bytes(name + "_again", p.name), bytes(name, p.name));
      EXPECT_EQ(bytes(name + "_back", p.name), bytes(name, p.name));
    }
    const char* there = type == DType::kF32 ? "float32" : type == DType::kBF16 ? "bfloat16" : "float16";
    EXPECT_EQ(parse_json(read_file(folder_ / name / "config.json"))["dtype"], there);
    EXPECT_EQ(SafetensorsReader(folder_ / name / "model.safetensors").type("wte.weight").dtype, type);
  }
}

TEST_F(ExportModel, RoundsToTheNearest) {
  exported(checkpoint_, "bf16", {.type = DType::kBF16});
  exported(checkpoint_, "f16", {.type = DType::kF16});
  std::vector<float> exact = saved_.read("wte.weight"),
                     bf16 = SafetensorsReader(folder_ / "bf16/model.safetensors").floats("wte.weight"),
                     f16 = SafetensorsReader(folder_ / "f16/model.safetensors").floats("wte.weight");
  for (size_t i = 0; i < exact.size(); ++i) {
    EXPECT_EQ(bf16[i], scalar::round_bf16(exact[i]));
    EXPECT_EQ(f16[i], float(_Float16(exact[i])));
  }
}

TEST_F(ExportModel, SeveralFilesHoldTheSameTensors) {
  ExportedModel model = exported(checkpoint_, "out", {.shard_bytes = 1000});
  EXPECT_GT(model.files, 3);
  json index = parse_json(read_file(folder_ / "out/model.safetensors.index.json"));
  EXPECT_EQ(index["metadata"]["total_size"], model.bytes);
  EXPECT_EQ(index["weight_map"].size(), saved_.parameters.size());
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    SafetensorsReader reader(folder_ / "out" / file.get<std::string>());
    EXPECT_TRUE(reader.contains(tensor));
    EXPECT_EQ(reader.metadata().at("format"), "pt");
    EXPECT_TRUE(reader.names().size() == 1 || fs::file_size(reader.path()) < 2000);
  }
  exported(folder_ / "out", "one");
  EXPECT_EQ(read_file(folder_ / "one/model.safetensors"), read_file(checkpoint_ / "model.safetensors"));
}

TEST_F(ExportModel, WhatIsThereStays) {
  write_file_atomic(folder_ / "file", "mine");
  expect_user_error([&] { exported(checkpoint_, "file"); }, {"expected a folder or nothing", "got a file"});
  fs::create_directory(folder_ / "out");
  exported(checkpoint_, "out");
  std::string before = read_file(folder_ / "out/model.safetensors");
  expect_refused({.type = DType::kF16}, {"expected an empty folder or nothing", "--replace"});
  EXPECT_EQ(read_file(folder_ / "out/model.safetensors"), before);
  exported(checkpoint_, "out", {.type = DType::kF16, .replace = true});
  EXPECT_EQ(SafetensorsReader(folder_ / "out/model.safetensors").type("wte.weight").dtype, DType::kF16);
  exported(folder_ / "out", "out", {.type = DType::kF32, .replace = true});  // out of itself
  EXPECT_EQ(SafetensorsReader(folder_ / "out/model.safetensors").type("wte.weight").dtype, DType::kF32);
  write_file_atomic(folder_ / "out/notes.txt", "mine");
  expect_refused({.replace = true}, {"expected only a model's files", "got also notes.txt"});
  EXPECT_EQ(read_file(folder_ / "out/notes.txt"), "mine");
  expect_user_error([&] { exported(checkpoint_, "checkpoints", {.replace = true}); }, {"got also"});
}

TEST_F(ExportModel, StoppedOrFailedItLeavesNothing) {
  std::set<std::string> before = names(folder_.path());
  expect_refused({.stop = [] { return true; }}, {"[export] stopped"});
  EXPECT_EQ(names(folder_.path()), before);
  std::vector<float> values = saved_.read("wte.weight");
  values[3] = 7e4f;
  saved_.write("wte.weight", values);
  save();
  expect_refused({.type = DType::kF16}, {"'wte.weight' that f16 reaches", "--type=bf16 or f32"});
  EXPECT_EQ(names(folder_.path()), before);
  // What a killed process left goes; what only looks like it stays.
  fs::create_directory(folder_ / "out.0123456789abcdef.tmp");
  fs::create_directory(folder_ / "out.mine.tmp");
  exported(checkpoint_, "out");
  EXPECT_FALSE(fs::exists(folder_ / "out.0123456789abcdef.tmp"));
  EXPECT_TRUE(fs::exists(folder_ / "out.mine.tmp"));
}

TEST_F(ExportModel, NumbersMustBeFinite) {
  exported(checkpoint_, "model");
  fs::path path = folder_ / "model/model.safetensors";
  std::string file = read_file(path);
  float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(&file[file.size() - 4], &nan, sizeof nan);
  write_file_atomic(path, file);
  expect_user_error([&] { exported(folder_ / "model", "out"); }, {"expected finite numbers in 'ln_f.bias'"});
}

TEST_F(ExportModel, LargeTensorsGoInPieces) {
  ModelConfig large = small_model();
  large.vocab = 140'000;
  HostStore store(large);
  store.fill(3);
  RunConfig run;
  run.model = large;
  fs::path saved = save_checkpoint(folder_ / "large", {.step = 1, .config_json = to_json(run)}, store.store, 1);
  exported(saved, "out", {.type = DType::kBF16});
  std::vector<float> exact = store.read("wte.weight"),
                     rounded = SafetensorsReader(folder_ / "out/model.safetensors").floats("wte.weight");
  ASSERT_EQ(rounded.size(), exact.size());
  for (size_t i = 0; i < exact.size(); i += 997) EXPECT_EQ(rounded[i], scalar::round_bf16(exact[i]));
}

TEST_F(ExportModel, SaysHowFarItIs) {
  int64_t last = 0, all = 0;
  ExportOptions options;
  options.progress = [&](int64_t done, int64_t total) {
    EXPECT_GT(done, last);
    last = done;
    all = total;
  };
  ExportedModel model = exported(checkpoint_, "out", options);
  EXPECT_EQ(last, model.bytes);
  EXPECT_EQ(all, model.bytes);
}

}  // namespace
}  // namespace tokamak
