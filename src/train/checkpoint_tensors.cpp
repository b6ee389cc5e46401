#include "train/checkpoint_tensors.h"

#include "base/error.h"
#include "train/safetensors.h"

#include <algorithm>
#include <set>

namespace tokamak {

namespace fs = std::filesystem;

namespace {

// Readers of Hugging Face's transformers refuse a file that does not name its framework.
const std::map<std::string, std::string> kMetadata = {{"format", "pt"}};

// Rows first, so a tensor with fewer rows is the beginning of one with more.
bool begins_with(const ValueType& stored, const Shape& shape) {
  const Shape& s = stored.shape;
  return s.size() == shape.size() &&
         (s.empty() || (s[0] >= shape[0] && std::equal(s.begin() + 1, s.end(), shape.begin() + 1)));
}

NamedType file_type(const TensorStore& store, const std::string& name, const Shape& shape) {
  const ValueType& stored = store.type(name);
  TOKAMAK_CHECK(begins_with(stored, shape), "'{}' is {} in the store and {} in the model", name, to_string(stored),
                to_string(shape));
  return {name, {stored.dtype, shape}};
}

std::vector<NamedType> parameter_types(const TensorStore& store, const std::vector<ParameterInfo>& parameters) {
  std::vector<NamedType> types;
  for (const ParameterInfo& info : parameters) types.push_back(file_type(store, info.name, info.shape));
  return types;
}

// grad.* is zero whenever a checkpoint is taken, and cache.* belongs to generation.
bool is_scratch(std::string_view name) { return name.starts_with("grad.") || name.starts_with("cache."); }

std::vector<NamedType> optimizer_types(const TensorStore& store, const std::vector<ParameterInfo>& parameters) {
  std::map<std::string, Shape> shapes;
  for (const ParameterInfo& info : parameters)
    for (const char* prefix : {"", "adam.m.", "adam.v."}) shapes[prefix + info.name] = info.shape;
  std::set<std::string> own;
  for (const ParameterInfo& info : parameters) own.insert(info.name);
  std::vector<NamedType> types;
  for (const std::string& name : store.names()) {
    if (own.count(name) || is_scratch(name)) continue;
    auto at = shapes.find(name);
    types.push_back(file_type(store, name, at == shapes.end() ? store.type(name).shape : at->second));
  }
  return types;
}

FileRecord save_tensors(const fs::path& folder, const char* file, const TensorStore& store,
                        const std::vector<NamedType>& types) {
  SafetensorsWriter writer(folder / file, types, kMetadata);
  std::vector<std::byte> buffer;
  for (const auto& [name, type] : types) {
    buffer.resize(size_t(num_bytes(store.type(name))));
    store.read(name, buffer.data(), int64_t(buffer.size()));
    writer.write(name, std::span(buffer).first(size_t(num_bytes(type))));
  }
  writer.finish();
  return {file, writer.bytes(), format_checksum(writer.checksum())};
}

constexpr const char* kAnotherModel =
    "the checkpoint is of another model: set model.* as in its state.json, or start a "
    "new run with another train.out";

// Loss scaling comes and goes with compile.precision: a run that begins it starts with the scale as initialised.
bool is_of_scaler(const std::string& name) { return name.starts_with("scaler."); }

// Both ways: tensors that the file lacks or has in another shape, then tensors that the store lacks.
void check_types(const SafetensorsReader& file, const std::vector<NamedType>& types) {
  std::string path = file.path().string();
  std::set<std::string> left;
  for (std::string& name : file.names()) left.insert(std::move(name));
  for (const auto& [name, type] : types) {
    bool found = left.erase(name) > 0;
    if (!found && is_of_scaler(name)) continue;
    if (!found)
      user_error("[checkpoint] {}: expected '{}' as {}, got no such tensor; {}", path, name, to_string(type),
                 kAnotherModel);
    ValueType got = file.type(name);
    if (got != type)
      user_error("[checkpoint] {}: expected '{}' as {}, got {}; {}", path, name, to_string(type), to_string(got),
                 kAnotherModel);
  }
  std::erase_if(left, is_of_scaler);
  if (!left.empty())
    user_error("[checkpoint] {}: expected {} tensors, got also '{}' as {}; {}", path, types.size(), *left.begin(),
               to_string(file.type(*left.begin())), kAnotherModel);
}

void load_tensors(const fs::path& folder, const char* file, TensorStore& store, const std::vector<NamedType>& types) {
  CheckpointRecord record = read_record(folder);
  for (const FileRecord& part : record.files)
    if (part.name == file) verify_file(folder, part);
  SafetensorsReader reader(folder / file);
  check_types(reader, types);
  std::vector<std::byte> buffer;
  for (const auto& [name, type] : types) {
    if (is_of_scaler(name) && !reader.contains(name)) continue;
    std::span<const std::byte> bytes = reader.bytes(name);
    buffer.assign(size_t(num_bytes(store.type(name))), std::byte{0});
    std::copy(bytes.begin(), bytes.end(), buffer.begin());
    store.write(name, buffer.data(), int64_t(buffer.size()));
  }
}

}  // namespace

FileRecord save_parameters(const fs::path& folder, const TensorStore& store,
                           const std::vector<ParameterInfo>& parameters) {
  return save_tensors(folder, kModelFile, store, parameter_types(store, parameters));
}

FileRecord save_optimizer(const fs::path& folder, const TensorStore& store,
                          const std::vector<ParameterInfo>& parameters) {
  return save_tensors(folder, kOptimizerFile, store, optimizer_types(store, parameters));
}

void load_parameters(const fs::path& checkpoint, TensorStore& store, const std::vector<ParameterInfo>& parameters) {
  load_tensors(checkpoint, kModelFile, store, parameter_types(store, parameters));
}

void load_optimizer(const fs::path& checkpoint, TensorStore& store, const std::vector<ParameterInfo>& parameters) {
  load_tensors(checkpoint, kOptimizerFile, store, optimizer_types(store, parameters));
}

}  // namespace tokamak
