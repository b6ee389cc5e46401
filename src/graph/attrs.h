// Attributes of a node: a flat list of name/value pairs sorted by name, so that printing, parsing, comparing and
// hashing are written once for all ops. Copying them costs nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tokamak {

using Attr = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>>;

std::string to_string(const Attr& attr);  // true, 3, 1e-05 (always with '.' or 'e'), "text", [1,2]

class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<std::string, Attr>> list);

  void set(std::string_view name, Attr value);
  const Attr* find(std::string_view name) const;

  // Typed access; a missing name or another type is an InternalError, except for the forms with a fallback.
  bool get_bool(std::string_view name) const;
  int64_t get_int(std::string_view name) const;
  double get_double(std::string_view name) const;
  const std::string& get_string(std::string_view name) const;
  const std::vector<int64_t>& get_ints(std::string_view name) const;
  bool get_bool(std::string_view name, bool fallback) const;
  int64_t get_int(std::string_view name, int64_t fallback) const;
  double get_double(std::string_view name, double fallback) const;

  auto begin() const { return items().begin(); }
  auto end() const { return items().end(); }
  bool empty() const { return items().empty(); }
  bool operator==(const Attrs& other) const { return items_ == other.items_ || items() == other.items(); }

 private:
  using Items = std::vector<std::pair<std::string, Attr>>;
  static const Items kNone;
  const Items& items() const { return items_ ? *items_ : kNone; }

  std::shared_ptr<Items> items_;  // copies of a node share them until one of them is set; null: none
};

}  // namespace tokamak
