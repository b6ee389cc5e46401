#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/random.h"
#include "tests/support/expect_error.h"
#include "tests/support/nested_lists.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

/// A file made of this header and this many bytes of data.
std::filesystem::path make_file(const TemporaryFolder& folder, const std::string& header, size_t data) {
  uint64_t length = header.size();
  std::string content(8, '\0');
  std::memcpy(content.data(), &length, 8);
  write_file_quickly(folder / "file", content + header + std::string(data, 'x'));
  return folder / "file";
}

std::filesystem::path make_small_file(const TemporaryFolder& folder) {
  SafetensorsWriter writer(folder / "small", {{"a", {DType::kF32, {2, 3}}}, {"b", {DType::kBF16, {3}}}},
                           {{"format", "pt"}});
  writer.write("a", bytes_of(std::vector<float>{1, 2, 3, 4, 5, 6}));
  writer.write("b", bytes_of(std::vector<uint16_t>{0x3F80, 0xC040, 0x7F80}));
  writer.finish();
  return folder / "small";
}

TEST(Safetensors, WritesTheBytesOfTheFormat) {
  TemporaryFolder folder;
  SafetensorsWriter writer(folder / "file", {{"x", {DType::kI32, {2}}}});
  writer.write("x", bytes_of(std::vector<int32_t>{1, -1}));
  writer.finish();
  std::string header = R"({"x":{"dtype":"I32","shape":[2],"data_offsets":[0,8]}})";
  header.resize(56, ' ');
  std::string expected = std::string("\x38\0\0\0\0\0\0\0", 8) + header + std::string("\x01\0\0\0\xFF\xFF\xFF\xFF", 8);
  EXPECT_EQ(read_file(folder / "file"), expected);
  EXPECT_EQ(writer.bytes(), int64_t(expected.size()));
  EXPECT_EQ(writer.checksum(), checksum(std::as_bytes(std::span(expected))));
}

TEST(Safetensors, ReadsWhatItWrote) {
  TemporaryFolder folder;
  SafetensorsReader reader(make_small_file(folder));
  EXPECT_EQ(reader.names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(reader.metadata().at("format"), "pt");
  EXPECT_EQ(reader.type("a"), (ValueType{DType::kF32, {2, 3}}));
  EXPECT_EQ(reader.type("b"), (ValueType{DType::kBF16, {3}}));
  EXPECT_EQ(reader.floats("a"), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(reader.floats("b"), (std::vector<float>{1, -3, INFINITY}));
}

TEST(Safetensors, ScalarsAndEmptyTensors) {
  TemporaryFolder folder;
  SafetensorsWriter writer(folder / "file", {{"empty", {DType::kF32, {0, 4}}}, {"scalar", {DType::kF32, {}}}});
  writer.write("empty", {});
  writer.write("scalar", bytes_of(std::vector<float>{2.5f}));
  writer.finish();
  SafetensorsReader reader(folder / "file");
  EXPECT_EQ(reader.type("empty").shape, (Shape{0, 4}));
  EXPECT_EQ(reader.floats("scalar"), std::vector<float>{2.5f});
}

TEST(Safetensors, WidensHalfPrecision) {
  TemporaryFolder folder;
  SafetensorsWriter writer(folder / "file", {{"h", {DType::kF16, {8}}}});
  writer.write("h", bytes_of(std::vector<uint16_t>{0x3C00, 0xC000, 0x0001, 0x03FF, 0x7BFF, 0x8000, 0x7C00, 0x7E00}));
  writer.finish();
  std::vector<float> got = SafetensorsReader(folder / "file").floats("h");
  std::vector<float> expected = {1, -2, 0x1p-24f, 1023 * 0x1p-24f, 65504, -0.0f, INFINITY};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(got[i], expected[i]) << i;
  EXPECT_TRUE(std::signbit(got[5]));
  EXPECT_TRUE(std::isnan(got[7]));
}

TEST(Safetensors, UnfinishedFileNeverAppears) {
  TemporaryFolder folder;
  { SafetensorsWriter writer(folder / "file", {{"x", {DType::kI32, {2}}}}); }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Safetensors, WrongUseIsOurBug) {
  TemporaryFolder folder;
  SafetensorsWriter writer(folder / "file", {{"x", {DType::kF32, {2}}}, {"y", {DType::kF32, {2}}}});
  std::vector<float> two = {1, 2}, three = {1, 2, 3};
  EXPECT_THROW(writer.write("y", bytes_of(two)), InternalError);
  EXPECT_THROW(writer.write("x", bytes_of(three)), InternalError);
  EXPECT_THROW(writer.finish(), InternalError);
}

TEST(Safetensors, ReadsFilesOfOthers) {
  SafetensorsReader reader("tests/goldens/gpt2_tiny.safetensors");
  EXPECT_EQ(reader.metadata().at("width"), "32");
  EXPECT_EQ(reader.type("param.wte.weight"), (ValueType{DType::kF32, {101, 32}}));
}

TEST(Safetensors, OtherDTypesOnlyMatterWhenAskedFor) {
  TemporaryFolder folder;
  SafetensorsReader reader(make_file(folder,
                                     R"({"mask":{"dtype":"BOOL","shape":[4],"data_offsets":[0,4]},)"
                                     R"("new":{"dtype":"F4","shape":[4],"data_offsets":[4,6]},)"
                                     R"("n":{"dtype":"I32","shape":[1],"data_offsets":[6,10]}})",
                                     10));
  EXPECT_EQ(reader.bytes("mask").size(), 4u);
  expect_user_error([&] { reader.type("mask"); }, {"file", "'mask'", "F32, BF16, F16 or I32", "got BOOL"});
  expect_user_error([&] { reader.floats("new"); }, {"got F4"});
  expect_user_error([&] { reader.floats("n"); }, {"got I32"});
  expect_user_error([&] { reader.type("none"); }, {"expected a tensor 'none'"});
}

struct BadHeader {
  const char* header;
  size_t data;
  std::initializer_list<std::string> pieces;
};

TEST(SafetensorsErrors, BadHeaders) {
  const BadHeader cases[] = {
      {"[]", 0, {"a JSON object as header"}},
      {"{", 0, {"a JSON object as header"}},
      {R"({"a":3})", 0, {"data_offsets of 'a'", "got nothing"}},
      {R"({"a":{"dtype":"F32","shape":[1]}})", 4, {"data_offsets of 'a'"}},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})", 4, {"within 4 bytes", "[0,8]"}},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, {"[begin, end]", "[4,0]"}},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})", 4, {"[-4,0]"}},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", 4, {"[0,4,8]"}},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, {"bytes of F32[2] for 'a'", "got 4 bytes"}},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, {"shape of 'a'", "[-1]"}},
      {R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4, {"shape of 'a'"}},
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,0]}})",
       0,
       {"for 'a'", "got 0 bytes"}},
      {R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", 4, {"dtype of 'a'", "got 7"}},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, {"begin at byte 0", "hole"}},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
       6,
       {"'b' to begin at byte 4", "overlap"}},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 5, {"4 bytes of tensors", "got 5"}},
      {R"({"__metadata__":{"x":1}})", 0, {"texts in __metadata__"}},
      {R"({"__metadata__":[]})", 0, {"__metadata__"}},
  };
  TemporaryFolder folder;
  for (const BadHeader& bad : cases) {
    SCOPED_TRACE(bad.header);
    std::filesystem::path path = make_file(folder, bad.header, bad.data);
    expect_user_error([&] { SafetensorsReader reader(path); }, {"[safetensors]", path.string()});
    expect_user_error([&] { SafetensorsReader reader(path); }, bad.pieces);
  }
}

TEST(SafetensorsErrors, CutShortAnywhere) {
  TemporaryFolder folder;
  std::string whole = read_file(make_small_file(folder));
  for (size_t size = 0; size < whole.size(); ++size) {
    write_file_quickly(folder / "cut", std::string_view(whole).substr(0, size));
    expect_user_error([&] { SafetensorsReader reader(folder / "cut"); }, {"cut", "expected", "got"});
  }
  write_file_quickly(folder / "cut", whole + "x");
  expect_user_error([&] { SafetensorsReader reader(folder / "cut"); }, {"does not end with its last tensor"});
}

// Whatever the bytes, the answer is a good file or a UserError, and no read outside the file (seen by the sanitizers).
TEST(SafetensorsErrors, FlippedBitsNeverCrash) {
  TemporaryFolder folder;
  std::string whole = read_file(make_small_file(folder));
  int refused = 0;
  for (size_t byte = 0; byte < whole.size(); ++byte) {
    std::string flipped = whole;
    flipped[byte] = char(flipped[byte] ^ 1 << 3 * byte % 8);
    write_file_quickly(folder / "flipped", flipped);
    try {
      SafetensorsReader reader(folder / "flipped");
      for (const std::string& name : reader.names()) reader.floats(name);
    } catch (const UserError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, int(whole.size() / 2));
}

TEST(SafetensorsErrors, HeadersOfAnyLength) {
  TemporaryFolder folder;
  for (uint64_t length : {uint64_t(1) << 63, UINT64_MAX, UINT64_MAX - 7, uint64_t(1) << 32, uint64_t(3)}) {
    std::string content(8, '\0');
    std::memcpy(content.data(), &length, 8);
    write_file_quickly(folder / "file", content + "{}");
    expect_user_error([&] { SafetensorsReader reader(folder / "file"); },
                      {"a header of at most 2 bytes", fmt::format("a header length of {}", length)});
  }
}

TEST(SafetensorsErrors, NoFile) {
  expect_user_error([] { SafetensorsReader reader("no/such/file"); }, {"no/such/file", "check the path"});
}

TEST(Safetensors, ReadsAHundredThousandTensors) {
  TemporaryFolder folder;
  std::string header = "{";
  for (int i = 0; i < 100'000; ++i)
    header += fmt::format(R"({}"t{}":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}})", i ? "," : "", i, i, i + 1);
  SafetensorsReader reader(make_file(folder, header + "}", 100'000));
  EXPECT_EQ(reader.names().size(), 100'000u);
}

TEST(Safetensors, RefusesDeepHeaders) {
  TemporaryFolder folder;
  std::string header = fmt::format(R"({{"a":{}}})", nested_lists(100'000));
  expect_user_error([&] { SafetensorsReader reader(make_file(folder, header, 0)); }, {"JSON object as header"});
}

}  // namespace
}  // namespace tokamak
