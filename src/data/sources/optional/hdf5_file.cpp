#include "data/sources/optional/hdf5_file.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace tokamak {

namespace {

/// Small reads go to the file directly if chunks do not fit into the cache; compressed chunks must be decompressed
/// whole, so a few of them are kept.
constexpr size_t kMinChunkCache = size_t(1) << 20;
constexpr int kCachedChunks = 4;

constexpr size_t kTextBytes = size_t(1) << 20;  // of texts with a fixed length, in one call
constexpr int64_t kTextsAtOnce = 64;            // of others

herr_t add_dataset(hid_t, const char* name, const H5O_info_t* info, void* found) {
  if (info->type == H5O_TYPE_DATASET) static_cast<std::vector<std::string>*>(found)->emplace_back(name);
  return 0;
}

herr_t refuse_link(const char*, const char*, const char* file, const char* object, unsigned*, hid_t, void* target) {
  *static_cast<std::string*>(target) = fmt::format("{} in {}", object, file);
  return -1;
}

/// Properties with which the library follows no link out of the file; `target` takes what such a link names.
Hdf5Handle inside_the_file(hid_t property_class, std::string& target) {
  Hdf5Handle access(H5Pcreate(property_class), H5Pclose);
  H5Pset_elink_cb(access.id(), refuse_link, &target);
  return access;
}

bool is_dataset(hid_t file, const std::string& name, const std::string& path) {
  std::string target;
  Hdf5Handle access = inside_the_file(H5P_LINK_ACCESS, target);
  auto refuse_target = [&] {
    if (!target.empty())
      user_error("[hdf5] {}: expected '{}' in the file itself, got a link to {}; copy it into one file (h5copy)", path,
                 name, target);
  };
  // Each part of the path must exist before the library may look at the next.
  for (size_t end = name.find('/', 1);; end = name.find('/', end + 1)) {
    bool exists = H5Lexists(file, name.substr(0, end).c_str(), access.id()) > 0;
    refuse_target();
    if (!exists) return false;
    if (end == name.npos) break;
  }
  Hdf5Handle object(H5Oopen(file, name.c_str(), access.id()), H5Oclose);
  refuse_target();
  return object.is_open() && H5Iget_type(object.id()) == H5I_DATASET;
}

std::string join(const std::vector<std::string>& names) {
  std::string all;
  for (size_t i = 0; i < std::min<size_t>(names.size(), 10); ++i) all += (i ? ", " : "") + names[i];
  return names.size() > 10 ? all + ", ..." : all;
}

/// A UserError if the chunks went through something that the library cannot undo.
void check_filters(hid_t creation, const std::string& name) {
  for (int i = 0; i < H5Pget_nfilters(creation); ++i) {
    char filter[80] = "";
    size_t values = 0;
    unsigned flags = 0, config = 0;
    H5Z_filter_t id = H5Pget_filter2(creation, unsigned(i), &flags, &values, nullptr, sizeof filter, filter, &config);
    if (H5Zfilter_avail(id) <= 0)
      user_error(
          "[hdf5] {}: expected chunks without compression or with gzip, got the filter {} ({}), which this "
          "HDF5 library lacks; save it in another way or install the filter",
          name, int(id), filter);
  }
}

Hdf5Handle open_file(const std::filesystem::path& path) {
  FileReader readable(path);  // what cannot be read at all is told as for other files
  Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_file_locking(access.id(), false, true);  // also from media without locks
  Hdf5Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id()), H5Fclose);
  if (!file.is_open())
    user_error(
        "[hdf5] {}: expected an HDF5 file, got one that the library refuses ({}); it is another file, or "
        "damaged or cut short: copy it again",
        path.string(), hdf5_reason());
  return file;
}

Hdf5Handle open_as(hid_t file, const std::string& dataset, const std::string& name, hid_t access) {
  Hdf5Handle handle(H5Dopen2(file, dataset.c_str(), access), H5Dclose);
  if (!handle.is_open())
    user_error("[hdf5] {}: expected to open it, but the library cannot ({}); the file is damaged: copy it again", name,
               hdf5_reason());
  return handle;
}

/// Such a file can name any other one of the machine.
void check_inside(hid_t creation, const std::string& name) {
  bool is_virtual = H5Pget_layout(creation) == H5D_VIRTUAL;
  if (is_virtual || H5Pget_external_count(creation) > 0)
    user_error("[hdf5] {}: expected elements in the file itself, got {}; copy it into one file (h5repack)", name,
               is_virtual ? "a virtual dataset, whose elements are in other files" : "external storage in other files");
}

/// The cache of chunks is fixed when a dataset is opened, so one with chunks is opened again.
Hdf5Handle open_dataset(hid_t file, const std::string& dataset, const std::string& name) {
  std::string target;
  Hdf5Handle access = inside_the_file(H5P_DATASET_ACCESS, target);
  Hdf5Handle handle = open_as(file, dataset, name, access.id());
  Hdf5Handle creation(H5Dget_create_plist(handle.id()), H5Pclose);
  check_inside(creation.id(), name);
  if (H5Pget_layout(creation.id()) != H5D_CHUNKED) return handle;
  check_filters(creation.id(), name);
  hsize_t chunk = 0;
  H5Pget_chunk(creation.id(), 1, &chunk);
  Hdf5Handle type(H5Dget_type(handle.id()), H5Tclose);
  bool compressed = H5Pget_nfilters(creation.id()) > 0;
  size_t cache = compressed ? std::max(kMinChunkCache, kCachedChunks * size_t(chunk) * H5Tget_size(type.id())) : 0;
  H5Pset_chunk_cache(access.id(), H5D_CHUNK_CACHE_NSLOTS_DEFAULT, cache, H5D_CHUNK_CACHE_W0_DEFAULT);
  handle = Hdf5Handle();
  return open_as(file, dataset, name, access.id());
}

/// The field, or else the only dataset.
std::string find_dataset(hid_t file, const std::string& field, const std::string& path) {
  if (!field.empty() && is_dataset(file, field, path)) return field;
  std::vector<std::string> names;
  if (H5Ovisit(file, H5_INDEX_NAME, H5_ITER_INC, add_dataset, &names) < 0)
    user_error("[hdf5] {}: expected datasets, got a file that cannot be searched ({}); it is damaged: copy it again",
               path, hdf5_reason());
  if (names.size() == 1) return names[0];
  if (names.empty()) user_error("[hdf5] {}: expected a dataset, got a file without one; name another file", path);
  std::string wanted = field.empty() ? "only one dataset" : fmt::format("a dataset '{}', or only one", field);
  user_error("[hdf5] {}: expected {}, got {}; name one of them as the field: {}", path, wanted, names.size(),
             join(names));
}

/// A small file may claim so many elements, never written, that reading them would not end.
void check_elements(int64_t elements, int64_t element_bytes, int64_t file_bytes, const std::string& name) {
  constexpr int64_t kRatio = 1032;  // what deflate makes of zeros, the most that it can do
  if (elements / kRatio > file_bytes / element_bytes + 1)
    user_error(
        "[hdf5] {}: expected at most {} times the file's {} bytes, got {} elements of {} bytes; it is damaged, or "
        "most of it was never written",
        name, kRatio, file_bytes, elements, element_bytes);
}

/// The text of one element of fixed length.
std::string_view trimmed(std::string_view cell, H5T_str_t padding) {
  if (padding == H5T_STR_NULLTERM) return cell.substr(0, cell.find('\0'));
  return cell.substr(0, cell.find_last_not_of(padding == H5T_STR_SPACEPAD ? ' ' : '\0') + 1);
}

void append_text(std::string& out, std::string_view text) {
  uint64_t bytes = text.size();
  out.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  out += text;
}

}  // namespace

std::string hdf5_reason() {
  std::string reason = "no reason given";
  auto first = [](unsigned, const H5E_error2_t* error, void* text) -> herr_t {
    *static_cast<std::string*>(text) = error->desc ? error->desc : "";
    return 1;  // the innermost is enough
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, first, &reason);
  return reason;
}

Hdf5Handle::Hdf5Handle(Hdf5Handle&& other) noexcept
    : id_(std::exchange(other.id_, -1)), close_(std::exchange(other.close_, nullptr)) {}

Hdf5Handle& Hdf5Handle::operator=(Hdf5Handle&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(close_, other.close_);
  return *this;
}

Hdf5Handle::~Hdf5Handle() {
  if (id_ >= 0) close_(id_);
}

Hdf5Dataset::Hdf5Dataset(const std::filesystem::path& path, const std::string& field) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // it would print
  file_ = open_file(path);
  std::string dataset = find_dataset(file_.id(), field, path.string());
  name_ = fmt::format("{}, dataset {}{}", path.string(), dataset.starts_with('/') ? "" : "/", dataset);
  dataset_ = open_dataset(file_.id(), dataset, name_);
  Hdf5Handle space(H5Dget_space(dataset_.id()), H5Sclose);
  int dims = H5Sget_simple_extent_ndims(space.id());
  if (dims != 1) user_error("[hdf5] {}: expected one dimension, got {}; save it flat", name_, dims);
  size_ = std::max<int64_t>(H5Sget_simple_extent_npoints(space.id()), 0);
  check_elements(size_, int64_t(std::max<size_t>(H5Tget_size(type().id()), 1)),
                 int64_t(std::filesystem::file_size(path)), name_);
}

Hdf5Facts Hdf5Dataset::facts() const {
  using enum Hdf5Facts::Kind;
  Hdf5Handle stored = type();
  int64_t bytes = int64_t(std::max<size_t>(H5Tget_size(stored.id()), 1));
  H5T_class_t kind = H5Tget_class(stored.id());
  Hdf5Facts facts = {.kind = kind == H5T_FLOAT ? kFloats : kOther, .elements = size_};
  if (kind == H5T_STRING) {
    bool variable = H5Tis_variable_str(stored.id()) > 0;
    facts.kind = kTexts;
    facts.at_once = variable ? kTextsAtOnce : std::clamp<int64_t>(int64_t(kTextBytes) / bytes, 1, 4096);
  }
  if (kind != H5T_INTEGER || (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)) return facts;
  facts.kind = kIntegers;
  facts.type = {int(bytes), H5Tget_sign(stored.id()) == H5T_SGN_2};
  Hdf5Handle creation(H5Dget_create_plist(dataset_.id()), H5Pclose);
  bool little_endian = bytes == 1 || H5Tget_order(stored.id()) == H5T_ORDER_LE;
  haddr_t offset = H5Dget_offset(dataset_.id());  // undefined where nothing was ever written
  if (H5Pget_layout(creation.id()) == H5D_CONTIGUOUS && little_endian && offset != HADDR_UNDEF)
    facts.offset = int64_t(offset);
  return facts;
}

std::string Hdf5Dataset::integers(int64_t begin, int64_t count) const {
  Hdf5Handle native(H5Tget_native_type(type().id(), H5T_DIR_ASCEND), H5Tclose);
  std::string bytes(size_t(count) * H5Tget_size(native.id()), '\0');
  read(begin, count, native.id(), bytes.data());
  return bytes;
}

std::string Hdf5Dataset::texts(int64_t begin, int64_t count) const {
  Hdf5Handle stored = type();
  bool variable = H5Tis_variable_str(stored.id()) > 0;
  size_t bytes = variable ? sizeof(char*) : H5Tget_size(stored.id());
  std::string cells(size_t(count) * bytes, '\0'), out;
  read(begin, count, stored.id(), cells.data());
  for (size_t at = 0; at < cells.size(); at += bytes) {
    const char* text = nullptr;
    if (variable) std::memcpy(&text, cells.data() + at, sizeof text);
    if (variable) append_text(out, text ? text : "");
    if (!variable) append_text(out, trimmed(std::string_view(cells).substr(at, bytes), H5Tget_strpad(stored.id())));
  }
  hsize_t elements = hsize_t(count);
  Hdf5Handle memory(H5Screate_simple(1, &elements, nullptr), H5Sclose);
  if (variable) H5Dvlen_reclaim(stored.id(), memory.id(), H5P_DEFAULT, cells.data());
  return out;
}

void Hdf5Dataset::read(int64_t begin, int64_t count, hid_t type, void* out) const {
  hsize_t first = hsize_t(begin), elements = hsize_t(count);
  Hdf5Handle place(H5Dget_space(dataset_.id()), H5Sclose), memory(H5Screate_simple(1, &elements, nullptr), H5Sclose);
  if (H5Sselect_hyperslab(place.id(), H5S_SELECT_SET, &first, nullptr, &elements, nullptr) < 0 ||
      H5Dread(dataset_.id(), type, memory.id(), place.id(), H5P_DEFAULT, out) < 0)
    user_error(
        "[hdf5] {}: expected to read elements {} to {}, but the library cannot ({}); the file is damaged: copy "
        "it again",
        name_, begin, begin + count - 1, hdf5_reason());
}

}  // namespace tokamak
