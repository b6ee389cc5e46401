#include "checkpoint/export_model.h"

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/checkpoint_tensors.h"
#include "checkpoint/float_conversion.h"
#include "checkpoint/hugging_face_files.h"
#include "checkpoint/hugging_face_folder.h"
#include "checkpoint/model_tensors.h"
#include "checkpoint/model_types.h"
#include "checkpoint/new_folder.h"
#include "config/config.h"
#include "config/json.h"
#include "data/extended_vocabulary.h"
#include "model/model.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace tokamak {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kExportedElements = int64_t(1) << 20;  // elements at a time

int64_t total_bytes(const std::vector<NamedType>& tensors) {
  int64_t bytes = 0;
  for (const NamedType& tensor : tensors) bytes += num_bytes(tensor.type);
  return bytes;
}

std::string file_name(size_t file, size_t files) {
  return files == 1 ? kModelFile : fmt::format("model-{:05}-of-{:05}.safetensors", file + 1, files);
}

std::vector<TensorFile> divide(const std::vector<NamedType>& tensors, int64_t most) {
  std::vector<TensorFile> files(1);
  for (const NamedType& tensor : tensors) {
    const std::vector<NamedType>& last = files.back().tensors;
    bool is_full = most > 0 && !last.empty() && total_bytes(last) + num_bytes(tensor.type) > most;
    if (is_full) files.emplace_back();
    files.back().tensors.push_back(tensor);
  }
  for (size_t i = 0; i < files.size(); ++i) files[i].name = file_name(i, files.size());
  return files;
}

void check_tokenizer(const Tokenizer* tokenizer, const ModelConfig& model, const fs::path& from) {
  if (tokenizer && tokenizer->vocab_size() > model.vocab)
    user_error(
        "[export] {}: expected a tokenizer of at most {} tokens, the model's vocabulary, got {}; they do not "
        "belong together",
        from.string(), model.vocab, tokenizer->vocab_size());
}

// The model with as many tokens as it is to have.
ModelConfig grown(ModelConfig model, const Tokenizer* tokenizer, const Tokenizer* more, const fs::path& from) {
  if (!more) return model;
  if (!tokenizer)
    user_error("[export] {}: expected a model with its tokenizer, to add tokens to, got none; put tokenizer.json there",
               from.string());
  if (std::string reason = not_extended(more->vocabulary(), tokenizer->vocabulary()); !reason.empty())
    user_error("[export] expected a vocabulary that only adds tokens to that of {}, got another: {}", from.string(),
               reason);
  model.vocab = std::max<int64_t>(model.vocab, more->vocab_size());
  return model;
}

// Of the rows (count, columns) that come piece by piece.
class MeanRow {
 public:
  explicit MeanRow(int64_t columns) : sums_(size_t(columns), 0) {}
  void add(std::span<const std::byte> piece, DType dtype) {
    std::vector<float> values(piece.size() / size_t(dtype_bytes(dtype)));
    convert_floats(piece, dtype, DType::kF32, std::as_writable_bytes(std::span(values)));
    for (float value : values) sums_[size_t(at_++) % sums_.size()] += value;
  }
  /// So many rows of the mean.
  std::vector<float> repeated(int64_t rows) const {
    double count = double(at_) / double(sums_.size());
    std::vector<float> values;
    for (int64_t row = 0; row < rows; ++row)
      for (double sum : sums_) values.push_back(float(sum / count));
    return values;
  }

 private:
  std::vector<double> sums_;
  int64_t at_ = 0;
};

/// The tensors of a model on their way into one folder.
class ModelWriter {
 public:
  ModelWriter(const FoundCheckpoint& checkpoint, const ModelConfig& model, const ModelConfig& grown,
              const ExportOptions& options)
      : options_(options), from_(checkpoint.path.string()), source_(checkpoint), tensors_(model_types(grown)) {
    source_.require(model_types(model));
    for (NamedType& tensor : tensors_) tensor.type.dtype = options.type.value_or(source_.type(tensor.name).dtype);
    files_ = divide(tensors_, options_.shard_bytes);
  }

  const std::vector<TensorFile>& files() const { return files_; }

  ExportedModel write(const fs::path& folder) {
    ExportedModel result{.tensors = int64_t(tensors_.size()),
                         .bytes = total_bytes(tensors_),
                         .files = int64_t(files_.size()),
                         .type = widest()};
    for (const TensorFile& file : files_) {
      SafetensorsWriter writer(folder / file.name, file.tensors, model_metadata());
      for (const NamedType& tensor : file.tensors) {
        write_tensor(writer, tensor, result.bytes);
        result.parameters += num_elements(tensor.type.shape);
      }
      writer.finish();
    }
    return result;
  }

  DType widest() const {
    bool same = std::all_of(tensors_.begin(), tensors_.end(),
                            [&](const NamedType& t) { return t.type.dtype == tensors_[0].type.dtype; });
    return same ? tensors_[0].type.dtype : DType::kF32;
  }

 private:
  void write_tensor(SafetensorsWriter& writer, const NamedType& tensor, int64_t total) {
    std::span<const std::byte> left = source_.bytes(tensor.name);
    const ValueType from = source_.type(tensor.name);
    int64_t more_rows = tensor.type.shape[0] - from.shape[0];
    std::optional<MeanRow> mean;
    if (more_rows > 0) mean.emplace(num_elements(from.shape) / from.shape[0]);
    do {
      std::span<const std::byte> piece =
          left.first(std::min(left.size(), size_t(kExportedElements * dtype_bytes(from.dtype))));
      require_finite(tensor.name, piece, from.dtype);
      if (mean) mean->add(piece, from.dtype);
      write_piece(writer, tensor, piece, from.dtype, total);
      source_.release(tensor.name, piece);
      left = left.subspan(piece.size());
    } while (!left.empty());
    if (!mean) return;
    std::vector<float> rows = mean->repeated(more_rows);
    write_piece(writer, tensor, std::as_bytes(std::span(rows)), DType::kF32, total);
  }

  void write_piece(SafetensorsWriter& writer, const NamedType& tensor, std::span<const std::byte> piece, DType from,
                   int64_t total) {
    DType to = tensor.type.dtype;
    std::vector<std::byte> converted(piece.size() / size_t(dtype_bytes(from)) * size_t(dtype_bytes(to)));
    convert_floats(piece, from, to, converted);
    require_in_range(tensor.name, converted, to);
    writer.write_piece(tensor.name, converted);
    options_.progress(done_ += int64_t(converted.size()), total);
    if (options_.stop()) user_error("[export] stopped; nothing was written");
  }

  void require_finite(const std::string& name, std::span<const std::byte> piece, DType dtype) const {
    if (!all_finite(piece, dtype))
      user_error("[export] {}: expected finite numbers in '{}', got infinities or NaN; take another model", from_,
                 name);
  }
  void require_in_range(const std::string& name, std::span<const std::byte> piece, DType dtype) const {
    if (!all_finite(piece, dtype))
      user_error("[export] {}: expected numbers in '{}' that {} reaches, got larger ones; take --type={}", from_, name,
                 dtype_name(dtype), dtype == DType::kF16 ? "bf16 or f32" : "f32");
  }

  const ExportOptions& options_;
  std::string from_;
  ModelTensors source_;
  std::vector<NamedType> tensors_;
  std::vector<TensorFile> files_;
  int64_t done_ = 0;
};

}  // namespace

ExportedModel export_model(const FoundCheckpoint& checkpoint, const Tokenizer* tokenizer, const fs::path& folder,
                           const ExportOptions& options) {
  ModelConfig model = run_config_from_json(checkpoint.state.config_json, checkpoint.path.string()).model;
  check_tokenizer(tokenizer, model, checkpoint.path);
  ModelConfig written = grown(model, tokenizer, options.grow_to, checkpoint.path);
  ModelWriter writer(checkpoint, model, written, options);
  std::map<std::string, std::string> files =
      hugging_face_files(written, options.grow_to ? options.grow_to : tokenizer, writer.widest());
  if (files.empty())
    user_error("[export] expected a model of a family that Transformers has, got {}; only checkpoints of ours hold it",
               model.family);
  if (writer.files().size() > 1 || files.contains(kZerosFile))
    files[kTensorIndexFile] = format_tensor_index(written, writer.files());
  NewFolder made(folder, options.replace);
  ExportedModel result = writer.write(made.growing());
  for (const auto& [name, text] : files) write_file_atomic(made.growing() / name, text);
  made.commit();
  return result;
}

}  // namespace tokamak
