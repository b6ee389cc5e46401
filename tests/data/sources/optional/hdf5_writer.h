// HDF5 files made by hand.
#pragma once

#include <gtest/gtest.h>
#include <hdf5.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tokamak {

/// What a written dataset is like.
struct Hdf5Layout {
  hsize_t chunk = 0;  // elements; 0: contiguous
  bool gzip = false;
  H5Z_filter_t filter = 0;  // another one
  std::string external;     // a file that holds the elements
  std::string source;       // a file whose dataset `tokens` a virtual one shows
};

/// An HDF5 file that is being written; only one test thread uses the library meanwhile.
class Hdf5Writer {
 public:
  explicit Hdf5Writer(const std::string& path)
      : file_(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) {}
  ~Hdf5Writer() { H5Fclose(file_); }

  void add(const std::string& name, hid_t stored, hid_t memory, const std::vector<hsize_t>& shape, const void* data,
           Hdf5Layout layout = {}) {
    hid_t space = H5Screate_simple(int(shape.size()), shape.data(), nullptr);
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE), link = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(link, 1);
    if (layout.chunk > 0) H5Pset_chunk(creation, 1, &layout.chunk);
    if (layout.gzip) H5Pset_deflate(creation, 1);
    if (layout.filter) H5Pset_filter(creation, layout.filter, 0, 0, nullptr);
    if (!layout.external.empty()) H5Pset_external(creation, layout.external.c_str(), 0, H5F_UNLIMITED);
    if (!layout.source.empty()) H5Pset_virtual(creation, space, layout.source.c_str(), "tokens", space);
    hid_t dataset = H5Dcreate2(file_, name.c_str(), stored, space, link, creation, H5P_DEFAULT);
    herr_t status = data ? H5Dwrite(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) : 0;
    EXPECT_GE(status, 0);
    for (hid_t list : {creation, link}) H5Pclose(list);
    H5Dclose(dataset);
    H5Sclose(space);
  }

  void add_ids(const std::string& name, const std::vector<int32_t>& ids, hid_t stored = H5T_STD_U16LE,
               Hdf5Layout layout = {}) {
    add(name, stored, H5T_NATIVE_INT32, {ids.size()}, ids.data(), layout);
  }

  void add_texts(const std::string& name, const std::vector<const char*>& texts) {
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    add(name, type, type, {texts.size()}, texts.data());
    H5Tclose(type);
  }

  void add_fixed_texts(const std::string& name, const std::string& cells, size_t width, H5T_str_t padding) {
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, width);
    H5Tset_strpad(type, padding);
    add(name, type, type, {cells.size() / width}, cells.data());
    H5Tclose(type);
  }

  void add_external_link(const std::string& name, const std::string& file, const std::string& object) {
    EXPECT_GE(H5Lcreate_external(file.c_str(), object.c_str(), file_, name.c_str(), H5P_DEFAULT, H5P_DEFAULT), 0);
  }

  void add_soft_link(const std::string& name, const std::string& target) {
    EXPECT_GE(H5Lcreate_soft(target.c_str(), file_, name.c_str(), H5P_DEFAULT, H5P_DEFAULT), 0);
  }

 private:
  hid_t file_;
};

}  // namespace tokamak
