#include "data/sources/jsonl.h"

#include "tests/data/sources/source_test.h"
#include "tests/support/nested_lists.h"

namespace tokamak {
namespace {

using JsonlSourceTest = SourceTest;

TEST_F(JsonlSourceTest, HasADocumentOnEachLine) {
  std::string file =
      write("a.jsonl", "{\"body\": \"one\\n\\u00e9\", \"text\": 1}\r\n\n{\"body\": \"\"}\n{\"body\": \"two\"}");
  EXPECT_EQ(read(file, {.text_field = "body"}), (Documents{"one\n\u00e9", "two"}));
  EXPECT_EQ(read(file, {.format = "text"}).size(), 1u);
}

TEST_F(JsonlSourceTest, LinesDoNotDependOnHowBytesCome) {
  std::string lines = "{\"text\": \"one\"}\n\n{\"text\": \"two\"}\r\n{\"text\": \"three\"}";
  for (size_t at_once = 1; at_once < 20; ++at_once)
    EXPECT_EQ(documents_of(*read_jsonl(std::make_unique<DrippingBytes>(lines, at_once), {})),
              (Documents{"one", "two", "three"}));
}

TEST_F(JsonlSourceTest, NamesTheLineWithoutTheField) {
  std::string file = write("a.jsonl", "{\"text\": \"one\"}\n\n{\"body\": \"two\"}\n");
  expect_user_error([&] { read(file); }, {"a.jsonl line 3", "\"text\"", "none", "--field"});
  file = write("b.jsonl", "{\"text\": 7}\n");
  expect_user_error([&] { read(file); }, {"b.jsonl line 1", "got 7"});
  file = write("c.jsonl", "{\"text\": \"x\"}\n{\"text\": \"cut");
  expect_user_error([&] { read(file); }, {"c.jsonl line 2", "expected a JSON object"});
  file = write("d.ndjson", "[1, 2]\n");
  expect_user_error([&] { read(file); }, {"d.ndjson line 1", "expected a JSON object", "got [1, 2]"});
}

TEST_F(JsonlSourceTest, SaysWhatIsWrongAndAtWhichColumn) {
  std::string file = write("a.jsonl", "{\"text\": \"x\"}\n{\"text\": \"x\", \"a\": nan}\n");
  expect_user_error([&] { read(file); }, {"a.jsonl line 2", "column 21", "invalid literal"});
  file = write("b.jsonl", "{\"text\": \"a \\ud83d b\"}\n");  // half of a pair, as cut text has it
  expect_user_error([&] { read(file); }, {"b.jsonl line 1", "column 19", "surrogate"});
  file = write("c.jsonl", "{\"text\": \"x\"} {}\n");
  expect_user_error([&] { read(file); }, {"c.jsonl line 1", "column 15", "expected end of input"});
  auto member = [&](const std::string& text) { return read_json(std::make_unique<DrippingBytes>(text, 3), {}); };
  expect_user_error([&] { documents_of(*member("{\n\"text\": \"x\"\n")); }, {"line 3, column 1", "end of input"});
}

TEST_F(JsonlSourceTest, NothingBehindAByteOfZeroIsLost) {
  std::string one = "{\"text\": \"x\"}", zero(1, '\0');
  for (const std::string& line :
       {one + zero + one, one + zero, zero + one, std::string("{\"text\": \"") + zero + "\"}"})
    expect_user_error([&] { read(write("a.jsonl", one + "\n" + line + "\n")); },
                      {"a.jsonl line 2", "expected a JSON object", "a byte of zero"});
}

// Python's json module writes them, and pandas.
TEST_F(JsonlSourceTest, ReadsOverNumbersThatJsonDoesNotKnow) {
  std::string file = write("a.jsonl",
                           "{\"a\": NaN, \"text\": \"NaN \\\" Infinity\", \"b\": [-Infinity,Infinity]}\n"
                           "{\"text\": \"two\", \"x\": {\"y\": NaN }}\n");
  EXPECT_EQ(read(file), (Documents{"NaN \" Infinity", "two"}));
  for (const char* wrong :
       {"1NaN", "NaN1", "NaNaN", "-NaN", "- Infinity", "--Infinity", "1 NaN", "Infinity-", "+NaN"}) {
    file = write("b.jsonl", fmt::format("{{\"text\": \"x\", \"a\": {}}}\n", wrong));
    expect_user_error([&] { read(file); }, {"b.jsonl line 1", "expected a JSON object", "column"});
  }
  expect_user_error([&] { read(write("c.jsonl", "{\"text\": NaN}\n")); },
                    {"c.jsonl line 1", "text field", "no string"});
  expect_user_error([&] { read(write("d.jsonl", "NaN\n")); }, {"d.jsonl line 1", "expected a JSON object"});
}

// They are JSON; Python reads them as infinity.
TEST_F(JsonlSourceTest, ReadsOverNumbersBeyondADouble) {
  std::string digits(400, '9');
  for (std::string number : {"1e999", "-1E+999", "12.5e0999", "-2.5e308", digits.c_str()}) {
    std::string line = fmt::format("{{\"a\": [{0},{0}], \"text\": \"{0} \\\" {0}\", \"b\": NaN, \"c\":{0}}}\n", number);
    EXPECT_EQ(read(write("a.jsonl", line)), Documents{number + " \" " + number});
    expect_user_error([&] { read(write("b.jsonl", fmt::format("{{\"text\": {}}}\n", number))); },
                      {"b.jsonl line 1", "text field", "no string"});
  }
  for (const char* wrong : {"1.e999", "01e999", ".1e999", "1e999.", "1-1e999", "1e999 1", "1e9991e999", "+1e999",
                            "1e999e", "-01e999", "1.5.5e999"}) {
    std::string line = fmt::format("{{\"text\": \"x\", \"a\": {}}}\n", wrong);
    expect_user_error([&] { read(write("c.jsonl", line)); }, {"c.jsonl line 1", "expected a JSON object", "column"});
  }
}

TEST_F(JsonlSourceTest, RefusesEndlessLines) {
  std::string file = write("a.jsonl", "{\"text\": \"one\"}\n{\"text\": \"" + std::string(1 << 20, 'x') + "\"}\n");
  EXPECT_EQ(read(file).size(), 2u);
  expect_user_error([&] { read(file, {.part_bytes = 100}); }, {"a.jsonl line 2", "at most 12800 bytes"});
}

TEST_F(JsonlSourceTest, DeepObjectsAreReadAndNotShown) {
  std::string deep = nested_lists(100'000);
  EXPECT_EQ(read(write("a.jsonl", R"({"x": )" + deep + R"(, "text": "one"})")), Documents({"one"}));
  std::string file = write("b.jsonl", R"({"text": )" + deep + "}");
  expect_user_error([&] { read(file); }, {"b.jsonl line 1", "nested too deeply"});
}

TEST_F(SourceTest, BadLinesOfJsonlMayBeCounted) {
  std::string path = write("bad.jsonl", "{\"text\": \"one\"}\noops\n{\"body\": 1}\n{\"text\": \"two\"}\n[1]\n");
  expect_user_error([&] { read(path); }, {"bad.jsonl line 2"});
  SourceOptions options{.bad_lines = std::make_shared<std::atomic<int64_t>>(0)};
  EXPECT_EQ(read(path, options), (Documents{"one", "two"}));
  EXPECT_EQ(*options.bad_lines, 3);
}

}  // namespace
}  // namespace tokamak
