// A stream whose bytes must have the hashes that something beside it says: MD5, SHA-1 to SHA-3, BLAKE2 (by OpenSSL,
// `libssl-dev`), XXH64. Tests: tests/data/sources/hashed_bytes_test.cpp.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "data/sources/byte_stream.h"

namespace tokamak {

/// A hash of bytes that come in pieces.
class Digest {
 public:
  virtual ~Digest() = default;
  virtual void update(std::string_view bytes) = 0;

  /// In hexadecimal digits of lower case. Once, at the end.
  virtual std::string take_hex() = 0;
};

/// By the names that Python's hashlib and xxhash have: "sha1", "blake2b", "xxh64". Null for what is not known here, or
/// was left out when the program was built.
std::unique_ptr<Digest> open_digest(std::string_view name);

/// Of these, what OpenSSL brings.
std::unique_ptr<Digest> open_openssl_digest(std::string_view name);

/// Hexadecimal digits by the name of the hash.
using Hashes = std::map<std::string, std::string>;

/// The bytes of `in`. A UserError at their end for a hash that is not the one expected; `said_by` is who says it.
/// Hashes that open_digest() does not know are not looked at.
std::unique_ptr<ByteStream> with_hashes(std::unique_ptr<ByteStream> in, const Hashes& expected, std::string said_by);

}  // namespace tokamak
