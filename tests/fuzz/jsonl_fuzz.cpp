// JSONL: each line is an object with the field "text", as nlohmann's parser reads it into a tree, or an error. NaN,
// Infinity and what is beyond a double are numbers.
#include <cstring>
#include <nlohmann/json.hpp>

#include "tests/fuzz/fuzz_file.h"

using namespace tokamak;

namespace {

/// Where the parser stops, and why.
struct FirstError : nlohmann::detail::json_sax_acceptor<nlohmann::json> {
  bool parse_error(size_t place, const std::string& token, const nlohmann::detail::exception& error) {
    end = place;
    last = token;
    is_overflow = dynamic_cast<const nlohmann::json::out_of_range*>(&error);
    return false;
  }
  size_t end = 0;    // of what it read last
  std::string last;  // token
  bool is_overflow = false;
};

/// The tree of a line; where the parser stops at a number that JSON or a double does not know, that becomes a null
/// between blanks, and it begins anew.
nlohmann::json parse_line(std::string line) {
  if (line.find('\0') != line.npos) return nlohmann::json::value_t::discarded;  // to the parser an end
  for (;;) {
    FirstError error;
    if (nlohmann::json::sax_parse(line, &error)) return nlohmann::json::parse(line);
    size_t at = error.end - 1;
    auto stands = [&](const char* name, size_t back) {
      return at >= back && line.compare(at - back, strlen(name), name) == 0;
    };
    if (error.is_overflow)
      line.replace(error.end - error.last.size(), error.last.size(), " null ");
    else if (stands("-Infinity", 1))
      line.replace(at - 1, 9, " null ");
    else if (stands("Infinity", 0))
      line.replace(at, 8, " null ");
    else if (stands("NaN", 0))
      line.replace(at, 3, " null ");
    else
      return nlohmann::json::value_t::discarded;
  }
}

/// The slow, obvious twin: all texts, or false where a line is wrong.
bool parse_lines(std::string_view lines, std::string& all) {
  while (!lines.empty()) {
    std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    auto object = parse_line(std::string(line));
    if (!object.is_object() || !object.contains("text") || !object["text"].is_string()) return false;
    all += object["text"].get<std::string>();
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view lines(reinterpret_cast<const char*>(data), size);
  if (size == 0 || lines[0] != '{') return 0;
  FuzzFile file(data, size);
  std::string all, expected;
  bool good = read_all_documents(file.path(), {.format = "jsonl"}, all);
  if (good != parse_lines(lines, expected)) fuzz_failure(good ? "a wrong line is taken" : "a right line is refused");
  if (good && all != expected) fuzz_failure("another text than the tree's");
  return 0;
}
