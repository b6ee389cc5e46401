#include "base/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/ranges.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/system.h"

namespace tokamak {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses resolve(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  int status = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (status != 0)
    user_error("[rendezvous] expected the name or address of rank 0's machine, got '{}': {}; set MASTER_ADDR", host,
               ::gai_strerror(status));
  return {found, ::freeaddrinfo};
}

std::string number_of(const sockaddr* address, socklen_t bytes) {
  char text[NI_MAXHOST] = "";
  ::getnameinfo(address, bytes, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

sockaddr_storage own_end(int socket, socklen_t& bytes) {
  sockaddr_storage address = {};
  bytes = sizeof address;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &bytes);
  return address;
}

// Addresses of IPv6 that are of one link alone need its name beside them.
bool is_of_link(const sockaddr* address) {
  if (address->sa_family != AF_INET6) return false;
  sockaddr_in6 six;
  std::memcpy(&six, address, sizeof six);
  return IN6_IS_ADDR_LINKLOCAL(&six.sin6_addr);
}

/// 0 or errno.
int try_connect(const addrinfo& address, FileDescriptor& to, Deadline deadline) {
  FileDescriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return errno;
  int status = ::connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  if (status == EINPROGRESS) {
    pollfd ready = {socket.get(), POLLOUT, 0};
    if (::poll(&ready, 1, milliseconds_left(deadline)) <= 0) return ETIMEDOUT;
    socklen_t bytes = sizeof status;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &status, &bytes);
  }
  if (status != 0) return status;
  ::fcntl(socket.get(), F_SETFL, ::fcntl(socket.get(), F_GETFL) & ~O_NONBLOCK);
  to = std::move(socket);
  return 0;
}

}  // namespace

Deadline deadline_in(double seconds) {
  using namespace std::chrono;
  return steady_clock::now() + duration_cast<steady_clock::duration>(duration<double>(seconds));
}

int milliseconds_left(Deadline deadline) {
  using namespace std::chrono;
  auto left = ceil<milliseconds>(deadline - steady_clock::now()).count();
  return int(std::clamp<int64_t>(left, 0, 1 << 30));
}

FileDescriptor listen_on(const std::string& host, int port) {
  Addresses found = resolve(host, port);
  // A machine may know its own name by an address of the loopback, by which no other one reaches it.
  bool loopback = host == "localhost" || is_loopback(host);
  sockaddr_storage address = {};
  std::memcpy(&address, found->ai_addr, found->ai_addrlen);
  if (!loopback && found->ai_family == AF_INET) reinterpret_cast<sockaddr_in&>(address).sin_addr.s_addr = INADDR_ANY;
  if (!loopback && found->ai_family == AF_INET6) reinterpret_cast<sockaddr_in6&>(address).sin6_addr = in6addr_any;
  FileDescriptor socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);  // ports of runs that have just ended
  if (!socket.is_open() || ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), found->ai_addrlen) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0)
    user_error("[rendezvous] rank 0 cannot listen on port {} of {}: {}; set TOKAMAK_PORT to one that is free", port,
               host, std::strerror(errno));
  return socket;
}

FileDescriptor connect_to(const std::string& host, int port, Deadline deadline) {
  FileDescriptor socket;
  while (true) {
    Addresses found = resolve(host, port);
    int status = 0;
    for (const addrinfo* address = found.get(); address; address = address->ai_next) {
      status = try_connect(*address, socket, deadline);
      if (status == 0) return socket;
    }
    if (milliseconds_left(deadline) == 0)
      user_error(
          "[rendezvous] cannot reach rank 0 on port {} of {}: {}; see whether it runs, and whether a firewall lets "
          "this machine in",
          port, host, std::strerror(status));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

void watch_connection(int socket) {
  auto set = [socket](int level, int option, int value) { ::setsockopt(socket, level, option, &value, sizeof value); };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 3);  // seconds of silence,
  set(IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);  // then so many questions
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 10'000);
}

std::string local_address(int socket) {
  socklen_t bytes;
  sockaddr_storage address = own_end(socket, bytes);
  return number_of(reinterpret_cast<sockaddr*>(&address), bytes);
}

int port_of(int socket) {
  socklen_t bytes;
  sockaddr_storage address = own_end(socket, bytes);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

bool is_loopback(std::string_view address) { return address.starts_with("127.") || address == "::1"; }

std::string interface_address(const std::string& interface, const std::string& like) {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) user_error("[mesh.interface] cannot list networks: {}", std::strerror(errno));
  std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(first, ::freeifaddrs);
  bool wants_six = like.find(':') != std::string::npos;
  std::string found;
  std::set<std::string> names;
  for (const ifaddrs* at = first; at; at = at->ifa_next) {
    names.insert(at->ifa_name);
    if (interface != at->ifa_name || !at->ifa_addr || is_of_link(at->ifa_addr)) continue;
    bool is_six = at->ifa_addr->sa_family == AF_INET6;
    if (!is_six && at->ifa_addr->sa_family != AF_INET) continue;
    if (found.empty() || is_six == wants_six)
      found = number_of(at->ifa_addr, is_six ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  }
  if (found.empty())
    user_error("[mesh.interface] expected a network interface of {} that has an address, got '{}'; there are: {}",
               host_name(), interface, fmt::join(names, ", "));
  return found;
}

bool send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(size_t(sent));
  }
  return true;
}

}  // namespace tokamak
