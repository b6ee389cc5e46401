#include "data/sources/hashed_bytes.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/error.h"

namespace tokamak {

namespace {

class Xxh64 : public Digest {
 public:
  void update(std::string_view bytes) override { checksum_.update(std::as_bytes(std::span(bytes))); }
  std::string take_hex() override { return fmt::format("{:016x}", checksum_.digest()); }

 private:
  Checksum checksum_;
};

struct Expected {
  std::string name, hex;
  std::unique_ptr<Digest> digest;
};

std::string in_lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  return text;
}

class HashedBytes : public ByteStream {
 public:
  HashedBytes(std::unique_ptr<ByteStream> in, std::vector<Expected> expected, std::string said_by)
      : in_(std::move(in)), expected_(std::move(expected)), said_by_(std::move(said_by)) {}

  size_t read(std::span<char> out) override {
    size_t count = in_->read(out);
    for (Expected& one : expected_) one.digest->update({out.data(), count});
    if (count == 0) compare();
    return count;
  }

  const std::string& name() const override { return in_->name(); }
  int64_t bytes_read() const override { return in_->bytes_read(); }
  int64_t total_bytes() const override { return in_->total_bytes(); }

 private:
  static constexpr size_t kShown = 16;  // digits

  void compare() {
    for (Expected& one : std::exchange(expected_, {}))
      if (std::string hex = one.digest->take_hex(); hex != one.hex)
        user_error("[data] {}: expected the {} {}..., as {} says, got {}...; copy or download the file again", name(),
                   one.name, one.hex.substr(0, kShown), said_by_, hex.substr(0, kShown));
  }

  std::unique_ptr<ByteStream> in_;
  std::vector<Expected> expected_;
  std::string said_by_;
};

}  // namespace

std::unique_ptr<Digest> open_digest(std::string_view name) {
  if (name == "xxh64") return std::make_unique<Xxh64>();
  return open_openssl_digest(name);
}

std::unique_ptr<ByteStream> with_hashes(std::unique_ptr<ByteStream> in, const Hashes& expected, std::string said_by) {
  std::vector<Expected> known;
  for (const auto& [name, hex] : expected)
    if (auto digest = open_digest(name)) known.push_back({name, in_lower_case(hex), std::move(digest)});
  if (known.empty()) return in;
  return std::make_unique<HashedBytes>(std::move(in), std::move(known), std::move(said_by));
}

}  // namespace tokamak
