#include "data/tokenizer_files.h"

#include "base/error.h"
#include "base/file.h"
#include "data/gpt2_vocabulary.h"
#include "data/hugging_face_vocabulary.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

constexpr const char* kHuggingFaceFile = "tokenizer.json";

struct FilePair {
  const char* merges;
  const char* tokens;
};
constexpr FilePair kGpt2Files[] = {{"vocab.bpe", "encoder.json"}, {"merges.txt", "vocab.json"}};

const FilePair* find_gpt2_files(const fs::path& folder) {
  for (const FilePair& files : kGpt2Files)
    if (fs::exists(folder / files.merges) && fs::exists(folder / files.tokens)) return &files;
  return nullptr;
}

}  // namespace

bool has_tokenizer(const fs::path& folder) {
  return find_gpt2_files(folder) != nullptr || fs::exists(folder / kHuggingFaceFile);
}

Tokenizer load_tokenizer(const fs::path& path) {
  if (fs::is_regular_file(path)) return Tokenizer(parse_hugging_face_vocabulary(read_file(path), path.string()));
  if (!fs::is_directory(path))
    user_error("[tokenizer] expected a folder with vocabulary files, got {}, which does not exist; check the path",
               path.string());
  if (const FilePair* files = find_gpt2_files(path)) {
    fs::path merges = path / files->merges, tokens = path / files->tokens;
    return Tokenizer(parse_gpt2_vocabulary(read_file(merges), merges.string(), read_file(tokens), tokens.string()));
  }
  fs::path file = path / kHuggingFaceFile;
  if (!fs::exists(file))
    user_error(
        "[tokenizer] expected vocab.bpe with encoder.json, merges.txt with vocab.json, or tokenizer.json in {}, "
        "got none of them; name the folder that has them, or let `prepare` train a vocabulary",
        path.string());
  return Tokenizer(parse_hugging_face_vocabulary(read_file(file), file.string()));
}

std::vector<AtomicFile> stage_tokenizer(const Vocabulary& vocabulary, const fs::path& folder) {
  std::vector<AtomicFile> files;
  auto stage = [&](const char* name, const std::string& content) {
    AtomicFile& file = files.emplace_back(folder / name);
    file.write(content);
    file.sync();
  };
  stage(kGpt2Files[0].merges, format_gpt2_merges(vocabulary));
  stage(kGpt2Files[0].tokens, format_gpt2_tokens(vocabulary));
  stage(kHuggingFaceFile, format_hugging_face_vocabulary(vocabulary));
  return files;
}

void save_tokenizer(const Vocabulary& vocabulary, const fs::path& folder) {
  for (AtomicFile& file : stage_tokenizer(vocabulary, folder)) file.commit();
}

}  // namespace tokamak
