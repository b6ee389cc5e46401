#include <gtest/gtest.h>

#include "data/sources/hashed_bytes.h"

namespace tokamak {
namespace {

std::string hash_of(std::string_view name, std::string_view text) {
  auto digest = open_digest(name);
  digest->update(text.substr(0, 2));
  digest->update(text.substr(2));
  return digest->take_hex();
}

// By Python's hashlib, of b"hello world".
TEST(OpensslDigest, AsPythonsHashlib) {
  EXPECT_EQ(hash_of("md5", "hello world"), "5eb63bbbe01eeed093cb22bb8f5acdc3");
  EXPECT_EQ(hash_of("sha1", "hello world"), "2aae6c35c94fcfb415dbe95f408b9ce91ee846ed");
  EXPECT_EQ(hash_of("sha256", "hello world"), "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9");
  EXPECT_EQ(hash_of("sha3_256", "hello world"), "644bcc7e564373040999aac89e7622f3ca71fba1d972fd94a31c3bfbf24e3938");
  EXPECT_EQ(hash_of("blake2s", "hello world"), "9aec6806794561107e594b1f6a8a6b0c92a0cba9acf5e5e93cca06f781813b0b");
  EXPECT_EQ(hash_of("blake2b", "hello world").substr(0, 32), "021ced8799296ceca557832ab941a50b");
}

TEST(OpensslDigest, EveryNameIsKnown) {
  for (const char* name : {"sha224", "sha384", "sha512", "sha3_224", "sha3_384", "sha3_512"})
    EXPECT_NE(open_digest(name), nullptr) << name;
}

}  // namespace
}  // namespace tokamak
