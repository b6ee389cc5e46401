// The two kinds of error: the user's (says what to change) and ours (says where we are wrong).
// Both are exceptions, caught once in cli/main.cpp. Message format: "[where] expected ..., got ...".
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>

namespace tokamak {

/// Bad input, bad config, bad environment: the message says what was expected, what came and what to do.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A bug of ours: file, line and the condition that did not hold.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

template <typename... Args>
[[noreturn]] void user_error(fmt::format_string<Args...> format, Args&&... args) {
  throw UserError(fmt::format(format, std::forward<Args>(args)...));
}

[[noreturn]] void internal_error(const char* file, int line, const char* condition, const std::string& message);

}  // namespace tokamak

/// An invariant of our own. For what users can get wrong, use user_error.
#define TOKAMAK_CHECK(condition, ...)                                                                      \
  do {                                                                                                     \
    if (!(condition)) ::tokamak::internal_error(__FILE__, __LINE__, #condition, fmt::format(__VA_ARGS__)); \
  } while (false)
