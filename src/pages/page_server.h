// A page over HTTP, for one who looks at it while it changes. Tests: tests/pages/page_server_test.cpp.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace tokamak {

struct PageAddress {
  std::string host = "127.0.0.1";  // whose requests are answered: this machine's own, or those that reach an interface
  int port = 0;                    // 0: any that is free
};

/// Serves one page at / until it is destroyed. `make` is called from other threads, one call at a time, for each
/// request; what it throws becomes a page with its message. On the loopback only requests for a name of the loopback
/// are answered, so that no other page in a browser reaches this one by a name of its own.
class PageServer {
 public:
  /// UserError where the port is taken, the host is none of this machine, the system has no threads for it, or the
  /// build no library.
  PageServer(const PageAddress& address, std::function<std::string()> make);
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;
  ~PageServer();

  /// "http://127.0.0.1:8000/".
  std::string url() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tokamak
