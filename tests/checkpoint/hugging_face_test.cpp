#include "model/hugging_face.h"
#include "base/file.h"
#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/hugging_face_files.h"
#include "checkpoint/hugging_face_folder.h"
#include "checkpoint/safetensors.h"
#include "config/config.h"
#include "config/json.h"
#include "tests/support/expect_error.h"
#include "tests/support/host_store.h"
#include "tests/support/nested_lists.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <bit>
#include <set>

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::HostStore;
using test::small_model;

constexpr const char* kIndex = kTensorIndexFile;

// A model as Transformers writes it: names within GPT2LMHeadModel, in one file or several, in any float type.
class HuggingFaceFolder : public testing::Test {
 protected:
  HuggingFaceFolder() { saved_.fill(7); }

  void write_config(const ModelConfig& model = small_model()) {
    write("config.json", format_json(gpt2_hugging_face.write_config(model)));
  }
  void write(const std::string& name, const std::string& text) { write_file_atomic(folder_ / name, text); }

  void write_tensors(const std::string& file, const std::vector<std::string>& parameters, DType dtype = DType::kF32) {
    std::vector<NamedType> types;
    for (const std::string& name : parameters)
      types.push_back({"transformer." + name, {dtype, saved_.store.spec(name).global}});
    SafetensorsWriter writer(folder_ / file, types);
    for (const std::string& name : parameters) writer.write("transformer." + name, bytes_of(name, dtype));
    writer.finish();
  }

  std::vector<std::byte> bytes_of(const std::string& name, DType dtype) {
    std::vector<float> values = saved_.read(name);
    std::vector<std::byte> bytes(values.size() * size_t(dtype_bytes(dtype)));
    for (size_t i = 0; i < values.size(); ++i) {
      auto bits = uint16_t(std::bit_cast<uint32_t>(values[i]) >> 16);
      if (dtype == DType::kF32)
        std::memcpy(&bytes[4 * i], &values[i], 4);
      else if (dtype == DType::kBF16)
        std::memcpy(&bytes[2 * i], &bits, 2);
      else {
        auto half = _Float16(values[i]);
        std::memcpy(&bytes[2 * i], &half, 2);
      }
    }
    return bytes;
  }

  /// A checkpoint of ours, of step 3.
  fs::path save_own() {
    RunConfig run;
    run.model = small_model();
    CheckpointState state{
        .step = 3, .config_json = to_json(run), .for_others = checkpoint_files_for_others(run.model, nullptr)};
    return save_checkpoint(folder_.path(), state, saved_.store, 2);
  }
  std::vector<std::string> names() {
    std::vector<std::string> names;
    for (const ParameterInfo& info : saved_.parameters) names.push_back(info.name);
    return names;
  }

  // Two files and their index.
  void write_shards() {
    std::vector<std::string> all = names(), first(all.begin(), all.begin() + 3), second(all.begin() + 3, all.end());
    write_tensors("a.safetensors", first);
    write_tensors("b.safetensors", second);
    write_index({{"x", "a.safetensors"}, {"y", "b.safetensors"}});
  }
  void write_index(const std::map<std::string, std::string>& map) {
    write(kIndex, format_json(json{{"weight_map", map}}));
  }

  void load(HostStore& store) { load_parameters(open_checkpoint(folder_.path(), nullptr), store.store); }
  void expect_refused(std::initializer_list<std::string> pieces) {
    expect_user_error([&] { load(loaded_); }, pieces);
  }

  TemporaryFolder folder_;
  HostStore saved_, loaded_;
};

TEST_F(HuggingFaceFolder, GivesTheModelAndItsParameters) {
  write_config();
  write_tensors("model.safetensors", names());
  FoundCheckpoint found = open_checkpoint(folder_.path(), nullptr);
  EXPECT_EQ(run_config_from_json(found.state.config_json, "x").model.width, small_model().width);
  EXPECT_EQ(found.state.step, 0);
  load(loaded_);
  for (const std::string& name : names()) EXPECT_EQ(loaded_.read(name), saved_.read(name)) << name;
}

TEST_F(HuggingFaceFolder, MayBeInSeveralFiles) {
  write_config();
  write_shards();
  load(loaded_);
  for (const std::string& name : names()) EXPECT_EQ(loaded_.read(name), saved_.read(name)) << name;
}

TEST_F(HuggingFaceFolder, MayHaveSixteenBits) {
  for (DType dtype : {DType::kBF16, DType::kF16}) {
    write_config();
    write_tensors("model.safetensors", names(), dtype);
    load(loaded_);
    for (const std::string& name : names()) {
      std::vector<float> got = loaded_.read(name), from = saved_.read(name);
      for (size_t i = 0; i < got.size(); ++i) {
        float rounded = dtype == DType::kF16 ? float(_Float16(from[i]))
                                             : std::bit_cast<float>(std::bit_cast<uint32_t>(from[i]) & 0xFFFF0000u);
        ASSERT_EQ(got[i], rounded) << name << " " << i;
      }
    }
  }
}

TEST_F(HuggingFaceFolder, ATensorMustBeThereOnce) {
  write_config();
  std::vector<std::string> all = names(), some(all.begin() + 1, all.end());
  write_tensors("model.safetensors", some);
  expect_refused({"model.safetensors: expected '" + all[0] + "' as f32[11,8], got no such tensor"});
  write_shards();
  write_tensors("b.safetensors", all);
  fs::remove(folder_ / "model.safetensors");
  expect_refused({"expected 'h.0.ln_1.weight' once", "of two models"});
}

TEST_F(HuggingFaceFolder, OfAnotherSizeIsRefused) {
  ModelConfig other = small_model();
  other.vocab = 12;
  write_config(other);
  write_tensors("model.safetensors", names());
  HostStore larger(other);
  expect_user_error([&] { load(larger); },
                    {"'wte.weight' as f32[12,8], got f32[11,8]", "copy all files of the model again"});
}

// An index is a stranger's text.
TEST_F(HuggingFaceFolder, AnIndexNamesFilesBesideItAlone) {
  write_config();
  write_shards();
  for (const char* name : {"../a.safetensors", "/etc/passwd", "sub/a.safetensors", "..", "", "a.bin"}) {
    write_index({{"x", name}});
    expect_refused({kIndex, "expected names of safetensors files beside it", std::string("'") + name + "'"});
  }
  // The system would open "a", or the folder.
  for (std::string name : {"a", ".."}) {
    write_index({{"x", name + '\0' + ".safetensors"}});
    expect_refused({kIndex, "expected names of safetensors files beside it"});
  }
  for (const std::string& text : std::initializer_list<std::string>{
           "[]", "{}", R"({"weight_map": 3})", R"({"weight_map": {}})", "{", R"({"weight_map": {"x": 3}})",
           R"({"weight_map": {"x": ["a.safetensors"]}})", R"({"weight_map": {"x": )" + nested_lists(100'000) + "}}"}) {
    write(kIndex, text);
    expect_refused({kIndex, "expected"});
  }
  for (const std::string& name : {std::string("absent.safetensors"), std::string(300, 'x') + ".safetensors"}) {
    write_index({{"x", name}});
    expect_refused({name});
  }
}

TEST_F(HuggingFaceFolder, WhatPyTorchPickledIsNotRead) {
  write_config();
  expect_refused({"expected model.safetensors", "got neither"});
  for (std::string name : {"pytorch_model.bin", "pytorch_model.bin.index.json", "pytorch_model.pt", "model.pt"}) {
    write(name, "PK");
    expect_refused({"expected model.safetensors, got " + name + ",", "safe_serialization=True"});
    fs::remove(folder_ / name);
  }
}

// As of a cache whose files are gone, or that was copied without what its links name.
TEST_F(HuggingFaceFolder, LinksThatLeadNowhereAreNamed) {
  write_config();
  for (const char* name : {"model.safetensors", kIndex, "config.json"})
    for (const char* target : {name, "absent"}) {
      fs::remove(folder_ / name);
      fs::create_symlink(target, folder_ / name);
      expect_refused({"[file]", name, target == std::string(name) ? "symbolic links" : "No such file"});
      fs::remove(folder_ / name);
    }
}

// Sizes that no run may have, deep and cut text, and sizes whose products are beyond 64 bits.
TEST_F(HuggingFaceFolder, AConfigurationIsAStrangersText) {
  write_tensors("model.safetensors", names());
  std::string good = format_json(gpt2_hugging_face.write_config(small_model()));
  for (size_t size = 0; size < good.size(); size += 7) {
    write("config.json", good.substr(0, size));
    expect_refused({"config.json", "expected a JSON object"});
  }
  write("config.json", R"({"model_type": "gpt2", "x": )" + nested_lists(100'000) + "}");
  expect_refused({"config.json", "nested more than"});
  write("config.json", R"({"model_type": ["gpt2"]})");
  expect_refused({"config.json: expected model_type to be a text"});
  for (const char* key : {"n_layer", "n_head", "n_positions", "vocab_size"}) {
    json config = gpt2_hugging_face.write_config(small_model());
    config[key] = uint64_t(1) << 31;
    config["n_embd"] = uint64_t(1) << 31;
    config["n_inner"] = nullptr;
    write("config.json", format_json(config));
    expect_user_error(
        [&] { run_config_from_json(open_checkpoint(folder_.path(), nullptr).state.config_json, "config.json"); },
        {"model."});
  }
}

TEST_F(HuggingFaceFolder, AnotherFolderIsNone) {
  EXPECT_FALSE(open_hugging_face(folder_.path()));
  write("config.json", R"({"model": {"layers": 1}})");  // of a run
  EXPECT_FALSE(open_hugging_face(folder_.path()));
  write("config.json", R"({"model_type": "mamba"})");
  expect_refused({"config.json: expected model_type to be one of gpt2"});
}

// A checkpoint of ours is such a folder, too, and as a checkpoint it is read.
TEST_F(HuggingFaceFolder, ACheckpointIsOne) {
  fs::path path = save_own();
  EXPECT_EQ(open_checkpoint(path, nullptr).state.step, 3);
  EXPECT_EQ(peek_model(path).state.step, 3);
  EXPECT_TRUE(peek_model(folder_.path()).files.empty()) << "nothing of gigabytes is read for its sizes";
  fs::remove(path / "state.json");
  load_parameters(open_checkpoint(path, nullptr), loaded_.store);
  for (const std::string& name : names()) EXPECT_EQ(loaded_.read(name), saved_.read(name)) << name;
  json config = parse_json(read_file(path / "config.json"));
  EXPECT_EQ(config["architectures"], json({"GPT2LMHeadModel"}));
  EXPECT_EQ(config["n_positions"], small_model().context);
}

// vLLM reads every safetensors file of a folder, but for those that the index leaves out.
TEST_F(HuggingFaceFolder, TheIndexOfACheckpointNamesTheModelsTensorsAlone) {
  fs::path path = save_own();
  json index = parse_json(read_file(path / kTensorIndexFile));
  std::map<std::string, std::string> expected;
  for (const std::string& name : names()) expected[name] = "model.safetensors";
  EXPECT_EQ(index["weight_map"].get<decltype(expected)>(), expected);
}

}  // namespace
}  // namespace tokamak
