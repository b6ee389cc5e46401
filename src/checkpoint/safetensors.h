// The safetensors format: 8 bytes header length, a JSON header of names, dtypes, shapes and places, then the bytes.
// Format as described in the README of huggingface/safetensors. Tests: tests/checkpoint/safetensors_test.cpp.
#pragma once

#include "base/checksum.h"
#include "base/file.h"
#include "graph/type.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tokamak {

struct NamedType {
  std::string name;
  ValueType type;
};

/// What a model's file says of itself: Hugging Face's Transformers refuses one that does not name its framework.
std::map<std::string, std::string> model_metadata();

/// The values of 16 bits that are stored as bf16 and f16.
float widen_bf16(uint16_t bits);
float widen_f16(uint16_t bits);

/// A file as its header has it.
struct SafetensorsLayout {
  std::string header;          // all that lies before the tensors, its length included
  std::vector<int64_t> begin;  // where each tensor's bytes begin in the file
  int64_t bytes = 0;           // of the file
};

/// Of these tensors in this order.
SafetensorsLayout safetensors_layout(const std::vector<NamedType>& tensors,
                                     const std::map<std::string, std::string>& metadata = {});

/// Writes a file tensor by tensor, so that no second copy of the model is ever in memory. It appears under its name
/// only with finish(); every failure is a UserError naming the path.
class SafetensorsWriter {
 public:
  /// The header is written at once, so names, types and order are known beforehand.
  SafetensorsWriter(const std::filesystem::path& path, std::vector<NamedType> tensors,
                    const std::map<std::string, std::string>& metadata = {});

  /// The next tensor, which must be `name`: num_bytes of its type, row-major, little endian.
  void write(std::string_view name, std::span<const std::byte> data);

  /// The same in pieces, one after the other, of which the last completes it.
  void write_piece(std::string_view name, std::span<const std::byte> piece);

  /// All tensors are written: syncs the file and gives it its name.
  void finish();

  /// Of the whole file, after finish(); of what lies before the tensors; and of each tensor's bytes, by its name.
  uint64_t checksum() const { return checksum_.digest(); }
  uint64_t header_checksum() const { return header_checksum_; }
  const std::map<std::string, uint64_t>& tensor_checksums() const { return tensor_checksums_; }
  int64_t bytes() const { return bytes_; }

 private:
  void append(std::span<const std::byte> data, Checksum* tensor = nullptr);

  std::vector<NamedType> tensors_;
  size_t next_ = 0;
  int64_t written_ = 0;  // of the next one
  int64_t bytes_ = 0;
  Checksum checksum_, tensor_checksum_;
  uint64_t header_checksum_ = 0;
  std::map<std::string, uint64_t> tensor_checksums_;
  AtomicFile file_;
};

/// A file mapped and checked: header, dtypes, and that the tensors fill the rest of the file without gap or overlap.
class SafetensorsReader {
 public:
  /// UserError names the file, what was expected and what came.
  explicit SafetensorsReader(const std::filesystem::path& path);
  explicit SafetensorsReader(std::shared_ptr<const MappedFile> file);

  const std::filesystem::path& path() const { return file_->path(); }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const { return entries_.count(name) > 0; }

  /// Whether its dtype is one of ours.
  bool is_known(const std::string& name) const;
  /// UserErrors: no such tensor; a dtype that is none of ours (BOOL, F64, ...), which only matters when it is asked
  /// for.
  ValueType type(const std::string& name) const;
  /// The tensor's bytes, valid as long as the reader.
  std::span<const std::byte> bytes(const std::string& name) const;
  /// A float tensor's elements, widened to f32.
  std::vector<float> floats(const std::string& name) const;

  /// What lies before the tensors' bytes, and the whole file, for checksums.
  std::span<const std::byte> header_bytes() const { return file_bytes().first(header_bytes_); }
  std::span<const std::byte> file_bytes() const { return file_->bytes(); }

 private:
  struct Entry {
    std::string dtype;  // as the file says
    Shape shape;
    std::span<const std::byte> bytes;
  };
  const Entry& find(const std::string& name) const;

  std::shared_ptr<const MappedFile> file_;
  size_t header_bytes_ = 0;
  std::map<std::string, std::string> metadata_;
  std::map<std::string, Entry> entries_;
};

}  // namespace tokamak
