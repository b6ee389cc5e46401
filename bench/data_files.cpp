#include "bench/data_files.h"

#include <fmt/core.h>
#include <hdf5.h>
#include <lmdb.h>

#include <algorithm>
#include <fstream>

#include "base/error.h"
#include "data/token_shard.h"

namespace tokamak {

namespace {

namespace fs = std::filesystem;
using Ids = std::span<const int32_t>;

constexpr size_t kMemberTokens = 100'000;  // of a tar
constexpr size_t kValueTokens = 4096;      // of LMDB
constexpr hsize_t kChunkTokens = 65'536;   // of HDF5

std::string packed(Ids ids) {
  std::vector<uint16_t> stored(ids.begin(), ids.end());
  return std::string(reinterpret_cast<const char*>(stored.data()), 2 * stored.size());
}

std::string npy(Ids ids) {
  std::string header = fmt::format("{{'descr': '<u2', 'fortran_order': False, 'shape': ({},), }}", ids.size());
  header.resize(117, ' ');
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + '\n' + packed(ids);
}

std::string tar_header(const std::string& name, size_t bytes) {
  std::string block = name;
  block.resize(512, '\0');
  block.replace(124, 11, fmt::format("{:011o}", bytes));
  block.replace(148, 9, "        0");
  unsigned sum = 0;
  for (char c : block) sum += uint8_t(c);
  return block.replace(148, 7, fmt::format("{:06o}", sum) + '\0');
}

/// Calls use(number, ids) for pieces of `size` tokens.
template <typename Use>
void for_pieces(Ids ids, size_t size, Use&& use) {
  for (size_t i = 0; i * size < ids.size(); ++i) use(i, ids.subspan(i * size, std::min(size, ids.size() - i * size)));
}

void write_bin(const fs::path& path, Ids ids) {
  TokenShardWriter writer(path, int64_t(ids.size()), 2);
  writer.append(ids);
  writer.finish();
  writer.commit();
}

void write_npy(const fs::path& path, Ids ids) { std::ofstream(path, std::ios::binary) << npy(ids); }

void write_tar(const fs::path& path, Ids ids) {
  std::ofstream file(path, std::ios::binary);
  for_pieces(ids, kMemberTokens, [&](size_t number, Ids piece) {
    std::string content = npy(piece);
    file << tar_header(fmt::format("{:08}.npy", number), content.size()) << content
         << std::string((512 - content.size() % 512) % 512, '\0');
  });
  file << std::string(1024, '\0');
}

void check(int status) { TOKAMAK_CHECK(status == 0, "{}", mdb_strerror(status)); }

void write_lmdb(const fs::path& path, Ids ids) {
  MDB_env* env = nullptr;
  MDB_txn* txn = nullptr;
  MDB_dbi database = 0;
  check(mdb_env_create(&env));
  check(mdb_env_set_mapsize(env, ids.size() * 8));
  check(mdb_env_open(env, path.c_str(), MDB_NOSUBDIR | MDB_NOSYNC, 0644));
  check(mdb_txn_begin(env, nullptr, 0, &txn));
  check(mdb_dbi_open(txn, nullptr, 0, &database));
  for_pieces(ids, kValueTokens, [&](size_t number, Ids piece) {
    std::string key = fmt::format("{:08}", number), value = packed(piece);
    MDB_val k = {key.size(), key.data()}, v = {value.size(), value.data()};
    check(mdb_put(txn, database, &k, &v, MDB_APPEND));
  });
  check(mdb_txn_commit(txn));
  mdb_env_close(env);
}

void write_hdf5(const fs::path& path, Ids ids, bool chunked, bool gzip) {
  hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  hsize_t size = ids.size();
  hid_t space = H5Screate_simple(1, &size, nullptr);
  if (chunked) H5Pset_chunk(creation, 1, &kChunkTokens);
  if (gzip) H5Pset_deflate(creation, 1);
  hid_t dataset = H5Dcreate2(file, "tokens", H5T_STD_U16LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  TOKAMAK_CHECK(H5Dwrite(dataset, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, ids.data()) >= 0, "no HDF5");
  H5Dclose(dataset);
  H5Sclose(space);
  H5Pclose(creation);
  H5Fclose(file);
}

}  // namespace

const std::vector<TokenFileKind>& token_file_kinds() {
  static const std::vector<TokenFileKind> kinds = {
      {"bin", ".bin", write_bin},
      {"npy", ".npy", write_npy},
      {"tar, members of 100,000", ".tar", write_tar},
      {"lmdb, values of 4096", ".mdb", write_lmdb},
      {"hdf5, contiguous", ".h5", [](const fs::path& path, Ids ids) { write_hdf5(path, ids, false, false); }},
      {"hdf5, chunks of 65,536", ".h5", [](const fs::path& path, Ids ids) { write_hdf5(path, ids, true, false); }},
      {"hdf5, chunks with gzip", ".h5", [](const fs::path& path, Ids ids) { write_hdf5(path, ids, true, true); }},
  };
  return kinds;
}

}  // namespace tokamak
