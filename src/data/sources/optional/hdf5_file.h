// One dataset of an HDF5 file, over the C library, which crashes on some damaged files: everything here is called in
// the child process of hdf5_reader.h only.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "data/sources/optional/hdf5_facts.h"

namespace tokamak {

/// What the library says of its last failure, the innermost cause.
std::string hdf5_reason();

/// Owns one of the library's objects.
class Hdf5Handle {
 public:
  using Close = herr_t (*)(hid_t);

  Hdf5Handle() = default;
  Hdf5Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept;
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept;
  ~Hdf5Handle();

  hid_t id() const { return id_; }
  bool is_open() const { return id_ >= 0; }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

/// A dataset with one dimension, open for reading.
class Hdf5Dataset {
 public:
  /// Opens the dataset `field` of a file, or the only one that the file has. UserErrors: no HDF5 file, damage, no
  /// such dataset, several of other names, one whose elements are in other files, another number of dimensions, more
  /// elements than a file of this size can hold, a filter that the library lacks.
  Hdf5Dataset(const std::filesystem::path& path, const std::string& field);

  /// The file and the dataset, for messages.
  const std::string& name() const { return name_; }
  Hdf5Facts facts() const;

  /// Integers `begin` to `begin + count` in this machine's byte order.
  std::string integers(int64_t begin, int64_t count) const;

  /// Texts `begin` to `begin + count`, each behind its length as a uint64.
  std::string texts(int64_t begin, int64_t count) const;

 private:
  Hdf5Handle type() const { return {H5Dget_type(dataset_.id()), H5Tclose}; }
  void read(int64_t begin, int64_t count, hid_t type, void* out) const;

  std::string name_;
  Hdf5Handle file_;
  Hdf5Handle dataset_;
  int64_t size_ = 0;  // elements
};

}  // namespace tokamak
