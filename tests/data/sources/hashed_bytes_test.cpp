#include "data/sources/hashed_bytes.h"

#include "tests/data/sources/source_test.h"

namespace tokamak {
namespace {

std::string all_of(ByteStream& stream) {
  std::string all;
  std::array<char, 5> piece;
  while (size_t count = stream.read(piece)) all.append(piece.data(), count);
  return all;
}

std::unique_ptr<ByteStream> hashed(const std::string& text, const Hashes& expected) {
  return with_hashes(std::make_unique<DrippingBytes>(text, 3), expected, "the list");
}

// By xxhsum -H1.
TEST(HashedBytes, TheHashThatIsExpected) {
  EXPECT_EQ(all_of(*hashed("hello world", {{"xxh64", "45ab6734b21e6968"}})), "hello world");
  EXPECT_EQ(all_of(*hashed("hello world", {{"xxh64", "45AB6734B21E6968"}})), "hello world");
  EXPECT_EQ(all_of(*hashed("", {{"xxh64", "ef46db3751d8e999"}})), "");
}

TEST(HashedBytes, AnotherHashIsAnErrorAtTheEnd) {
  auto stream = hashed("hello w0rld", {{"xxh64", "45ab6734b21e6968"}});
  std::array<char, 64> piece;
  for (size_t read = 0; read < 11;) read += stream->read(piece);
  expect_user_error([&] { stream->read(piece); },
                    {"drops: expected the xxh64 45ab6734b21e6968..., as the list says", "copy or download"});
}

TEST(HashedBytes, HashesThatAreNotKnownAreNotLookedAt) {
  EXPECT_EQ(open_digest("adler"), nullptr);
  EXPECT_EQ(open_digest(""), nullptr);
  EXPECT_EQ(all_of(*hashed("hello", {{"adler", "1"}})), "hello");
}

}  // namespace
}  // namespace tokamak
