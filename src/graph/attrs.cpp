#include "graph/attrs.h"

#include "base/error.h"

#include <algorithm>

namespace tokamak {
namespace {

template <typename T>
const T& typed(const Attrs& attrs, std::string_view name) {
  const Attr* attr = attrs.find(name);
  TOKAMAK_CHECK(attr, "attribute '{}' is missing", name);
  const T* value = std::get_if<T>(attr);
  TOKAMAK_CHECK(value, "attribute '{}' has another type", name);
  return *value;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

}  // namespace

std::string to_string(const Attr& attr) {
  if (auto* b = std::get_if<bool>(&attr)) return *b ? "true" : "false";
  if (auto* i = std::get_if<int64_t>(&attr)) return fmt::format("{}", *i);
  if (auto* s = std::get_if<std::string>(&attr)) return quoted(*s);
  if (auto* d = std::get_if<double>(&attr)) {
    std::string text = fmt::format("{}", *d);
    return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;  // "n": inf and nan
  }
  std::string out = "[";
  const auto& list = std::get<std::vector<int64_t>>(attr);
  for (size_t i = 0; i < list.size(); ++i) out += fmt::format("{}{}", i ? "," : "", list[i]);
  return out + "]";
}

const Attrs::Items Attrs::kNone;

Attrs::Attrs(std::initializer_list<std::pair<std::string, Attr>> list) {
  items_ = std::make_shared<Items>();
  items_->reserve(list.size());
  for (const auto& [name, value] : list) set(name, value);
}

void Attrs::set(std::string_view name, Attr value) {
  if (items_.use_count() != 1) {
    auto own = std::make_shared<Items>();
    own->reserve(items().size() + 1);
    own->assign(begin(), end());
    items_ = std::move(own);
  }
  auto at = std::lower_bound(items_->begin(), items_->end(), name,
                             [](const auto& item, std::string_view key) { return item.first < key; });
  if (at != items_->end() && at->first == name)
    at->second = std::move(value);
  else
    items_->emplace(at, std::string(name), std::move(value));
}

const Attr* Attrs::find(std::string_view name) const {
  for (const auto& item : items())
    if (item.first == name) return &item.second;
  return nullptr;
}

bool Attrs::get_bool(std::string_view name) const { return typed<bool>(*this, name); }
int64_t Attrs::get_int(std::string_view name) const { return typed<int64_t>(*this, name); }
double Attrs::get_double(std::string_view name) const { return typed<double>(*this, name); }
const std::string& Attrs::get_string(std::string_view name) const { return typed<std::string>(*this, name); }
const std::vector<int64_t>& Attrs::get_ints(std::string_view name) const {
  return typed<std::vector<int64_t>>(*this, name);
}
bool Attrs::get_bool(std::string_view name, bool fallback) const { return find(name) ? get_bool(name) : fallback; }
int64_t Attrs::get_int(std::string_view name, int64_t fallback) const { return find(name) ? get_int(name) : fallback; }
double Attrs::get_double(std::string_view name, double fallback) const {
  return find(name) ? get_double(name) : fallback;
}

}  // namespace tokamak
