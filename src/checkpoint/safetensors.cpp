#include "checkpoint/safetensors.h"

#include "base/error.h"
#include "base/json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

namespace tokamak {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

static_assert(std::endian::native == std::endian::little, "tensors are written as they lie in memory");

constexpr size_t kLengthBytes = 8;
constexpr size_t kTensorAlignment = 8;      // of the tensors' bytes, as the reference implementation pads
constexpr size_t kMaxHeader = 100'000'000;  // the format's own limit

struct FileDType {
  std::string_view name;
  int64_t bytes;
  std::optional<DType> ours;
};

// Others (sub-byte types, new ones) are read over: their size cannot be checked, and asking for them is an error.
constexpr std::array<FileDType, 14> kDTypes = {{{"F32", 4, DType::kF32},
                                                {"BF16", 2, DType::kBF16},
                                                {"F16", 2, DType::kF16},
                                                {"I32", 4, DType::kI32},
                                                {"F64", 8, {}},
                                                {"I64", 8, {}},
                                                {"U64", 8, {}},
                                                {"U32", 4, {}},
                                                {"U16", 2, {}},
                                                {"I16", 2, {}},
                                                {"U8", 1, DType::kU8},
                                                {"I8", 1, {}},
                                                {"BOOL", 1, {}},
                                                {"F8_E4M3", 1, {}}}};

const FileDType* find_dtype(std::string_view name) {
  auto at = std::find_if(kDTypes.begin(), kDTypes.end(), [&](const FileDType& d) { return d.name == name; });
  return at == kDTypes.end() ? nullptr : &*at;
}

std::string_view file_dtype(DType dtype) {
  return std::find_if(kDTypes.begin(), kDTypes.end(), [&](const FileDType& d) { return d.ours == dtype; })->name;
}

std::string make_header(const std::vector<NamedType>& tensors, const std::map<std::string, std::string>& metadata) {
  ordered_json header = ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  int64_t offset = 0;
  for (const auto& [name, type] : tensors) {
    TOKAMAK_CHECK(name != "__metadata__" && !header.contains(name), "two tensors are called '{}'", name);
    int64_t end = offset + num_bytes(type);
    header[name] = {{"dtype", file_dtype(type.dtype)}, {"shape", type.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = format_json(header);
  text.append((kTensorAlignment - text.size() % kTensorAlignment) % kTensorAlignment, ' ');
  return text;
}

/// The header of one file, taken apart; each error names the file.
class HeaderReader {
 public:
  explicit HeaderReader(const MappedFile& file) : path_(file.path().string()), bytes_(file.bytes()) {
    if (bytes_.size() < kLengthBytes)
      refuse("at least 8 bytes", fmt::format("{}", bytes_.size()), "the file is empty or cut short");
    uint64_t length = 0;
    std::memcpy(&length, bytes_.data(), kLengthBytes);
    size_t most = std::min(kMaxHeader, bytes_.size() - kLengthBytes);
    if (length > most)
      refuse(fmt::format("a header of at most {} bytes", most), fmt::format("a header length of {}", length),
             "it is no safetensors file or cut short");
    data_ = bytes_.subspan(kLengthBytes + length);
    std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + kLengthBytes, length);
    root_ = parse_json(text);
    if (!root_.is_object())
      refuse("a JSON object as header", "something else" + json_error(text), "it is no safetensors file or damaged");
  }

  const json& root() const { return root_; }

  std::string dtype(const std::string& name) const {
    const json& value = field(name, "dtype");
    if (!value.is_string()) refuse_field(name, "dtype", "a string", value);
    return value.get<std::string>();
  }

  Shape shape(const std::string& name) const {
    const json& value = field(name, "shape");
    if (!is_sizes(value) || value.size() > Shape::kMaxDims)
      refuse_field(name, "shape", fmt::format("a list of at most {} sizes", Shape::kMaxDims), value);
    return value.get<std::vector<int64_t>>();
  }

  std::pair<size_t, size_t> offsets(const std::string& name) const {
    const json& value = field(name, "data_offsets");
    if (!is_sizes(value) || value.size() != 2 || value[0] > value[1] || value[1] > data_.size())
      refuse_field(name, "data_offsets", fmt::format("[begin, end] within {} bytes of data", data_.size()), value);
    return {value[0].get<size_t>(), value[1].get<size_t>()};
  }

  std::span<const std::byte> data() const { return data_; }

  [[noreturn]] void refuse(std::string_view expected, std::string_view got, std::string_view why) const {
    user_error("[safetensors] {}: expected {}, got {}; {}: copy or make the file again", path_, expected, got, why);
  }

 private:
  // Up to 2^53, so that products of a few sizes can be watched for overflow.
  static bool is_sizes(const json& value) {
    return value.is_array() && std::all_of(value.begin(), value.end(), [](const json& v) {
             return v.is_number_unsigned() && v.get<uint64_t>() <= uint64_t(1) << 53;
           });
  }

  const json& field(const std::string& name, const char* key) const {
    static const json kNothing;
    const json& object = root_[name];
    return object.is_object() && object.contains(key) ? object[key] : kNothing;
  }

  [[noreturn]] void refuse_field(const std::string& name, const char* key, std::string_view expected,
                                 const json& got) const {
    refuse(fmt::format("{} as {} of '{}'", expected, key, name),
           got.is_null() ? "nothing" : format_json(got).substr(0, 80), "the header is damaged");
  }

  std::string path_;
  std::span<const std::byte> bytes_, data_;
  json root_;
};

/// Bytes that the shape needs, or nothing when they do not fit into int64.
std::optional<int64_t> checked_bytes(const Shape& shape, int64_t element) {
  int64_t bytes = element;
  for (int64_t d : shape)
    if (__builtin_mul_overflow(bytes, d, &bytes)) return {};
  return bytes;
}

void check_size(const HeaderReader& header, const std::string& name, const std::string& dtype, const Shape& shape,
                size_t size) {
  const FileDType* facts = find_dtype(dtype);
  if (!facts) return;
  std::optional<int64_t> expected = checked_bytes(shape, facts->bytes);
  if (!expected || uint64_t(*expected) != size)
    header.refuse(fmt::format("the bytes of {}{} for '{}'", dtype, to_string(shape), name),
                  fmt::format("{} bytes", size), "the header is damaged");
}

struct Range {
  size_t begin, end;
  const std::string* name;
};

// The format wants the data filled without holes, which finds overlaps and files cut short or grown as well.
void check_cover(const HeaderReader& header, std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  size_t at = 0;
  for (const Range& range : ranges) {
    if (range.begin != at)
      header.refuse(fmt::format("'{}' to begin at byte {} of the data", *range.name, at),
                    fmt::format("{}", range.begin),
                    range.begin < at ? "tensors overlap" : "there is a hole between tensors");
    at = range.end;
  }
  if (at != header.data().size())
    header.refuse(fmt::format("{} bytes of tensors", at), fmt::format("{}", header.data().size()),
                  "the file does not end with its last tensor");
}

std::map<std::string, std::string> read_metadata(const HeaderReader& header) {
  std::map<std::string, std::string> metadata;
  if (!header.root().contains("__metadata__")) return metadata;
  const json& entries = header.root()["__metadata__"];
  if (!entries.is_object()) header.refuse("an object as __metadata__", "something else", "the header is damaged");
  for (const auto& [key, value] : entries.items()) {
    if (!value.is_string()) header.refuse("texts in __metadata__", "something else", "the header is damaged");
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

}  // namespace

std::map<std::string, std::string> model_metadata() { return {{"format", "pt"}}; }

float widen_bf16(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

float widen_f16(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000u) << 16, exponent = bits >> 10 & 31u, mantissa = bits & 1023u;
  if (exponent == 0) return (sign ? -1.0f : 1.0f) * float(mantissa) * 0x1p-24f;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | mantissa << 13);
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

SafetensorsLayout safetensors_layout(const std::vector<NamedType>& tensors,
                                     const std::map<std::string, std::string>& metadata) {
  std::string text = make_header(tensors, metadata);
  uint64_t length = text.size();
  SafetensorsLayout layout{std::string(reinterpret_cast<const char*>(&length), sizeof length) + text, {}, 0};
  layout.bytes = int64_t(layout.header.size());
  for (const NamedType& tensor : tensors) {
    layout.begin.push_back(layout.bytes);
    layout.bytes += num_bytes(tensor.type);
  }
  return layout;
}

SafetensorsWriter::SafetensorsWriter(const fs::path& path, std::vector<NamedType> tensors,
                                     const std::map<std::string, std::string>& metadata)
    : tensors_(std::move(tensors)), file_(path) {
  std::string header = safetensors_layout(tensors_, metadata).header;
  append(std::as_bytes(std::span(header)));
  header_checksum_ = checksum();
}

// In pieces that stay in the core's cache for the second checksum.
void SafetensorsWriter::append(std::span<const std::byte> data, Checksum* tensor) {
  constexpr size_t kCached = size_t(1) << 17;
  file_.write(data);
  bytes_ += int64_t(data.size());
  for (; !data.empty(); data = data.subspan(std::min(kCached, data.size()))) {
    std::span<const std::byte> piece = data.first(std::min(kCached, data.size()));
    checksum_.update(piece);
    if (tensor) tensor->update(piece);
  }
}

void SafetensorsWriter::write(std::string_view name, std::span<const std::byte> data) {
  write_piece(name, data);
  TOKAMAK_CHECK(written_ == 0, "'{}' has more than {} bytes", name, data.size());
}

void SafetensorsWriter::write_piece(std::string_view name, std::span<const std::byte> piece) {
  TOKAMAK_CHECK(next_ < tensors_.size() && tensors_[next_].name == name, "'{}' is not the next tensor", name);
  int64_t expected = num_bytes(tensors_[next_].type);
  written_ += int64_t(piece.size());
  TOKAMAK_CHECK(written_ <= expected, "'{}' has {} bytes, not {}", name, expected, written_);
  append(piece, &tensor_checksum_);
  if (written_ < expected) return;
  tensor_checksums_[tensors_[next_].name] = std::exchange(tensor_checksum_, {}).digest();
  ++next_;
  written_ = 0;
}

void SafetensorsWriter::finish() {
  TOKAMAK_CHECK(next_ == tensors_.size(), "{} of {} tensors are written", next_, tensors_.size());
  file_.commit();
}

SafetensorsReader::SafetensorsReader(const fs::path& path)
    : SafetensorsReader(std::make_shared<const MappedFile>(path)) {}

SafetensorsReader::SafetensorsReader(std::shared_ptr<const MappedFile> file) : file_(std::move(file)) {
  HeaderReader header(*file_);
  header_bytes_ = file_bytes().size() - header.data().size();
  metadata_ = read_metadata(header);
  std::vector<Range> ranges;
  for (const auto& [name, value] : header.root().items()) {
    if (name == "__metadata__") continue;
    auto [begin, end] = header.offsets(name);
    Entry entry{header.dtype(name), header.shape(name), header.data().subspan(begin, end - begin)};
    check_size(header, name, entry.dtype, entry.shape, end - begin);
    ranges.push_back({begin, end, &entries_.emplace(name, std::move(entry)).first->first});
  }
  check_cover(header, std::move(ranges));
}

std::vector<std::string> SafetensorsReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

const SafetensorsReader::Entry& SafetensorsReader::find(const std::string& name) const {
  auto at = entries_.find(name);
  if (at != entries_.end()) return at->second;
  user_error("[safetensors] {}: expected a tensor '{}', got none of {} with that name; use the file of another model",
             path().string(), name, entries_.size());
}

bool SafetensorsReader::is_known(const std::string& name) const {
  const FileDType* facts = find_dtype(find(name).dtype);
  return facts && facts->ours;
}

ValueType SafetensorsReader::type(const std::string& name) const {
  const Entry& entry = find(name);
  const FileDType* facts = find_dtype(entry.dtype);
  if (!facts || !facts->ours)
    user_error("[safetensors] {}: expected '{}' to be F32, BF16, F16 or I32, got {}; convert the file first",
               path().string(), name, entry.dtype);
  return {*facts->ours, entry.shape};
}

std::span<const std::byte> SafetensorsReader::bytes(const std::string& name) const { return find(name).bytes; }

std::vector<float> SafetensorsReader::floats(const std::string& name) const {
  ValueType type = this->type(name);
  if (!is_float(type.dtype))
    user_error("[safetensors] {}: expected '{}' to be F32, BF16 or F16, got I32; convert the file first",
               path().string(), name);
  std::span<const std::byte> from = bytes(name);
  std::vector<float> values(size_t(num_elements(type.shape)));
  if (type.dtype == DType::kF32) {
    std::copy(from.begin(), from.end(), std::as_writable_bytes(std::span(values)).begin());
    return values;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t bits;  // tensors need not be aligned in the file
    std::memcpy(&bits, from.data() + 2 * i, sizeof bits);
    values[i] = type.dtype == DType::kBF16 ? widen_bf16(bits) : widen_f16(bits);
  }
  return values;
}

}  // namespace tokamak
