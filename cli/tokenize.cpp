// `tokamak tokenize`: text on standard input to token ids on standard output, and back.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/commands.h"
#include "data/token_shard.h"
#include "data/tokenizer_files.h"

namespace tokamak {

namespace {

using nlohmann::json;

struct TokenizeOptions {
  std::string vocab;
  bool decode = false;
  bool lines = false;
  bool binary = false;
  bool allow_special = false;
};

void visit(FieldList& v, TokenizeOptions& c) {
  v("vocab", c.vocab, "tokenizer: a data folder, or as for prepare");
  v("decode", c.decode, "ids to text");
  v("lines", c.lines, "each line is a text of its own, as a JSON string, or a JSON array of ids");
  v("binary", c.binary, "ids are little-endian uint16, or uint32 for vocabularies above 65536, instead of JSON");
  v("allow_special", c.allow_special, "<|endoftext|> in the text becomes its own id instead of ordinary text");
}

void validate(const TokenizeOptions& options) {
  if (options.vocab.empty()) user_error("[--vocab] expected a folder with a tokenizer, got nothing; write --vocab=DIR");
  if (options.lines && options.binary)
    user_error("[--lines] expected either --lines or --binary, got both; binary ids have no lines");
}

void write_output(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size()) file_error("write", "standard output", errno);
}

void flush_output() {
  if (std::fflush(stdout) != 0) file_error("write", "standard output", errno);
}

void append_json(const std::vector<int32_t>& ids, std::string& text) {
  text += '[';
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) text += ',';
    fmt::format_to(std::back_inserter(text), "{}", ids[i]);
  }
  text += ']';
}

std::vector<int32_t> parse_ids(std::string_view text, const std::string& where) {
  json list = parse_json(text);
  bool good = list.is_array();
  std::vector<int32_t> ids;
  for (size_t i = 0; good && i < list.size(); ++i) {
    good = list[i].is_number_integer() && list[i].get<int64_t>() == int32_t(list[i].get<int64_t>());
    if (good) ids.push_back(list[i].get<int32_t>());
  }
  if (!good)
    user_error("[tokenize] {}: expected a JSON array of ids such as [1, 2], got {}{}", where, text.substr(0, 60),
               json_error(text));
  return ids;
}

/// With --lines: a line of input to a line of output.
class LineTranslator {
 public:
  LineTranslator(const Tokenizer& tokenizer, const TokenizeOptions& options)
      : tokenizer_(tokenizer), encoder_(tokenizer), options_(options) {}

  void translate(std::string_view line, int64_t number, std::string& out) {
    std::string where = fmt::format("line {}", number);
    if (options_.decode) {
      // Ids may cut a character in two; JSON can hold only whole ones, so parts show as U+FFFD.
      out += format_json(json(tokenizer_.decode(parse_ids(line, where))));
      return;
    }
    json text = parse_json(line);
    if (!text.is_string())
      user_error("[tokenize] {}: expected a JSON string such as \"some text\", got {}{}", where, line.substr(0, 60),
                 json_error(line));
    const std::string& content = text.get_ref<const std::string&>();
    ids_.clear();
    options_.allow_special ? encoder_.append_with_special(content, ids_) : encoder_.append(content, ids_);
    append_json(ids_, out);
  }

 private:
  const Tokenizer& tokenizer_;
  Encoder encoder_;
  const TokenizeOptions& options_;
  std::vector<int32_t> ids_;
};

void translate_lines(const Tokenizer& tokenizer, const TokenizeOptions& options) {
  std::ios::sync_with_stdio(false);
  LineTranslator translator(tokenizer, options);
  int64_t number = 0;
  std::string out;
  for (std::string line; std::getline(std::cin, line);) {
    if (line.ends_with('\r')) line.pop_back();
    out.clear();
    translator.translate(line, ++number, out);
    out += '\n';
    write_output(out);
    // Another program may wait for this answer before it asks on.
    if (std::cin.rdbuf()->in_avail() <= 0) flush_output();
  }
}

template <typename Stored>
std::string to_binary(const std::vector<int32_t>& ids) {
  std::string bytes(ids.size() * sizeof(Stored), '\0');
  for (size_t i = 0; i < ids.size(); ++i) {
    Stored value = Stored(ids[i]);
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  }
  return bytes;
}

template <typename Stored>
std::vector<int32_t> from_binary(std::string_view bytes) {
  if (bytes.size() % sizeof(Stored) != 0)
    user_error(
        "[tokenize] expected binary ids of {} bytes each, got {} bytes in all; the input is cut short or of another "
        "vocabulary",
        sizeof(Stored), bytes.size());
  std::vector<int32_t> ids(bytes.size() / sizeof(Stored));
  for (size_t i = 0; i < ids.size(); ++i) {
    Stored value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    ids[i] = int32_t(value);
  }
  return ids;
}

void translate_all(const Tokenizer& tokenizer, const TokenizeOptions& options) {
  std::string input = read_all(STDIN_FILENO, "standard input");
  bool narrow = shard_token_bytes(tokenizer.vocab_size()) == 2;
  if (options.decode) {
    std::vector<int32_t> ids = !options.binary ? parse_ids(input, "standard input")
                               : narrow        ? from_binary<uint16_t>(input)
                                               : from_binary<uint32_t>(input);
    return write_output(tokenizer.decode(ids));
  }
  std::vector<int32_t> ids = tokenizer.encode(input, options.allow_special);
  if (options.binary) return write_output(narrow ? to_binary<uint16_t>(ids) : to_binary<uint32_t>(ids));
  std::string text;
  append_json(ids, text);
  write_output(text + "\n");
}

int run_tokenize(const TokenizeOptions& options) {
  Tokenizer tokenizer = load_tokenizer(options.vocab);
  options.lines ? translate_lines(tokenizer, options) : translate_all(tokenizer, options);
  flush_output();
  return 0;
}

}  // namespace

Command tokenize_command() {
  return make_command<TokenizeOptions>("tokenize", "text on standard input to token ids, and back",
                                       "  echo 'Hello world' | tokamak tokenize --vocab=gpt2\n"
                                       "  echo '[15496, 995]' | tokamak tokenize --vocab=gpt2 --decode",
                                       run_tokenize);
}

}  // namespace tokamak
