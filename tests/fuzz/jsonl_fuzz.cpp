// JSONL: each line is an object with the field "text", as nlohmann's parser reads it into a tree, or an error.
#include <nlohmann/json.hpp>

#include "tests/fuzz/fuzz_file.h"

using namespace tokamak;

namespace {

/// The slow, obvious twin: all texts, or false where a line is wrong.
bool parse_lines(std::string_view lines, std::string& all) {
  while (!lines.empty()) {
    std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    auto object = nlohmann::json::parse(line, nullptr, false);
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
