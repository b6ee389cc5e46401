// random_nonce() and store_proof() of base/store_server.h.
#include <fmt/core.h>

#include <random>

#include "base/frames.h"
#include "base/sha256.h"
#include "base/store_server.h"

namespace tokamak {

std::string random_nonce() {
  std::random_device device;
  std::string nonce;
  for (int i = 0; i < 8; ++i) nonce += fmt::format("{:08x}", uint32_t(device()));
  return nonce;
}

std::string store_proof(const std::string& token, const std::string& role, const std::string& server_nonce,
                        const std::string& client_nonce, const std::string& who) {
  return hmac_sha256(token, encode_frame({kStoreProtocol, role, server_nonce, client_nonce, who}));
}

}  // namespace tokamak
