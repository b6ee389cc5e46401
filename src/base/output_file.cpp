#include "base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

#include "base/error.h"
#include "base/file.h"
#include "base/path_links.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

PathEnd end_of(const fs::path& name) { return name == "-" ? PathEnd{name, STDOUT_FILENO} : follow_links(name); }

/// Of what is there; regular where nothing is.
mode_t kind_of(const fs::path& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0 ? info.st_mode & S_IFMT : S_IFREG;
}

// A disk is no place for a page, whoever may write to it.
void refuse_kind(mode_t kind, const fs::path& name) {
  if (kind == S_IFDIR) file_error("write", name, EISDIR);
  if (kind == S_IFBLK) file_error("write", name, ENODEV);
}

void check_descriptor(int fd, const fs::path& name) {
  int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) file_error("write", name, errno);
  if ((flags & O_ACCMODE) == O_RDONLY) file_error("write", name, EACCES);
}

FileDescriptor open_in_place(const fs::path& path) {
  std::signal(SIGPIPE, SIG_IGN);  // else a reader that goes away would end us without a word
  FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd.is_open() && errno == ENXIO)
    user_error("[file] cannot write {}: nobody reads from this pipe; start its reader first, or name a file",
               path.string());
  if (!fd.is_open() || ::fcntl(fd.get(), F_SETFL, 0) != 0) file_error("write", path, errno);
  return fd;
}

}  // namespace

void check_output_file(const fs::path& name) {
  PathEnd end = end_of(name);
  if (end.descriptor) return check_descriptor(*end.descriptor, name);
  mode_t kind = kind_of(end.path);
  refuse_kind(kind, name);
  if (kind == S_IFREG)
    AtomicFile{end.path};
  else if (::access(end.path.c_str(), W_OK) != 0)  // not opened: the reader of a pipe would take it for the end
    file_error("write", name, errno);
}

void write_output_file(const fs::path& name, std::string_view content) {
  PathEnd end = end_of(name);
  if (end.descriptor) {
    std::fflush(stdout);  // what was printed before comes first
    check_descriptor(*end.descriptor, name);
    return write_all(*end.descriptor, content, name);
  }
  mode_t kind = kind_of(end.path);
  refuse_kind(kind, name);
  kind == S_IFREG ? write_file_atomic(end.path, content) : write_all(open_in_place(end.path).get(), content, name);
}

}  // namespace tokamak
