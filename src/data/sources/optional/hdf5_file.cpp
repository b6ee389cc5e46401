#include "data/sources/optional/hdf5_file.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/file.h"

namespace tokamak {

namespace {

/// One for the process, as the library's own state is.
std::recursive_mutex& library_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

/// Small reads go to the file directly if chunks do not fit into the cache; compressed chunks must be decompressed
/// whole, so a few of them are kept.
constexpr size_t kMinChunkCache = size_t(1) << 20;
constexpr int kCachedChunks = 4;

struct Found {
  std::vector<std::string> names;
};

herr_t add_dataset(hid_t, const char* name, const H5O_info_t* info, void* found) {
  if (info->type == H5O_TYPE_DATASET) static_cast<Found*>(found)->names.emplace_back(name);
  return 0;
}

bool is_dataset(hid_t file, const std::string& name) {
  // Each part of the path must exist before the library may look at the next.
  for (size_t end = name.find('/', 1);; end = name.find('/', end + 1)) {
    if (H5Lexists(file, name.substr(0, end).c_str(), H5P_DEFAULT) <= 0) return false;
    if (end == name.npos) break;
  }
  Hdf5Handle object(H5Oopen(file, name.c_str(), H5P_DEFAULT), H5Oclose);
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

}  // namespace

Hdf5Lock::Hdf5Lock() {
  library_mutex().lock();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Hdf5Lock::~Hdf5Lock() { library_mutex().unlock(); }

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
  if (id_ < 0) return;
  Hdf5Lock lock;
  close_(id_);
}

Hdf5Dataset::Hdf5Dataset(const std::filesystem::path& path, const std::string& field) : path_(path) {
  Hdf5Lock lock;
  file_ = open_file(path);
  dataset_ = open_dataset(field);
  std::string name(size_t(H5Iget_name(dataset_.id(), nullptr, 0)), '\0');
  H5Iget_name(dataset_.id(), name.data(), name.size() + 1);
  name_ = fmt::format("{}, dataset {}", path.string(), name);
  Hdf5Handle space(H5Dget_space(dataset_.id()), H5Sclose);
  int dims = H5Sget_simple_extent_ndims(space.id());
  if (dims != 1) user_error("[hdf5] {}: expected one dimension, got {}; save it flat", name_, dims);
  size_ = H5Sget_simple_extent_npoints(space.id());
}

Hdf5Handle Hdf5Dataset::type() const {
  Hdf5Lock lock;
  return {H5Dget_type(id()), H5Tclose};
}

Hdf5Handle Hdf5Dataset::open_dataset(const std::string& field) const {
  if (!field.empty() && is_dataset(file_.id(), field)) return open_for_access(field);
  Found found;
  if (H5Ovisit(file_.id(), H5_INDEX_NAME, H5_ITER_INC, add_dataset, &found) < 0)
    user_error("[hdf5] {}: expected datasets, got a file that cannot be searched ({}); it is damaged: copy it again",
               path_.string(), hdf5_reason());
  if (found.names.size() == 1) return open_for_access(found.names[0]);
  if (found.names.empty())
    user_error("[hdf5] {}: expected a dataset, got a file without one; name another file", path_.string());
  std::string wanted = field.empty() ? "only one dataset" : fmt::format("a dataset '{}', or only one", field);
  user_error("[hdf5] {}: expected {}, got {}; name one of them as the field: {}", path_.string(), wanted,
             found.names.size(), join(found.names));
}

Hdf5Handle Hdf5Dataset::open_for_access(const std::string& dataset) const {
  auto opened = [&](hid_t access) {
    Hdf5Handle handle(H5Dopen2(file_.id(), dataset.c_str(), access), H5Dclose);
    if (!handle.is_open())
      user_error(
          "[hdf5] {}: expected to open dataset {}, but the library cannot ({}); the file is damaged: copy it "
          "again",
          path_.string(), dataset, hdf5_reason());
    return handle;
  };
  Hdf5Handle handle = opened(H5P_DEFAULT);
  Hdf5Handle creation(H5Dget_create_plist(handle.id()), H5Pclose);
  if (H5Pget_layout(creation.id()) != H5D_CHUNKED) return handle;
  // The cache is fixed when a dataset is opened, so it is opened again.
  hsize_t chunk = 0;
  H5Pget_chunk(creation.id(), 1, &chunk);
  Hdf5Handle type(H5Dget_type(handle.id()), H5Tclose);
  bool compressed = H5Pget_nfilters(creation.id()) > 0;
  check_filters(creation.id(), fmt::format("{}, dataset {}", path_.string(), dataset));
  size_t cache = compressed ? std::max(kMinChunkCache, kCachedChunks * size_t(chunk) * H5Tget_size(type.id())) : 0;
  Hdf5Handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
  H5Pset_chunk_cache(access.id(), H5D_CHUNK_CACHE_NSLOTS_DEFAULT, cache, H5D_CHUNK_CACHE_W0_DEFAULT);
  handle = Hdf5Handle();
  return opened(access.id());
}

Hdf5Handle Hdf5Dataset::memory_space(int64_t count) {
  hsize_t size = hsize_t(count);
  return {H5Screate_simple(1, &size, nullptr), H5Sclose};
}

void Hdf5Dataset::read(int64_t begin, int64_t count, hid_t type, void* out) const {
  Hdf5Lock lock;
  hsize_t first = hsize_t(begin), elements = hsize_t(count);
  Hdf5Handle place(H5Dget_space(id()), H5Sclose), memory = memory_space(count);
  if (H5Sselect_hyperslab(place.id(), H5S_SELECT_SET, &first, nullptr, &elements, nullptr) < 0 ||
      H5Dread(id(), type, memory.id(), place.id(), H5P_DEFAULT, out) < 0)
    user_error(
        "[hdf5] {}: expected to read elements {} to {}, but the library cannot ({}); the file is damaged: copy "
        "it again",
        name_, begin, begin + count - 1, hdf5_reason());
}

}  // namespace tokamak
