// What tests of token formats share: files made by hand, and what every format must hold.
#pragma once

#include <cstring>
#include <thread>

#include "base/file.h"
#include "tests/data/sources/source_test.h"

namespace tokamak {

using Ids = std::vector<int32_t>;

/// Numbers as they lie in a little-endian file.
template <typename Number>
std::string packed(const std::vector<Number>& numbers) {
  return std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number));
}

/// Ids as stored numbers of another type.
template <typename Number>
std::string packed_ids(const Ids& ids) {
  return packed(std::vector<Number>(ids.begin(), ids.end()));
}

/// A version 1 .npy with these fields in its header.
inline std::string npy_file(const std::string& descr, const std::string& shape, const std::string& data,
                            const std::string& order = "False") {
  std::string header = "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  header.resize((10 + header.size() + 64) / 64 * 64 - 10, ' ');
  header.back() = '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + packed<uint16_t>({uint16_t(header.size())}) + header + data;
}

inline std::string npy_uint16(const Ids& ids) {
  return npy_file("'<u2'", "(" + std::to_string(ids.size()) + ",)", packed_ids<uint16_t>(ids));
}

class TokenTest : public SourceTest {
 protected:
  /// Opens the files, reads every part of them and compares it; checks places and that errors of reading are ours.
  static void expect_tokens(const std::vector<std::filesystem::path>& paths, const Ids& ids,
                            const SourceOptions& options = {}) {
    auto tokens = open_tokens(paths, options);
    ASSERT_EQ(tokens->size(), int64_t(ids.size()));
    for (size_t begin = 0; begin <= ids.size(); begin = begin < 20 ? begin + 1 : begin + 977)
      for (size_t end : {begin, begin + 1, begin + 7, ids.size()}) {
        if (end > ids.size()) continue;
        Ids out(end - begin, -1);
        tokens->read(int64_t(begin), out);
        ASSERT_EQ(out, Ids(ids.begin() + long(begin), ids.begin() + long(end))) << begin << " to " << end;
      }
    for (int64_t at : {int64_t(0), tokens->size() - 1}) {
      if (ids.empty()) break;
      TokenArray::Place place = tokens->place(at);
      EXPECT_EQ(place.path, (at == 0 ? paths.front() : paths.back()).string());
      EXPECT_GE(place.left, 1);
      if (paths.size() == 1) {
        EXPECT_EQ(place.token, at);
        EXPECT_EQ(place.left, tokens->size() - at);
      }
    }
    EXPECT_GE(tokens->fingerprints().size(), paths.size());
  }

  /// Two threads read windows of an array of these ids at once.
  static void expect_threads_agree(const TokenArray& tokens, const Ids& ids) {
    auto read_some = [&](size_t first) {
      for (size_t begin = first; begin + 1025 < ids.size(); begin += 2003) {
        Ids out(1025);
        tokens.read(int64_t(begin), out);
        EXPECT_TRUE(std::equal(out.begin(), out.end(), ids.begin() + long(begin)));
      }
    };
    std::thread one(read_some, 0), two(read_some, 1001);
    one.join();
    two.join();
  }

  /// All documents of a source of tokens, each with its parts joined.
  static std::vector<Ids> token_documents(const std::filesystem::path& path, const SourceOptions& options = {}) {
    auto source = open_source(path, options);
    std::vector<Ids> documents;
    bool continues = false;
    for (Document document; source->next(document); continues = document.continues) {
      EXPECT_TRUE(document.text.empty());
      EXPECT_FALSE(document.tokens.empty());
      if (!continues) documents.emplace_back();
      documents.back().insert(documents.back().end(), document.tokens.begin(), document.tokens.end());
    }
    EXPECT_FALSE(continues);
    EXPECT_EQ(source->bytes_read(), source->total_bytes());
    EXPECT_EQ(source->name(), path.string());
    return documents;
  }

  /// Cuts a file short at every byte, or every so many: opening it, or reading it all, must be a UserError each time.
  static void expect_cuts_refused(const std::filesystem::path& path, size_t step = 1) {
    std::string whole = read_file(path);
    for (size_t bytes = whole.size(); bytes-- > 0; bytes -= std::min(bytes, step - 1)) {
      std::filesystem::resize_file(path, bytes);
      auto read_all = [&] {
        auto tokens = open_tokens({path}, {});
        Ids out(size_t(tokens->size()));
        tokens->read(0, out);
      };
      EXPECT_THROW(read_all(), UserError) << "cut to " << bytes << " of " << whole.size() << " bytes";
    }
    write_file_quickly(path, whole);
  }

  /// Opening fails with a message that holds these pieces.
  static void expect_refused(const std::filesystem::path& path, std::initializer_list<std::string> pieces,
                             const SourceOptions& options = {}) {
    expect_user_error([&] { open_tokens({path}, options); }, pieces);
  }

  /// Ids below `limit` without a pattern.
  static Ids some_ids(size_t count, int64_t limit = 50257) {
    Ids ids(count);
    for (size_t i = 0; i < count; ++i) ids[i] = int32_t(int64_t(i) * 7919 % limit);
    return ids;
  }
};

}  // namespace tokamak
