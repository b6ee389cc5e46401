#include "checkpoint/checkpoint_tensors.h"

#include "autodiff/loss_scaling.h"
#include "base/error.h"
#include "checkpoint/divergence.h"
#include "checkpoint/float_conversion.h"
#include "checkpoint/model_tensors.h"
#include "checkpoint/run_folder.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/verify.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <set>

namespace tokamak {

namespace fs = std::filesystem;

namespace {

NamedType file_type(const TensorStore& store, const std::string& name) {
  return {name, {store.type(name).dtype, store.spec(name).global}};
}

// In the model's order.
std::vector<NamedType> parameter_types(const TensorStore& store) {
  std::vector<NamedType> types;
  for (const std::string& name : store.names())
    if (is_parameter(store.spec(name).role)) types.push_back(file_type(store, name));
  return types;
}

// By name.
std::vector<NamedType> optimizer_types(const TensorStore& store) {
  std::vector<NamedType> types;
  for (const std::string& name : store.names())
    if (Role role = store.spec(name).role; !is_parameter(role) && !is_scratch(role))
      types.push_back(file_type(store, name));
  std::sort(types.begin(), types.end(), [](const NamedType& a, const NamedType& b) { return a.name < b.name; });
  return types;
}

// All ranks put the tensors together, and the one that leads writes them.
FileRecord gather_file(const fs::path& folder, const StateFile& file, const TensorStore& store) {
  SafetensorsWriter writer(folder / file.name, file.tensors, model_metadata());
  std::vector<std::byte> whole;
  for (const auto& [name, type] : file.tensors) {
    whole.resize(size_t(num_bytes(type)));
    store.read_whole(name, whole.data());
    require_finite(run_folder_of(folder), name, whole, type.dtype);
    writer.write(name, whole);
  }
  return finish_file(writer, file.name);
}

// A tensor that does not fit tells of another configuration.
constexpr const char* kRemedy =
    "the checkpoint is of another model or optimizer: set model.* and optimizer.* as in its state.json, or start a "
    "new "
    "run with another train.out";

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
      user_error("[checkpoint] {}: expected '{}' as {}, got no such tensor; {}", path, name, to_string(type), kRemedy);
    ValueType got = file.type(name);
    bool is_rounded = got.shape == type.shape && is_float(got.dtype) && is_float(type.dtype);  // optimizer.state_type
    if (got != type && !is_rounded)
      user_error("[checkpoint] {}: expected '{}' as {}, got {}; {}", path, name, to_string(type), to_string(got),
                 kRemedy);
  }
  std::erase_if(left, is_of_scaler);
  if (!left.empty())
    user_error("[checkpoint] {}: expected {} tensors, got also '{}' as {}; {}", path, types.size(), *left.begin(),
               to_string(file.type(*left.begin())), kRemedy);
}

// Elements that are loaded at a time, so that no second copy of a tensor is in memory.
constexpr int64_t kPiece = int64_t(1) << 20;

// Reads bytes of a tensor: as they lie in memory, or from a file.
using ReadPiece = std::function<void(std::span<const std::byte> piece, std::span<std::byte> to)>;

void copy_piece(std::span<const std::byte> piece, std::span<std::byte> to) {
  std::copy(piece.begin(), piece.end(), to.begin());
}

// A store's share of a tensor, written in its order a piece at a time; `whole` stands for all of it, in f32 or as it is
// stored, of which what belongs to the share is read and nothing else.
class ShareWriter {
 public:
  ShareWriter(TensorStore& store, const NamedType& tensor)
      : store_(store), name_(tensor.name), stored_(store.type(tensor.name)), from_(tensor.type.dtype) {}

  void write(std::span<const std::byte> whole, const ReadPiece& read) {
    int64_t size = dtype_bytes(from_);
    for (const PartRun& run : store_.share(name_)) {
      pad(run.part * dtype_bytes(stored_.dtype));
      for (int64_t at = 0; at < run.count; at += kPiece) {
        int64_t count = std::min(kPiece, run.count - at);
        append(whole.subspan(size_t((run.whole + at) * size), size_t(count * size)), count, read);
      }
    }
    pad(num_bytes(stored_));
    flush();
  }

 private:
  void append(std::span<const std::byte> elements, int64_t count, const ReadPiece& read) {
    int64_t size = dtype_bytes(stored_.dtype);
    if (int64_t(buffer_.size()) + count * size > kPiece * size) flush();
    size_t at = buffer_.size();
    buffer_.resize(at + size_t(count * size));
    auto to = std::span(buffer_).subspan(at);
    if (from_ == stored_.dtype) return read(elements, to);
    read_.resize(elements.size());
    read(elements, read_);
    convert_floats(read_, from_, stored_.dtype, to);
  }
  void flush() {
    store_.write(name_, buffer_.data(), int64_t(buffer_.size()), written_);
    written_ += int64_t(buffer_.size());
    buffer_.clear();
  }
  // Zeros, until there are so many bytes.
  void pad(int64_t end) {
    for (int64_t left = end - reached(); left > 0; left = end - reached()) {
      if (int64_t(buffer_.size()) >= kPiece) flush();
      buffer_.resize(buffer_.size() + size_t(std::min(left, kPiece - int64_t(buffer_.size()))));
    }
  }
  int64_t reached() const { return written_ + int64_t(buffer_.size()); }

  TensorStore& store_;
  const std::string& name_;
  const ValueType& stored_;
  DType from_;
  std::vector<std::byte> read_, buffer_;
  int64_t written_ = 0;
};

// Files of ours have all parameters in f32.
std::vector<NamedType> file_parameter_types(const TensorStore& store) {
  std::vector<NamedType> types = parameter_types(store);
  for (NamedType& parameter : types) parameter.type.dtype = DType::kF32;
  return types;
}

void load_model(const FoundCheckpoint& checkpoint, TensorStore& store) {
  ModelTensors tensors(checkpoint);
  std::vector<NamedType> parameters = file_parameter_types(store);
  tensors.require(parameters);
  for (NamedType& parameter : parameters) {
    if (!store.is_here(parameter.name)) continue;
    parameter.type.dtype = tensors.type(parameter.name).dtype;
    const CheckpointFile& file = tensors.file_of(parameter.name);
    ShareWriter(store, parameter).write(tensors.bytes(parameter.name), [&](auto piece, auto to) {
      file.read(piece, to);
    });
  }
}

void load_tensors(const std::shared_ptr<const CheckpointFile>& file, TensorStore& store,
                  const std::vector<NamedType>& types) {
  SafetensorsReader reader(file);
  check_types(reader, types);
  for (const auto& [name, type] : types)
    if (reader.contains(name) && store.is_here(name))
      ShareWriter(store, {name, reader.type(name)}).write(reader.bytes(name), [&](auto piece, auto to) {
        file->read(piece, to);
      });
}

}  // namespace

std::shared_ptr<const CheckpointFile> open_verified(const fs::path& folder, const char* name) {
  auto file = std::make_shared<const CheckpointFile>(folder / name);
  for (const FileRecord& record : read_record(folder).files)
    if (record.name == name) verify_file(file, record);
  return file;
}

FileRecord finish_file(SafetensorsWriter& writer, const char* name) {
  writer.finish();
  FileRecord record{
      name, writer.bytes(), format_checksum(writer.checksum()), {}, format_checksum(writer.header_checksum())};
  for (const auto& [tensor, checksum] : writer.tensor_checksums()) record.tensors[tensor] = format_checksum(checksum);
  return record;
}

void require_finite(const fs::path& out, const std::string& tensor, std::span<const std::byte> bytes, DType dtype) {
  constexpr int64_t kAllAreBefore = std::numeric_limits<int64_t>::max();
  if (!all_finite(bytes, dtype))
    user_error("[checkpoint] expected finite numbers in '{}', got infinities or NaN: training has diverged. {}", tensor,
               advise_after_divergence(out, kAllAreBefore));
}

std::vector<StateFile> state_files(const TensorStore& store) {
  return {{kModelFile, parameter_types(store)}, {kOptimizerFile, optimizer_types(store)}};
}

std::vector<FileRecord> gather_files(const fs::path& folder, const TensorStore& store) {
  std::vector<FileRecord> records;
  for (const StateFile& file : state_files(store)) records.push_back(gather_file(folder, file, store));
  return records;
}

void join_saving(const TensorStore& store) {
  for (const StateFile& file : state_files(store))
    for (const NamedType& tensor : file.tensors) store.read_whole(tensor.name, nullptr);
}

void copy_parameters(const TensorStore& from, TensorStore* to) {
  std::vector<std::byte> whole;
  for (const NamedType& parameter : parameter_types(from)) {
    if (to) whole.resize(size_t(num_bytes(parameter.type)));
    from.read_whole(parameter.name, whole.data());
    if (to) ShareWriter(*to, parameter).write(whole, copy_piece);
  }
}

void load_parameters(const FoundCheckpoint& checkpoint, TensorStore& store) { load_model(checkpoint, store); }

void load_parameters(const fs::path& checkpoint, TensorStore& store) {
  load_model({checkpoint, {}, {{kModelFile, open_verified(checkpoint, kModelFile)}}}, store);
}

void load_optimizer(const FoundCheckpoint& checkpoint, TensorStore& store) {
  load_tensors(checkpoint.files.at(kOptimizerFile), store, optimizer_types(store));
}

void load_optimizer(const fs::path& checkpoint, TensorStore& store) {
  load_tensors(open_verified(checkpoint, kOptimizerFile), store, optimizer_types(store));
}

}  // namespace tokamak
