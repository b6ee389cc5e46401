#include "base/frames.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace tokamak {
namespace {

TEST(Frames, ComeOutAsTheyWentInHoweverBytesArrive) {
  Frame first = {"set", "", std::string("a\0b", 3), std::string(300, 'x')}, second = {};
  std::string bytes = encode_frame(first) + encode_frame(second) + encode_frame({"end"});
  FrameReader reader(1000);
  std::vector<Frame> frames;
  for (char c : bytes) {
    reader.append({&c, 1});
    while (auto frame = reader.next()) frames.push_back(*frame);
  }
  EXPECT_EQ(frames, (std::vector<Frame>{first, second, {"end"}}));
}

TEST(Frames, TooLongOnesAreRefusedBeforeTheyArrive) {
  FrameReader reader(100);
  reader.append(encode_frame({std::string(96, 'x')}));  // and 4 bytes for its length
  EXPECT_EQ(reader.next(), Frame{std::string(96, 'x')});
  reader.append(encode_frame({std::string(97, 'x')}).substr(0, 4));
  expect_user_error([&] { reader.next(); }, {"at most 100 bytes, got one of 101"});
}

TEST(Frames, BytesThatAreNone) {
  FrameReader web(4096), cut(4096);
  web.append("GET / HTTP/1.1\r\n\r\n");
  expect_user_error([&] { web.next(); }, {"[rendezvous]"});
  cut.append(std::string("\2\0\0\0ab", 6));
  expect_user_error([&] { cut.next(); }, {"bytes that are none"});
}

}  // namespace
}  // namespace tokamak
