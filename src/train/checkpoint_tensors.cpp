#include "train/checkpoint_tensors.h"

#include "autodiff/loss_scaling.h"
#include "base/error.h"
#include "base/parallel.h"
#include "ops/scalar_math.h"
#include "train/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

namespace tokamak {

namespace fs = std::filesystem;

namespace {

// Readers of Hugging Face's transformers refuse a file that does not name its framework.
const std::map<std::string, std::string> kMetadata = {{"format", "pt"}};

NamedType file_type(const TensorStore& store, const std::string& name) {
  return {name, {store.type(name).dtype, store.layout(name).global}};
}

// In the model's order.
std::vector<NamedType> parameter_types(const TensorStore& store) {
  std::vector<NamedType> types;
  for (const std::string& name : store.names())
    if (is_parameter(store.layout(name).role)) types.push_back(file_type(store, name));
  return types;
}

// By name.
std::vector<NamedType> optimizer_types(const TensorStore& store) {
  std::vector<NamedType> types;
  for (const std::string& name : store.names())
    if (Role role = store.layout(name).role; !is_parameter(role) && !is_scratch(role))
      types.push_back(file_type(store, name));
  std::sort(types.begin(), types.end(), [](const NamedType& a, const NamedType& b) { return a.name < b.name; });
  return types;
}

// Infinite or not a number: all bits of the exponent are set.
template <class Bits>
bool all_finite(std::span<const std::byte> bytes, Bits exponent) {
  bool finite = true;
  for (size_t at = 0; at < bytes.size(); at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + at, sizeof bits);
    finite &= (bits & exponent) != exponent;
  }
  return finite;
}

bool all_finite(std::span<const std::byte> bytes, DType dtype) {
  switch (dtype) {
    case DType::kF32: return all_finite<uint32_t>(bytes, 0x7F800000);
    case DType::kBF16: return all_finite<uint16_t>(bytes, 0x7F80);
    case DType::kF16: return all_finite<uint16_t>(bytes, 0x7C00);
    default: return true;
  }
}

// A state from which no run can go on must not take the place of a good one.
void require_finite(const std::string& name, std::span<const std::byte> bytes, DType dtype) {
  if (!all_finite(bytes, dtype))
    user_error(
        "[checkpoint] expected finite numbers in '{}', got infinities or NaN: training has diverged; "
        "continue from an earlier checkpoint with a lower --optimizer.lr or more --optimizer.warmup_steps",
        name);
}

FileRecord save_tensors(const fs::path& folder, const char* file, const TensorStore& store,
                        const std::vector<NamedType>& types) {
  SafetensorsWriter writer(folder / file, types, kMetadata);
  std::vector<std::byte> buffer;
  for (const auto& [name, type] : types) {
    buffer.resize(size_t(num_bytes(store.type(name))));
    store.read(name, buffer.data(), int64_t(buffer.size()));
    auto content = std::span(buffer).first(size_t(num_bytes(type)));
    require_finite(name, content, type.dtype);
    writer.write(name, content);
  }
  writer.finish();
  return {file, writer.bytes(), format_checksum(writer.checksum())};
}

// A tensor that does not fit tells of another configuration.
std::string remedy(const fs::path& file) {
  bool model = file.filename() == kModelFile;
  return fmt::format(
      "the checkpoint is of another model{}: set model.*{} as in its state.json, or start a new run with another "
      "train.out",
      model ? "" : " or optimizer", model ? "" : " and optimizer.name");
}

// Loss scaling comes and goes with compile.precision: a run that begins it starts with the scale as initialised.
bool is_of_scaler(std::string_view name) {
  return std::find(std::begin(kLossScalingStates), std::end(kLossScalingStates), name) != std::end(kLossScalingStates);
}

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
                 remedy(file.path()));
    ValueType got = file.type(name);
    if (got != type)
      user_error("[checkpoint] {}: expected '{}' as {}, got {}; {}", path, name, to_string(type), to_string(got),
                 remedy(file.path()));
  }
  std::erase_if(left, is_of_scaler);
  if (!left.empty())
    user_error("[checkpoint] {}: expected {} tensors, got also '{}' as {}; {}", path, types.size(), *left.begin(),
               to_string(file.type(*left.begin())), remedy(file.path()));
}

// Elements that are loaded at a time, so that no second copy of a tensor is in memory.
constexpr int64_t kPiece = int64_t(1) << 20;

template <class T, class Round>
void narrow(std::span<const std::byte> floats, std::span<std::byte> out, Round round) {
  parallel_for(int64_t(floats.size() / sizeof(float)), 4096, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      float x;
      std::memcpy(&x, floats.data() + size_t(i) * sizeof x, sizeof x);
      T y = round(x);
      std::memcpy(out.data() + size_t(i) * sizeof y, &y, sizeof y);
    }
  });
}

// Elements in f32 as the store has them, who may keep parameters in 16 bits.
void narrow(std::span<const std::byte> floats, DType to, std::span<std::byte> out) {
  if (to == DType::kBF16)
    narrow<uint16_t>(floats, out,
                     [](float x) { return uint16_t(std::bit_cast<uint32_t>(scalar::round_bf16(x)) >> 16); });
  else
    narrow<_Float16>(floats, out, [](float x) { return _Float16(x); });
}

void load_tensor(const MappedFile& file, std::span<const std::byte> bytes, const NamedType& tensor,
                 TensorStore& store) {
  const ValueType& stored = store.type(tensor.name);
  bool narrows = stored.dtype != tensor.type.dtype;
  std::vector<std::byte> narrowed(narrows ? size_t(kPiece * dtype_bytes(stored.dtype)) : 0);
  auto piece_bytes = size_t(kPiece * dtype_bytes(tensor.type.dtype));
  int64_t written = 0;
  for (size_t at = 0; at < bytes.size(); at += piece_bytes) {
    std::span<const std::byte> from = bytes.subspan(at, std::min(piece_bytes, bytes.size() - at)), piece = from;
    if (narrows) {
      narrow(from, stored.dtype, narrowed);
      piece = std::span(narrowed).first(from.size() / sizeof(float) * size_t(dtype_bytes(stored.dtype)));
    }
    store.write(tensor.name, piece.data(), int64_t(piece.size()), written);
    written += int64_t(piece.size());
    file.release(from);
  }
  if (written == num_bytes(stored)) return;
  std::vector<std::byte> padding(size_t(num_bytes(stored) - written));  // rows of zeros
  store.write(tensor.name, padding.data(), int64_t(padding.size()), written);
}

void load_tensors(const std::shared_ptr<const MappedFile>& file, TensorStore& store,
                  const std::vector<NamedType>& types) {
  SafetensorsReader reader(file);
  check_types(reader, types);
  for (const NamedType& tensor : types)
    if (reader.contains(tensor.name)) load_tensor(*file, reader.bytes(tensor.name), tensor, store);
}

// Files have all parameters in f32.
std::vector<NamedType> file_parameter_types(const TensorStore& store) {
  std::vector<NamedType> types = parameter_types(store);
  for (NamedType& parameter : types) parameter.type.dtype = DType::kF32;
  return types;
}

std::shared_ptr<const MappedFile> open_verified(const fs::path& folder, const char* name) {
  auto file = std::make_shared<const MappedFile>(folder / name);
  for (const FileRecord& record : read_record(folder).files)
    if (record.name == name) verify_file(*file, record);
  return file;
}

}  // namespace

FileRecord save_parameters(const fs::path& folder, const TensorStore& store) {
  return save_tensors(folder, kModelFile, store, parameter_types(store));
}

FileRecord save_optimizer(const fs::path& folder, const TensorStore& store) {
  return save_tensors(folder, kOptimizerFile, store, optimizer_types(store));
}

void load_parameters(const FoundCheckpoint& checkpoint, TensorStore& store) {
  load_tensors(checkpoint.files.at(kModelFile), store, file_parameter_types(store));
}

void load_parameters(const fs::path& checkpoint, TensorStore& store) {
  load_tensors(open_verified(checkpoint, kModelFile), store, file_parameter_types(store));
}

void load_optimizer(const FoundCheckpoint& checkpoint, TensorStore& store) {
  load_tensors(checkpoint.files.at(kOptimizerFile), store, optimizer_types(store));
}

void load_optimizer(const fs::path& checkpoint, TensorStore& store) {
  load_tensors(open_verified(checkpoint, kOptimizerFile), store, optimizer_types(store));
}

}  // namespace tokamak
