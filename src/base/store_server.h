// A small store over TCP, by which the ranks of a run find each other, agree, and learn that one of them has failed.
// Rank 0 serves it; all ranks, also rank 0, are its clients (base/store_client.h). Who joins proves that it knows the
// token (HMAC-SHA256 of numbers drawn for it); what is sent is not encrypted. Strangers are turned away, and hold few
// files; until all ranks have joined one of the right token that cannot be right ends the run, afterwards it is turned
// away, too. A rank whose connection breaks ends the run. Tests: tests/base/store_test.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace tokamak {

class StoreServer {
 public:
  /// Serves in a thread of its own. Port 0: any that is free. UserError when the port is taken.
  StoreServer(const std::string& host, int port, int world, std::string token);
  /// Waits some seconds for ranks that have not left yet.
  ~StoreServer();

  int port() const;
  /// The address of this machine that ranks of other machines have reached; one of the loopback while none has.
  std::string address() const;
  /// Someone calls note_end() for each rank whose process ends: what has broken a connection is told then, or when a
  /// moment is over. To be called before any rank joins.
  void expect_ends();
  /// Whoever started the process of a rank says how it ended ("was killed by signal 9"). A rank that had not joined
  /// ends the run at once; of one whose connection broke, this is the reason that is told. For any thread.
  void note_end(int rank, const std::string& how);
  /// The ranks that have not joined yet. For any thread.
  std::vector<int> missing() const;
  /// Whether the run has failed, of which all ranks are told.
  bool has_failed() const;

 private:
  class Service;
  std::unique_ptr<Service> service_;
};

/// What proves that one knows the token: both sides, each for its own role ("client", "server").
std::string store_proof(const std::string& token, const std::string& role, const std::string& server_nonce,
                        const std::string& client_nonce, const std::string& who);
std::string random_nonce();

inline constexpr const char* kStoreProtocol = "tokamak-store-1";
inline constexpr size_t kStoreMaxBytes = 64 << 20;  // of a message

}  // namespace tokamak
