// TCP connections between ranks. Tests: tests/base/store_test.cpp.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/file.h"

namespace tokamak {

using Deadline = std::chrono::steady_clock::time_point;

Deadline deadline_in(double seconds);
/// For poll(2): milliseconds left, rounded up; 0 when it is over.
int milliseconds_left(Deadline deadline);

/// Listens on that port (0: any) for connections to `host`, a name or address of this machine: on all its
/// addresses, or on the loopback alone where `host` is "localhost" or an address of it. UserError when the port is
/// taken.
FileDescriptor listen_on(const std::string& host, int port);

/// Connects, trying again until the deadline while nobody listens. UserError when the name is unknown or time is over.
FileDescriptor connect_to(const std::string& host, int port, Deadline deadline);

/// For a connection: small messages leave at once, and a peer whose machine or link is gone is noticed within some ten
/// seconds, as an error.
void watch_connection(int socket);

/// The number by which a socket's own end is known: "10.0.0.7"; for its port see port_of.
std::string local_address(int socket);
int port_of(int socket);
bool is_loopback(std::string_view address);

/// The address of a network interface of this machine; of several one like `like`, an address of IPv4 or IPv6.
/// UserError when it has none, or there is no such interface.
std::string interface_address(const std::string& interface, const std::string& like);

/// All of it; false when the peer is gone.
bool send_all(int socket, std::string_view bytes);

}  // namespace tokamak
