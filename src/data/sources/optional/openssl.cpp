// Hashes of OpenSSL's libcrypto, by the names that Python's hashlib has.
#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "data/sources/hashed_bytes.h"

namespace tokamak {

namespace {

struct Name {
  std::string_view python;
  const char* openssl;
};

constexpr Name kNames[] = {
    {"md5", "MD5"},           {"sha1", "SHA1"},         {"sha224", "SHA224"},      {"sha256", "SHA256"},
    {"sha384", "SHA384"},     {"sha512", "SHA512"},     {"sha3_224", "SHA3-224"},  {"sha3_256", "SHA3-256"},
    {"sha3_384", "SHA3-384"}, {"sha3_512", "SHA3-512"}, {"blake2b", "BLAKE2b512"}, {"blake2s", "BLAKE2s256"},
};

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

class OpensslDigest : public Digest {
 public:
  explicit OpensslDigest(const EVP_MD* kind) : context_(EVP_MD_CTX_new()) {
    TOKAMAK_CHECK(context_ && EVP_DigestInit_ex(context_.get(), kind, nullptr) == 1, "OpenSSL opened no hash");
  }

  void update(std::string_view bytes) override {
    TOKAMAK_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1, "OpenSSL hashed nothing");
  }

  std::string take_hex() override {
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes;
    unsigned size = 0;
    TOKAMAK_CHECK(EVP_DigestFinal_ex(context_.get(), bytes.data(), &size) == 1, "OpenSSL ended no hash");
    std::string hex;
    for (unsigned i = 0; i < size; ++i) hex += fmt::format("{:02x}", bytes[i]);
    return hex;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, FreeContext> context_;
};

}  // namespace

std::unique_ptr<Digest> open_openssl_digest(std::string_view name) {
  auto found = std::ranges::find(kNames, name, &Name::python);
  const EVP_MD* kind = found == std::end(kNames) ? nullptr : EVP_get_digestbyname(found->openssl);
  return kind ? std::make_unique<OpensslDigest>(kind) : nullptr;  // a system may forbid MD5
}

}  // namespace tokamak
