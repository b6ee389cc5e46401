// A model in Hugging Face's form, as strangers make it: its config.json or the index of its tensors, as the first byte
// says, beside tensors that are good. What is accepted says what the text says, and fits the tensors.
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "checkpoint/checkpoint_tensors.h"
#include "checkpoint/hugging_face_folder.h"
#include "checkpoint/model_tensors.h"
#include "config/config.h"
#include "config/json.h"
#include "model/gpt.h"
#include "tests/fuzz/fuzz_file.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

using nlohmann::json;

// What the families are for readers of files: the rest of a family leads to all kernels, which are not here.
namespace tokamak {

static const ModelFamily kFamily{.name = "gpt2", .parameters = gpt_parameters, .hugging_face = &gpt2_hugging_face};

std::span<const ModelFamily* const> model_families() {
  static constexpr const ModelFamily* kFamilies[] = {&kFamily};
  return kFamilies;
}

const ModelFamily& family_of(const ModelConfig&) { return kFamily; }

}  // namespace tokamak

using namespace tokamak;

namespace {

const ModelConfig kModel{.layers = 1, .heads = 2, .width = 8, .context = 6, .vocab = 11};

std::vector<NamedType> types_of(const ModelConfig& model) {
  std::vector<NamedType> types;
  for (const ParameterInfo& parameter : gpt_parameters(model))
    types.push_back({parameter.name, {DType::kF32, parameter.shape}});
  return types;
}

void write_zeros(const std::filesystem::path& path, const std::vector<NamedType>& types) {
  SafetensorsWriter writer(path, types);
  for (const NamedType& tensor : types)
    writer.write(tensor.name, std::vector<std::byte>(size_t(num_bytes(tensor.type))));
  writer.finish();
}

/// A folder with the tensors in one file.
const MemoryFolder& whole_folder() {
  static const MemoryFolder folder;
  static const bool written = (write_zeros(folder / kModelFile, types_of(kModel)), true);
  return written ? folder : folder;
}

/// A folder with the tensors in a.safetensors and b.safetensors.
const MemoryFolder& divided_folder() {
  static const MemoryFolder folder;
  static const bool written = [] {
    std::vector<NamedType> all = types_of(kModel);
    write_zeros(folder / "a.safetensors", {all.begin(), all.begin() + 4});
    write_zeros(folder / "b.safetensors", {all.begin() + 4, all.end()});
    write_file_quickly(folder / "config.json", format_json(gpt2_hugging_face.write_config(kModel)));
    return true;
  }();
  return written ? folder : folder;
}

/// Whether the folder's tensors are those of the model.
bool loads(const FoundCheckpoint& found, const ModelConfig& model) {
  try {
    ModelTensors(found).require(types_of(model));
    return true;
  } catch (const UserError&) {
    return false;
  }
}

void require_same(const json& config, const char* key, int64_t otherwise, int64_t got) {
  bool is_given = config.contains(key) && !config[key].is_null();
  if (is_given ? config[key] != got : got != otherwise) fuzz_failure(std::string("another ") + key);
}

void require_sizes(const json& config, const ModelConfig& model) {
  require_same(config, "n_layer", 12, model.layers);
  require_same(config, "n_head", 12, model.heads);
  require_same(config, "n_embd", 768, model.width);
  require_same(config, "n_positions", 1024, model.context);
  require_same(config, "vocab_size", 50257, model.vocab);
  require_same(config, "n_inner", 4 * model.width, 4 * model.width);
  if (config["model_type"] != "gpt2" || model.width % model.heads != 0) fuzz_failure("no model of ours is taken");
}

void try_config(std::string_view text) {
  const MemoryFolder& folder = whole_folder();
  write_file_quickly(folder / "config.json", text);
  std::optional<FoundCheckpoint> found = open_hugging_face(folder.path());
  json config = parse_json(text);
  if (!found && config.contains("model_type")) fuzz_failure("no model's folder");
  if (!found) return;
  ModelConfig model = run_config_from_json(found->state.config_json, "config.json").model;
  require_sizes(config, model);
  ModelConfig again = gpt2_hugging_face.read_config(json(gpt2_hugging_face.write_config(model)), "written");
  if (format_json(gpt2_hugging_face.write_config(again)) != format_json(gpt2_hugging_face.write_config(model)))
    fuzz_failure("another model comes back");
  if (model.layers > 100) return;  // long lists of parameters take long
  bool fits = model.layers == kModel.layers && model.width == kModel.width && model.context == kModel.context &&
              model.vocab == kModel.vocab && model.bias && model.tie_weights;
  if (loads(*found, model) != fits) fuzz_failure(fits ? "right tensors are refused" : "wrong tensors are taken");
}

/// The slow, obvious twin: the files that the index names; none where it is wrong.
std::set<std::string> files_of(const json& index) {
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) return {};
  std::set<std::string> files;
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    if (file != "a.safetensors" && file != "b.safetensors") return {};
    files.insert(file.get<std::string>());
  }
  return files;
}

void try_index(std::string_view text) {
  const MemoryFolder& folder = divided_folder();
  write_file_quickly(folder / kTensorIndexFile, text);
  std::set<std::string> expected = files_of(parse_json(text)), names;
  std::optional<FoundCheckpoint> found;
  try {
    found = open_hugging_face(folder.path());
    for (const auto& [name, file] : found->files) names.insert(name);
  } catch (const UserError&) {
  }
  if (names != expected) fuzz_failure("other files than the index names");
  if (found && loads(*found, kModel) != (names.size() == 2)) fuzz_failure("tensors of one file of two");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    if (data[0] == 'c') try_config(text);
    if (data[0] == 'i') try_index(text);
  } catch (const UserError&) {
  }
  return 0;
}
