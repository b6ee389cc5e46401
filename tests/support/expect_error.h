// EXPECT on the message of a UserError: each of the given pieces must be in it.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "base/error.h"

namespace tokamak {

/// Runs `body`; fails unless it throws a UserError whose message holds every piece.
template <typename Body>
void expect_user_error(Body&& body, std::initializer_list<std::string> pieces) {
  try {
    body();
  } catch (const UserError& error) {
    std::string message = error.what();
    for (const std::string& piece : pieces)
      EXPECT_NE(message.find(piece), std::string::npos) << "message: " << message << "\nlacks: " << piece;
    return;
  } catch (const std::exception& error) {
    FAIL() << "expected a UserError, got: " << error.what();
  }
  FAIL() << "expected a UserError, nothing was thrown";
}

}  // namespace tokamak
