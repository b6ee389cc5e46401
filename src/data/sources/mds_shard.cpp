#include "data/sources/mds_shard.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"

namespace tokamak {

using nlohmann::json;
using Kind = MdsEncoding::Kind;

namespace {

constexpr size_t kMostConfigBytes = size_t(16) << 20;

uint32_t number_at(std::string_view bytes, size_t place) {
  uint32_t number;
  std::memcpy(&number, bytes.data() + place, sizeof number);
  return number;
}

[[noreturn]] void damaged(std::string_view name, std::string_view what) {
  user_error("[mds] {}: expected a shard of MosaicML's streaming format, got {}; copy or download it again", name,
             what);
}

std::optional<TokenType> integer_type(std::string_view name) {
  for (int bytes : {1, 2, 4, 8})
    for (bool is_signed : {false, true})
      if (TokenType type = {bytes, is_signed}; name == type_name(type)) return type;
  return std::nullopt;
}

/// "ndarray:TYPE:LENGTH" behind its first colon.
MdsEncoding parse_array(std::string_view rest) {
  size_t colon = rest.find(':');
  std::string_view type = rest.substr(0, colon);
  MdsEncoding encoding = {.kind = Kind::kTokens, .type = integer_type(type), .has_shape = colon == rest.npos};
  bool has_dimensions = colon != rest.npos && rest.find(',') != rest.npos;
  if ((!type.empty() && !encoding.type) || has_dimensions) return {};
  return encoding;
}

/// The config in a shard; null where it is none.
json columns_of(std::string_view config, const char* key, size_t count) {
  json object = parse_json(config);
  if (!object.is_object() || !object.contains(key)) return nullptr;
  const json& list = object[key];
  return list.is_array() && (count == 0 || list.size() == count) ? list : json(nullptr);
}

bool is_size(const json& size) {
  return size.is_null() || (size.is_number_unsigned() && size.get<uint64_t>() <= UINT32_MAX);
}

std::vector<MdsColumn> parse_columns(std::string_view config, std::string_view name) {
  json names = columns_of(config, "column_names", 0);
  size_t count = names.is_array() ? names.size() : 0;
  json encodings = columns_of(config, "column_encodings", count), sizes = columns_of(config, "column_sizes", count);
  if (count == 0 || encodings.is_null() || sizes.is_null())
    damaged(name, "no columns with their encodings and sizes before the first sample");
  std::vector<MdsColumn> columns;
  for (size_t i = 0; i < count; ++i) {
    if (!names[i].is_string() || !encodings[i].is_string() || !is_size(sizes[i]))
      damaged(name, fmt::format("column {} of another form", i + 1));
    MdsColumn column = {names[i].get<std::string>(), encodings[i].get<std::string>(), std::nullopt};
    if (sizes[i].is_number() && sizes[i].get<uint32_t>() > 0) column.size = sizes[i].get<uint32_t>();
    columns.push_back(std::move(column));
  }
  return columns;
}

}  // namespace

MdsEncoding parse_mds_encoding(std::string_view name) {
  if (name == "str" || name == "str_int" || name == "str_float" || name == "str_decimal") return {.kind = Kind::kText};
  if (name == "bytes") return {.kind = Kind::kBytes};
  if (name == "int") return {.kind = Kind::kInteger, .type = TokenType{8, true}};
  if (std::optional<TokenType> type = integer_type(name)) return {.kind = Kind::kInteger, .type = type};
  if (name == "ndarray") return {.kind = Kind::kTokens, .type = std::nullopt, .has_shape = true};
  if (name.starts_with("ndarray:")) return parse_array(name.substr(name.find(':') + 1));
  return {};
}

MdsHeader read_mds_header(ByteBuffer& buffer) {
  const std::string& name = buffer.stream().name();
  constexpr size_t kNumber = sizeof(uint32_t);
  buffer.hold(2 * kNumber);
  if (buffer.view().size() < 2 * kNumber) damaged(name, fmt::format("{} bytes", buffer.view().size()));
  uint64_t samples = number_at(buffer.view(), 0), begin = number_at(buffer.view(), kNumber);
  uint64_t config = kNumber * (samples + 2);
  if (begin <= config || begin - config > kMostConfigBytes)
    damaged(name, fmt::format("{} samples of which the first begins at byte {}", samples, begin));
  buffer.hold(begin);
  if (buffer.view().size() < begin)
    damaged(name, fmt::format("{} bytes where {} samples begin at byte {}", buffer.view().size(), samples, begin));
  MdsHeader header;
  header.offsets.resize(samples + 1);
  std::memcpy(header.offsets.data(), buffer.view().data() + kNumber, header.offsets.size() * kNumber);
  if (auto at = std::is_sorted_until(header.offsets.begin(), header.offsets.end()); at != header.offsets.end())
    damaged(name, fmt::format("sample {} that ends before it begins", at - header.offsets.begin()));
  header.columns = parse_columns(buffer.view().substr(config, begin - config), name);
  buffer.consume(begin);
  return header;
}

std::string_view mds_value(std::string_view sample, const std::vector<MdsColumn>& columns, size_t column,
                           std::string_view place) {
  uint64_t head = 0, before = 0, sum = 0, size = 0;  // as sums of 32-bit sizes, none overflows
  for (const MdsColumn& one : columns) head += one.size ? 0 : sizeof(uint32_t);
  if (head > sample.size())
    damaged(place, fmt::format("{} bytes, of which the sizes of its columns take {}", sample.size(), head));
  size_t at = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    uint64_t bytes = columns[i].size.value_or(0);
    if (!columns[i].size) {
      bytes = number_at(sample, at);
      at += sizeof(uint32_t);
    }
    if (i < column) before += bytes;
    if (i == column) size = bytes;
    sum += bytes;
  }
  if (head + sum != sample.size())
    damaged(place, fmt::format("{} bytes, while its columns have {}", sample.size(), head + sum));
  return sample.substr(head + before, size);
}

}  // namespace tokamak
