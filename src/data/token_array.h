// Tokens that can be read from any place: what training reads directly, whatever file format holds them. Each format is
// a file of data/sources/; data/open_source.h finds the right one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tokamak {

/// A file that data comes from, and what tells whether it is still the same.
struct FileFingerprint {
  std::string path;
  int64_t bytes = 0;
  std::string checksum;  // of its size, its beginning, its end and places between, see base/checksum.h

  bool operator==(const FileFingerprint&) const = default;
};

/// An array of token ids. read() may be called from several threads at once. Memory does not grow with the size: files
/// are mapped or read in pieces. UserErrors name the file and the place of what is damaged.
class TokenArray {
 public:
  virtual ~TokenArray() = default;

  virtual int64_t size() const = 0;  // tokens

  /// Copies the tokens from `begin` on, out.size() of them; they must exist.
  virtual void read(int64_t begin, std::span<int32_t> out) const = 0;

  /// Where token `at` lies, for the ledger: the file, and the token's number inside it.
  struct Place {
    std::string path;
    int64_t token = 0;
    int64_t left = 0;  // tokens from here to the end of that file
  };
  virtual Place place(int64_t at) const = 0;

  /// Whether some tokens may have marks (data/marked_tokens.h).
  virtual bool is_marked() const { return false; }

  /// How a token is stored, such as uint16; empty where there is no one answer.
  virtual std::string stored_as() const { return {}; }

  /// The files behind it, in order.
  virtual std::vector<FileFingerprint> fingerprints() const = 0;

  /// See Dataset::verify_used().
  virtual void verify_used() const {}
};

}  // namespace tokamak
