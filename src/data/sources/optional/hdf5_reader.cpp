#include "data/sources/optional/hdf5_reader.h"

#include <fmt/core.h>

#include <cstring>
#include <memory>

#include "data/sources/optional/hdf5_file.h"

namespace tokamak {

namespace {

struct Request {
  enum Kind { kOpen, kIntegers, kTexts };
  Kind kind = kOpen;
  int64_t begin = 0, count = 0;
};

template <typename Plain>
std::string_view bytes_of(const Plain& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

ChildProcess::Answer answer_of(const std::filesystem::path& path, const std::string& field) {
  return [path, field, dataset = std::shared_ptr<Hdf5Dataset>()](std::string_view text) mutable {
    Request request;
    std::memcpy(&request, text.data(), sizeof request);
    if (request.kind == Request::kOpen) {
      dataset = std::make_shared<Hdf5Dataset>(path, field);
      Hdf5Facts facts = dataset->facts();
      return std::string(bytes_of(facts)) + dataset->name();
    }
    bool texts = request.kind == Request::kTexts;
    return texts ? dataset->texts(request.begin, request.count) : dataset->integers(request.begin, request.count);
  };
}

}  // namespace

Hdf5Reader::Hdf5Reader(std::filesystem::path path, const std::string& field)
    : path_(std::move(path)), child_(fmt::format("[hdf5] {}", path_.string()), answer_of(path_, field)) {
  std::string opened = child_.ask(bytes_of(Request{}));
  std::memcpy(&facts_, opened.data(), sizeof facts_);
  name_ = opened.substr(sizeof facts_);
}

std::string Hdf5Reader::integers(int64_t begin, int64_t count) const {
  return child_.ask(bytes_of(Request{Request::kIntegers, begin, count}));
}

std::string Hdf5Reader::texts(int64_t begin, int64_t count) const {
  return child_.ask(bytes_of(Request{Request::kTexts, begin, count}));
}

}  // namespace tokamak
