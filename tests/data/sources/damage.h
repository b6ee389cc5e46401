// Damaging small files in every way, for tests of readers.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "base/error.h"

namespace tokamak {

/// Calls `read` on every shorter version of some bytes: it must throw a UserError that holds `place`, or give the
/// whole. Gives the number of errors.
template <typename Read, typename Whole>
int expect_no_silent_loss(const std::string& bytes, const Whole& whole, const std::string& place, Read&& read) {
  int errors = 0;
  for (size_t size = 0; size < bytes.size(); ++size) {
    try {
      EXPECT_EQ(read(bytes.substr(0, size)), whole) << "cut to " << size << " of " << bytes.size() << " bytes";
    } catch (const UserError& error) {
      ++errors;
      EXPECT_NE(std::string(error.what()).find(place), std::string::npos) << error.what();
    }
  }
  return errors;
}

/// The same for every bit turned over.
template <typename Read, typename Whole>
int expect_no_wrong_content(const std::string& bytes, const Whole& whole, const std::string& place, Read&& read) {
  int errors = 0;
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = char(damaged[bit / 8] ^ (1 << (bit % 8)));
    try {
      EXPECT_EQ(read(damaged), whole) << "bit " << bit % 8 << " of byte " << bit / 8;
    } catch (const UserError& error) {
      ++errors;
      EXPECT_NE(std::string(error.what()).find(place), std::string::npos) << error.what();
    }
  }
  return errors;
}

}  // namespace tokamak
