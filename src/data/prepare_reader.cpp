#include "data/prepare_reader.h"

#include "base/error.h"

namespace tokamak {

namespace fs = std::filesystem;

int64_t input_size(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return 0;
  auto size = fs::file_size(path, error);
  return error ? 0 : int64_t(size);
}

PrepareReader::PrepareReader(std::vector<fs::path> files, PrepareReaderOptions options, PreparePlace from)
    : files_(std::move(files)), options_(std::move(options)), from_(from), file_(from.file), separate_(from.separate) {
  for (int64_t i = 0; i < file_; ++i) files_bytes_ += input_size(files_[size_t(i)]);
}

bool PrepareReader::fill(PrepareBatch& batch) {
  batch.parts.clear();
  batch.text.clear();
  batch.given.clear();
  batch.learned.clear();
  batch.ids.clear();
  int64_t passed = 0;  // bytes of parts before the place to begin at
  auto size = [&] { return int64_t(batch.text.size() + batch.given.size() * sizeof(int32_t)) + passed; };
  Document document;
  while (size() < options_.batch_bytes) {
    if (!next_document(document)) return !batch.parts.empty() || passed > 0;
    if (file_ == from_.file && part_ < from_.part) {
      passed += int64_t(document.text.size() + document.tokens.size_bytes());
      continues_ = document.continues;
      ++part_;
    } else {
      add(document, batch);
    }
    batch.bytes_read = files_bytes_ + source_->bytes_read();
  }
  return true;
}

bool PrepareReader::next_document(Document& document) {
  for (; file_ < int64_t(files_.size()); ++file_) {
    const fs::path& path = files_[size_t(file_)];
    if (!is_over_limit()) {
      if (!source_) source_ = open_source(path, options_.sources);
      if (source_->next(document)) return true;
    }
    source_.reset();
    part_ = 0;
    continues_ = false;
    files_bytes_ += input_size(path);
  }
  return false;
}

bool PrepareReader::is_over_limit() const {
  return !options_.text_limits.empty() && text_bytes_ >= options_.text_limits[size_t(file_)];
}

void PrepareReader::add(const Document& document, PrepareBatch& batch) {
  auto tokens = document.tokens;
  PrepareBatch::Part part{.place = {.file = file_, .part = part_, .separate = separate_}};
  if (file_ == from_.file && part_ == from_.part) part.place.tokens = from_.tokens;
  bool separates_itself = !tokens.empty() && tokens.front() == options_.separator;
  part.separator = !continues_ && separate_ && !separates_itself;
  part.whole = !continues_ && !document.continues;
  part.text_bytes = document.text.size();
  part.given = tokens.size();
  part.learned = document.learned.size();
  batch.parts.push_back(part);
  batch.learned.insert(batch.learned.end(), document.learned.begin(), document.learned.end());
  batch.text += document.text;
  batch.given.insert(batch.given.end(), tokens.begin(), tokens.end());
  text_bytes_ += int64_t(document.text.size());
  separate_ = tokens.empty() || tokens.back() != options_.separator;
  continues_ = document.continues;
  ++part_;
}

}  // namespace tokamak
