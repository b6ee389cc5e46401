// The parameters of a model in one or several safetensors files, found by the names that they have here.
// Tests: tests/checkpoint/hugging_face_test.cpp.
#pragma once

#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors.h"

#include <functional>

namespace tokamak {

/// A tensor of one of the files.
struct StoredParameter {
  const SafetensorsReader* reader = nullptr;
  std::string tensor;  // as the file calls it
};

class ModelTensors {
 public:
  /// Of a checkpoint's model files. UserError when two tensors are one parameter.
  explicit ModelTensors(const FoundCheckpoint& checkpoint);

  /// UserError unless there are exactly these, of these shapes and of a float type: the first that differs, both
  /// shapes, what to do.
  void require(const std::vector<NamedType>& parameters) const;
  std::vector<std::string> names() const;
  bool contains(const std::string& parameter) const { return found_.count(parameter) > 0; }
  /// Its type in the file, and its bytes there, which are valid as long as this.
  ValueType type(const std::string& parameter) const;
  std::span<const std::byte> bytes(const std::string& parameter) const;
  /// The file that has them.
  const CheckpointFile& file_of(const std::string& parameter) const;
  /// The pages of these bytes are not needed any more.
  void release(const std::string& parameter, std::span<const std::byte> bytes) const;

 private:
  const StoredParameter& find(const std::string& parameter) const { return found_.at(parameter); }
  std::string where(const std::string& parameter) const;

  std::string folder_;
  std::string remedy_;  // of tensors that do not fit
  std::vector<std::shared_ptr<const CheckpointFile>> files_;
  std::vector<std::unique_ptr<SafetensorsReader>> readers_;
  std::map<std::string, StoredParameter> found_;  // by the name here
};

}  // namespace tokamak
