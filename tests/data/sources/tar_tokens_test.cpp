#include <fmt/core.h>

#include "data/sources/tar_members.h"
#include "tests/data/sources/token_test.h"

namespace tokamak {
namespace {

std::string padded(std::string text) {
  text.resize((text.size() + 511) / 512 * 512, '\0');
  return text;
}

/// A header block; `size` is its field as it stands there.
std::string tar_header(const std::string& name, const std::string& size, char type = '0',
                       const std::string& prefix = "") {
  std::string block(512, '\0');
  auto put = [&](size_t at, const std::string& text) { block.replace(at, text.size(), text); };
  put(0, name);
  put(100, "0000644");
  put(124, size);
  put(136, "00000000000");
  put(148, "        ");
  block[156] = type;
  put(257, std::string("ustar\0"
                       "00",
                       8));
  put(345, prefix);
  unsigned sum = 0;
  for (char c : block) sum += uint8_t(c);
  put(148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return block;
}

std::string tar_member(const std::string& name, const std::string& content, char type = '0') {
  return tar_header(name, fmt::format("{:011o}", content.size()), type) + padded(content);
}

const std::string kEnd(1024, '\0');

class TarTokensTest : public TokenTest {
 protected:
  std::vector<std::string> names(const std::string& archive) {
    std::vector<std::string> found;
    FileReader file(write("names.tar", archive));
    for_each_tar_member(file, [&](const TarMember& m) { found.push_back(fmt::format("{}:{}", m.name, m.bytes)); });
    return found;
  }
};

TEST_F(TarTokensTest, ReadsNpyMembers) {
  Ids ids = some_ids(5000);
  std::string archive = tar_member("folder/", "", '5');
  for (size_t begin = 0; begin < 5000; begin += 500) {
    Ids part(ids.begin() + long(begin), ids.begin() + long(begin + 500));
    archive += tar_member(fmt::format("{:05}.json", begin), "{}") +
               tar_member(fmt::format("{:05}.npy", begin), npy_uint16(part));
  }
  std::string path = write("a.tar", archive + tar_member("none.npy", npy_uint16({})) + kEnd);
  EXPECT_EQ(format_of(path, {}).name, "webdataset");
  expect_tokens({path}, ids);
  expect_tokens({path, path}, [&] {
    Ids twice = ids;
    twice.insert(twice.end(), ids.begin(), ids.end());
    return twice;
  }());
}

TEST_F(TarTokensTest, UnderstandsLongNamesAndLargeSizes) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(tar_header("name", "00000000003", '0', "prefix") + padded("abc") + kEnd), Names{"prefix/name:3"});
  std::string long_name = std::string(150, 'n') + ".npy";
  EXPECT_EQ(
      names(tar_member("././@LongLink", long_name + '\0', 'L') + tar_member("a", "abc") + tar_member("b", "") + kEnd),
      (Names{long_name + ":3", "b:0"}));
  std::string pax = tar_member("pax", "28 path=long/name/of.member\n10 size=3\n", 'x');
  EXPECT_EQ(names(pax + tar_header("a", "0") + padded("abc") + tar_member("b", "") + kEnd),
            (Names{"long/name/of.member:3", "b:0"}));
  EXPECT_EQ(names(tar_member("global", "13 comment=x\n", 'g') + tar_member("a", "x") + kEnd), Names{"a:1"});
  std::string base256 = '\x80' + std::string(10, '\0') + '\x03';
  EXPECT_EQ(names(tar_header("a", base256) + padded("abc") + kEnd), Names{"a:3"});
  EXPECT_EQ(names(tar_header("a", "     3 ") + padded("abc") + kEnd), Names{"a:3"});
  EXPECT_EQ(names(tar_header("link", "00000000007", '2') + tar_member("a", "") + kEnd), Names{"a:0"});
  EXPECT_EQ(names(kEnd), Names{});
  EXPECT_EQ(names(kEnd + kEnd + tar_member("a", "x") + kEnd), Names{"a:1"});
}

TEST_F(TarTokensTest, ReadsArchivesOneAfterTheOther) {
  std::string one = tar_member("a.npy", npy_uint16({1, 2})) + kEnd, two = tar_member("b.npy", npy_uint16({3})) + kEnd;
  expect_tokens({write("a.tar", one + kEnd + two)}, {1, 2, 3});
  expect_refused(write("a.tar", one + two.substr(0, 600)), {"a.tar", "cut short"});
}

TEST_F(TarTokensTest, RefusesDamage) {
  std::string good = tar_member("a.npy", npy_uint16({1, 2}));
  auto refused = [&](const std::string& archive, std::initializer_list<std::string> pieces) {
    expect_refused(write("a.tar", archive), pieces);
  };
  std::string flipped = good;
  flipped[3] ^= 1;
  refused(flipped + kEnd, {"a.tar", "header of a member at byte 0", "damaged"});
  refused(good + good.substr(0, 700) + kEnd, {"a.tar", "cut short"});
  refused(good + kEnd.substr(0, 512) + good, {"a.tar", "second block of zeros", "byte 1536"});
  refused(tar_header("a.npy", "x") + kEnd, {"size of a member", "byte 0"});
  refused(tar_header("a.npy", "77777777777") + kEnd, {"8589934591 bytes of member a.npy", "cut short"});
  refused(tar_header("a.npy", std::string(12, '\xff')) + kEnd, {"size of a member"});
  refused(tar_header("a.npy", '\x80' + std::string(11, '\x7f')) + kEnd, {"size of a member"});
  refused(tar_member("a", "x", 'x') + kEnd, {"pax records", "byte 0"});
  refused(tar_member("a", "99 size=3\n", 'x') + kEnd, {"pax records"});
  refused(tar_member("a", "10 size=z\n", 'x') + kEnd, {"pax records"});
  refused(tar_member("a", "10 size 3\n", 'x') + kEnd, {"pax records"});
  refused(tar_member("a", "22 GNU.sparse.major=1\n", 'x') + kEnd, {"sparse"});
  refused(tar_member("a", "", 'S') + kEnd, {"sparse"});
  refused(tar_member("a.txt", "text") + kEnd, {"expected .npy members", "none among 1 members", "prepare"});
  refused(good + tar_member("b.npy", "text") + kEnd, {"a.tar: b.npy", "magic"});
  refused(good + tar_member("b.npy", npy_file("'<u4'", "(1,)", "1234")) + kEnd,
          {"a.tar: b.npy", "uint16", "got uint32"});
}

TEST_F(TarTokensTest, RefusesEveryCut) {
  std::string archive = tar_member("a.npy", npy_uint16({1, 2})) + tar_member("b.npy", npy_uint16({3})) + kEnd;
  expect_cuts_refused(write("a.tar", archive));
}

}  // namespace
}  // namespace tokamak
