#include "tests/data/sources/token_test.h"

namespace tokamak {
namespace {

using NpyTest = TokenTest;

TEST_F(NpyTest, ReadsIntegers) {
  Ids ids = some_ids(10'000);
  expect_tokens({write("a.npy", npy_uint16(ids))}, ids);
  expect_tokens({write("a.npy", npy_file("'<u4'", "(10000,)", packed_ids<uint32_t>(ids)))}, ids);
  expect_tokens({write("a.npy", npy_file("'<i4'", "(10000,)", packed_ids<int32_t>(ids)))}, ids);
  expect_tokens({write("a.npy", npy_file("'<i8'", "(10000,)", packed_ids<int64_t>(ids), "True"))}, ids);
  expect_tokens({write("a.npy", npy_file("'|u1'", "(3,)", "abc"))}, {97, 98, 99});
  expect_tokens({write("none.npy", npy_uint16({}))}, {});
}

TEST_F(NpyTest, ReadsAllVersions) {
  std::string one = npy_uint16({7, 8, 9});
  std::string length = one.substr(8, 2);
  for (char version : {2, 3}) {
    // The length has four bytes, so the header's text begins two later.
    std::string file = std::string("\x93NUMPY") + version + '\0' + length + std::string(2, '\0') + one.substr(10);
    expect_tokens({write("a.npy", file)}, {7, 8, 9});
  }
  one[6] = 4;
  expect_refused(write("a.npy", one), {"a.npy", "version 1, 2 or 3", "got 4"});
}

TEST_F(NpyTest, IsOneDocumentForPrepare) {
  EXPECT_EQ(token_documents(write("a.npy", npy_uint16({4, 5, 6}))), std::vector<Ids>({{4, 5, 6}}));
}

TEST_F(NpyTest, RefusesEveryCut) {
  std::string path = write("a.npy", npy_uint16({7, 8, 9}));
  expect_cuts_refused(path);
  std::string whole = read_file(path);
  for (size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_THROW(token_documents(write("cut.npy", whole.substr(0, bytes))), UserError) << bytes;
  expect_refused(write("long.npy", npy_uint16({7, 8, 9}) + "x"), {"long.npy", "expected 3 elements of 2 bytes"});
}

TEST_F(NpyTest, RefusesOtherArrays) {
  std::string data = packed_ids<uint16_t>({1, 2, 3, 4});
  expect_refused(write("a.npy", npy_file("'<f8'", "(1,)", data)), {"a.npy", "expected integers", "'<f8'", "uint16"});
  expect_refused(write("a.npy", npy_file("'>u2'", "(4,)", data)), {"little-endian", "'>u2'"});
  expect_refused(write("a.npy", npy_file("'|b1'", "(8,)", data)), {"expected integers", "'|b1'"});
  expect_refused(write("a.npy", npy_file("[('a', '<u2')]", "(4,)", data)), {"expected integers", "[('a', '<u2')]"});
  expect_refused(write("a.npy", npy_file("'<u2'", "(2, 2)", data)), {"one dimension", "shape (2, 2)", "flat"});
  expect_refused(write("a.npy", npy_file("'<u2'", "()", data)), {"one dimension", "shape ()"});
  expect_refused(write("a.npy", npy_file("'<u2'", "(9223372036854775807,)", data)), {"9223372036854775807 elements"});
  expect_refused(write("a.npy", npy_file("'<u2'", "(99999999999999999999,)", data)), {"shape (99999999999999999999,)"});
  expect_refused(write("a.npy", "NUMPY"), {"a.npy", "magic"});
}

TEST_F(NpyTest, RefusesDamagedHeaders) {
  auto damaged = [&](const std::string& header) {
    std::string file = std::string("\x93NUMPY\x01\x00", 8) + packed<uint16_t>({uint16_t(header.size())}) + header;
    expect_refused(write("a.npy", file + "12"), {"a.npy", "damaged"});
  };
  damaged("");
  damaged("{");
  damaged("{}");
  damaged("{'descr': '<u2', 'fortran_order': False}");
  damaged("{'descr': '<u2', 'fortran_order': False, 'shape': (1,), 'more': 1}");
  damaged("{'descr': '<u2', 'descr': '<u2', 'fortran_order': False, 'shape': (1,)}");
  damaged("{'descr': '<u2', 'fortran_order': No, 'shape': (1,)}");
  damaged("{'descr': '<u2', 'fortran_order': False, 'shape': (1,)} x");
  damaged("{'descr': '<u2', 'fortran_order': False, 'shape': (1,)");
}

TEST_F(NpyTest, RefusesNegativeIds) {
  auto tokens = open_tokens({write("a.npy", npy_file("'<i4'", "(2,)", packed<int32_t>({3, -3})))}, {});
  Ids out(2);
  expect_user_error([&] { tokens->read(0, out); }, {"a.npy", "got -3 as token 1"});
}

}  // namespace
}  // namespace tokamak
