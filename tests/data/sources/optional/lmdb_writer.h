// LMDB databases made by hand.
#pragma once

#include <gtest/gtest.h>
#include <lmdb.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace tokamak {

using LmdbEntries = std::vector<std::pair<std::string, std::string>>;

/// Writes a database into one file.
inline void write_lmdb(const std::string& path, const LmdbEntries& entries, const char* database = nullptr,
                       unsigned flags = 0) {
  std::filesystem::remove(path);
  MDB_env* env = nullptr;
  MDB_txn* txn = nullptr;
  MDB_dbi dbi = 0;
  mdb_env_create(&env);
  mdb_env_set_maxdbs(env, 2);
  mdb_env_set_mapsize(env, size_t(64) << 20);
  ASSERT_EQ(mdb_env_open(env, path.c_str(), MDB_NOSUBDIR | MDB_NOSYNC, 0644), 0);
  ASSERT_EQ(mdb_txn_begin(env, nullptr, 0, &txn), 0);
  ASSERT_EQ(mdb_dbi_open(txn, database, MDB_CREATE | flags, &dbi), 0);
  for (const auto& [key, value] : entries) {
    MDB_val k = {key.size(), const_cast<char*>(key.data())}, v = {value.size(), const_cast<char*>(value.data())};
    ASSERT_EQ(mdb_put(txn, dbi, &k, &v, 0), 0);
  }
  ASSERT_EQ(mdb_txn_commit(txn), 0);
  mdb_env_close(env);
}

}  // namespace tokamak
