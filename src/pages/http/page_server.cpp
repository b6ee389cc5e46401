#include "pages/page_server.h"

#include "base/error.h"
#include "base/socket.h"
#include "base/start_threads.h"
#include "pages/html.h"

#include <fmt/format.h>
#include <httplib.h>

#include <future>
#include <mutex>
#include <system_error>

namespace tokamak {
namespace {

// As a browser names it: in brackets where it is an address with colons.
std::string written_host(const std::string& host) { return host.find(':') == host.npos ? host : "[" + host + "]"; }

// The host of a request without its port.
std::string host_of(const std::string& header) {
  size_t end = header.starts_with("[") ? header.find(']') : header.find(':');
  if (!header.starts_with("[")) return header.substr(0, end);
  return end == header.npos ? header : header.substr(1, end - 1);
}

// A number or "localhost", but no name that only looks like an address: it would lead wherever its owner likes.
bool names_loopback(const std::string& host) {
  return host == "localhost" || (is_loopback(host) && host.find_first_not_of("0123456789.:") == host.npos);
}

}  // namespace

struct PageServer::State {
  httplib::Server server;
  std::vector<std::thread> threads;  // the one that waits for readers
  std::promise<bool> starts;
  std::mutex mutex;
  std::string host;
  int port = 0;
  std::function<std::string()> make;

  std::string page() {
    std::lock_guard lock(mutex);
    return make();
  }

  void answer(const httplib::Request& request, httplib::Response& response) {
    if (names_loopback(host) && !names_loopback(host_of(request.get_header_value("Host")))) {
      response.status = 403;
      response.set_content("expected a request for " + written_host(host) + "\n", "text/plain");
      return;
    }
    response.set_header("Cache-Control", "no-store");
    try {
      response.set_content(page(), "text/html; charset=utf-8");
    } catch (const std::exception& error) {
      response.status = 500;
      response.set_content("<meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"5\"><pre>" +
                               escape_html(error.what()) + "</pre>\n",
                           "text/html; charset=utf-8");
    }
  }

  void bind(const PageAddress& address) {
    // The library would also share a port with another server, whose page a reader would then see by chance.
    server.set_socket_options([](socket_t socket) {
      int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    host = address.host;
    port = address.port;
    bool is_bound = true;
    if (port == 0)
      is_bound = (port = server.bind_to_any_port(host.c_str())) > 0;
    else
      is_bound = server.bind_to_port(host.c_str(), port);
    if (!is_bound)
      user_error(
          "[report] expected a port to serve on, got {} port {}, which is taken or none of this machine; name "
          "another one with --port",
          host, address.port);
  }

  // The library makes threads for readers when it is ready: before that, stop() would be lost.
  void listen() {
    constexpr size_t kThreads = 4;  // readers at a time
    bool is_ready = false;
    server.new_task_queue = [&] {
      auto queue = std::make_unique<httplib::ThreadPool>(kThreads);
      is_ready = true;
      starts.set_value(true);
      return queue.release();
    };
    try {
      server.listen_after_bind();
    } catch (const std::system_error&) {  // no thread
    }
    if (!is_ready) starts.set_value(false);
  }

  void start() {
    threads = start_threads(1, [this](int) { listen(); });
    if (starts.get_future().get()) return;
    threads[0].join();
    user_error(
        "[report] expected to serve on {} port {}, got no readers' threads; allow this program more of them (ulimit "
        "-u, the container's limit of processes) or more memory",
        host, port);
  }
};

PageServer::PageServer(const PageAddress& address, std::function<std::string()> make)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.make = std::move(make);
  state.server.Get(
      "/", [&](const httplib::Request& request, httplib::Response& response) { state.answer(request, response); });
  state.bind(address);
  state.start();
}

PageServer::~PageServer() {
  state_->server.stop();
  for (std::thread& thread : state_->threads) thread.join();
}

std::string PageServer::url() const { return fmt::format("http://{}:{}/", written_host(state_->host), state_->port); }

}  // namespace tokamak
