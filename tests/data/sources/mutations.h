// Files damaged at random, for readers over a C library that trusts what it reads.
#pragma once

#include <random>

#include "tests/data/sources/token_test.h"

namespace tokamak {

/// The bytes with one to eight places changed, as `seed` says: bits turned over, numbers replaced by small, large and
/// random ones, and pieces copied to elsewhere. Most hit where headers are: the first bytes of the file and of its
/// pages.
inline std::string mutated(std::string bytes, unsigned seed) {
  std::mt19937 random(seed);
  auto below = [&](size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random); };
  for (size_t left = 1 + below(8); left > 0; --left) {
    size_t at = 0;
    switch (below(3)) {
      case 0: at = below(bytes.size()); break;
      case 1: at = below(std::min<size_t>(bytes.size(), 2048)); break;
      default: at = std::min(below(bytes.size()) / 4096 * 4096 + below(160), bytes.size() - 1); break;
    }
    size_t count = std::min(size_t(1) << below(4), bytes.size() - at);
    switch (below(4)) {
      case 0: bytes[at] = char(bytes[at] ^ (1 << below(8))); break;
      case 1: bytes.replace(at, count, count, below(2) ? '\xff' : '\0'); break;
      case 2:
        for (size_t i = 0; i < count; ++i) bytes[at + i] = char(below(256));
        break;
      default: bytes.replace(at, count * 8, bytes.substr(below(bytes.size()), count * 8)); break;
    }
  }
  return bytes;
}

/// Reads everything in mutations of a file, by these seeds, as tokens and as documents: a UserError, or whatever comes.
inline void expect_mutations_survived(const std::filesystem::path& path, unsigned first, unsigned end) {
  std::string whole = read_file(path);
  auto survive = [](auto&& read) {
    try {
      read();
      return 0;
    } catch (const UserError&) {
      return 1;
    }
  };
  int refused = 0;
  for (unsigned seed = first; seed < end; ++seed) {
    SCOPED_TRACE(seed);
    write_file_quickly(path, mutated(whole, seed));
    refused += survive([&] {
      auto tokens = open_tokens({path}, {});
      Ids out(1000);
      for (int64_t at = 0; at < tokens->size(); at += int64_t(out.size())) {
        out.resize(size_t(std::min<int64_t>(1000, tokens->size() - at)));
        tokens->read(at, out);
      }
    });
    survive([&] {
      auto source = open_source(path, {});
      for (Document document; source->next(document);) {
      }
    });
  }
  EXPECT_GT(refused, 0) << "the mutations change nothing that is looked at";
  write_file_quickly(path, whole);
}

}  // namespace tokamak
