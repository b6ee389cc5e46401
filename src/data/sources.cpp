#include "data/sources.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"

namespace tokamak {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

bool is_jsonl(const fs::path& path) { return path.extension() == ".jsonl" || path.extension() == ".ndjson"; }

bool is_text(const fs::path& path) { return path.extension() == ".txt" || path.extension() == ".md" || is_jsonl(path); }

std::vector<fs::path> text_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->is_regular_file() && is_text(at->path())) files.push_back(at->path());
  if (error) file_error("read the folder", folder, error.value());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

Sources::Sources(SourceOptions options) : options_(std::move(options)) {
  if (options_.inputs.empty())
    user_error(
        "[prepare] expected a text file, a folder, a .jsonl file or - for standard input, got nothing; name one");
  for (const std::string& input : options_.inputs) add_input(input);
}

void Sources::add_input(const std::string& input) {
  if (input == "-") {
    std::string content = read_all(options_.stdin_fd, "standard input");
    if (content.empty()) user_error("[prepare] expected text on standard input, got nothing; pipe text into it");
    total_bytes_ += int64_t(content.size());
    sources_.push_back({"standard input", options_.format == SourceFormat::kJsonl, std::move(content)});
    return;
  }
  fs::path path(input);
  if (!fs::exists(path))
    user_error("[prepare] expected a file or folder, got {}, which does not exist; check the path", input);
  if (!fs::is_directory(path)) return add_file(path);
  std::vector<fs::path> files = text_files(path);
  if (files.empty())
    user_error(
        "[prepare] expected .txt, .md or .jsonl files in the folder {}, got none; name another folder or the files "
        "themselves",
        input);
  size_t before = sources_.size();
  for (const fs::path& file : files)
    if (fs::file_size(file) > 0) add_file(file);
  if (sources_.size() == before)
    user_error("[prepare] expected text in the folder {}, got {} empty files; name another folder", input,
               files.size());
}

void Sources::add_file(const fs::path& path) {
  bool jsonl = options_.format == SourceFormat::kAuto ? is_jsonl(path) : options_.format == SourceFormat::kJsonl;
  if (!fs::is_regular_file(path)) {  // a pipe or device can be read only once
    std::string content = read_file(path);
    if (content.empty()) user_error("[prepare] expected text in {}, got nothing; name another file", path.string());
    total_bytes_ += int64_t(content.size());
    sources_.push_back({path.string(), jsonl, std::move(content)});
    return;
  }
  MappedFile file(path);
  if (file.bytes().empty())
    user_error("[prepare] expected text in {}, got an empty file; name another file", path.string());
  total_bytes_ += int64_t(file.bytes().size());
  sources_.push_back({path.string(), jsonl, std::nullopt});
}

void Sources::for_each(const std::function<void(std::string_view)>& use) const {
  for (const Source& source : sources_) {
    MappedFile file;
    if (!source.content) file = MappedFile(source.name);
    std::string_view text = source.content ? std::string_view(*source.content) : file.text();
    if (source.jsonl) {
      use_lines(source, text, use);
    } else if (!text.empty()) {
      use(text);
    }
  }
}

void Sources::use_lines(const Source& source, std::string_view text,
                        const std::function<void(std::string_view)>& use) const {
  int64_t line = 0;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view content = text.substr(begin, end - begin);
    begin = end + 1;
    ++line;
    if (content.find_first_not_of(" \t\r") == content.npos) continue;
    json object = json::parse(content, nullptr, false);
    if (!object.is_object())
      user_error("[prepare] {} line {}: expected a JSON object, got {}; repair the line, or use --format text",
                 source.name, line, content.substr(0, 60));
    auto field = object.find(options_.text_field);
    if (field == object.end() || !field->is_string())
      user_error("[prepare] {} line {}: expected a text field \"{}\", got {}; name the field with --field", source.name,
                 line, options_.text_field, field == object.end() ? "none" : field->dump().substr(0, 60));
    const std::string& document = field->get_ref<const std::string&>();
    if (!document.empty()) use(document);
  }
}

}  // namespace tokamak
