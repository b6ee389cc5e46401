// For LD_PRELOAD: writes down every call by which a program changes what is below a folder, with what was written, in the
// order in which they ended. CHAOS_BELOW: that folder, an absolute path; CHAOS_RECORD: the file that gets the records.
// A record is a line "KIND NUMBER NUMBER SIZE SIZE SIZE" and as many bytes as the three sizes say: two paths and data.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/// An absolute path of what is named relative to an open folder, through links of folders; false: it is not below ours.
static int is_below(int folder, const char* name, char* path) {
  char text[PATH_MAX], parent[PATH_MAX];
  const char* below = getenv("CHAOS_BELOW");
  if (!below) return 0;
  if (name[0] == '/' || folder == AT_FDCWD) {
    snprintf(text, sizeof text, "%s", name);
  } else {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t size = readlink(link, text, sizeof text - 1);
    if (size < 0) return 0;
    snprintf(text + size, sizeof text - (size_t)size, "/%s", name);
  }
  size_t length = strlen(text);
  while (length > 1 && text[length - 1] == '/') text[--length] = '\0';
  char* slash = strrchr(text, '/');
  if (slash) *slash = '\0';
  if (!realpath(!slash ? "." : *text ? text : "/", parent)) return 0;
  if (snprintf(path, PATH_MAX, "%s/%s", parent, slash ? slash + 1 : text) >= PATH_MAX) return 0;
  return strncmp(path, below, strlen(below)) == 0;
}

static int is_open_below(int fd, char* path) {
  char link[64];
  const char* below = getenv("CHAOS_BELOW");
  if (!below) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = readlink(link, path, PATH_MAX - 1);
  if (size < 0) return 0;
  path[size] = '\0';
  return strncmp(path, below, strlen(below)) == 0 && !strstr(path, " (deleted)");
}

/// Other processes write into the file, too: each record is one call.
static void record(const char* kind, const char* path, const char* other, long long a, long long b, const void* data,
                   size_t size) {
  static int file = -1;
  if (file < 0) file = (int)syscall(SYS_openat, AT_FDCWD, getenv("CHAOS_RECORD"), O_WRONLY | O_APPEND | O_CREAT, 0600);
  char line[128];
  int length = snprintf(line, sizeof line, "%s %lld %lld %zu %zu %zu\n", kind, a, b, strlen(path), strlen(other), size);
  struct iovec parts[] = {{line, (size_t)length},
                          {(void*)path, strlen(path)},
                          {(void*)other, strlen(other)},
                          {(void*)data, size}};
  if (syscall(SYS_writev, file, parts, 4) < 0) abort();
}

#define RECORDED(result, call, ok, what)         \
  int error_before = errno;                      \
  pthread_mutex_lock(&one_at_a_time);            \
  result = call;                                 \
  int error = result < 0 ? errno : error_before; \
  if (ok) what;                                  \
  pthread_mutex_unlock(&one_at_a_time);          \
  errno = error

static int open_any(int folder, const char* name, int flags, mode_t mode) {
  char path[PATH_MAX];
  int changes = (flags & (O_CREAT | O_TRUNC)) && is_below(folder, name, path);
  if (!changes) return (int)syscall(SYS_openat, folder, name, flags, mode);
  struct stat before;
  pthread_mutex_lock(&one_at_a_time);
  int was = lstat(path, &before) == 0;
  int fd = (int)syscall(SYS_openat, folder, name, flags, mode);
  int error = errno;
  if (fd >= 0 && !was) record("create", path, "", 0, 0, "", 0);
  if (fd >= 0 && was && (flags & O_TRUNC)) record("size", path, "", 0, 0, "", 0);
  pthread_mutex_unlock(&one_at_a_time);
  errno = error;
  return fd;
}

#define MODE(flags)                                  \
  mode_t mode = 0;                                   \
  if ((flags) & (O_CREAT | O_TMPFILE)) {             \
    va_list rest;                                    \
    va_start(rest, flags);                           \
    mode = va_arg(rest, mode_t);                     \
    va_end(rest);                                    \
  }
int open(const char* name, int flags, ...) {
  MODE(flags)
  return open_any(AT_FDCWD, name, flags, mode);
}
int open64(const char* name, int flags, ...) {
  MODE(flags)
  return open_any(AT_FDCWD, name, flags, mode);
}
int openat(int folder, const char* name, int flags, ...) {
  MODE(flags)
  return open_any(folder, name, flags, mode);
}
int openat64(int folder, const char* name, int flags, ...) {
  MODE(flags)
  return open_any(folder, name, flags, mode);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  char path[PATH_MAX];
  ssize_t done;
  if (fd == STDOUT_FILENO && getenv("CHAOS_BELOW")) {
    RECORDED(done, NEXT(write)(fd, bytes, size), done > 0, record("says", "", "", 0, 0, bytes, (size_t)done));
    return done;
  }
  if (!is_open_below(fd, path)) return NEXT(write)(fd, bytes, size);
  RECORDED(done, NEXT(write)(fd, bytes, size), done > 0,
           record("data", path, "", lseek(fd, 0, SEEK_CUR) - done, 0, bytes, (size_t)done));
  return done;
}
ssize_t writev(int fd, const struct iovec* parts, int count) {  // what is longer than a stream's buffer
  ssize_t all = 0;
  for (int i = 0; i < count; ++i) {
    if (parts[i].iov_len == 0) continue;
    ssize_t done = write(fd, parts[i].iov_base, parts[i].iov_len);
    if (done < 0) return all > 0 ? all : done;
    all += done;
    if ((size_t)done < parts[i].iov_len) break;
  }
  return all;
}
ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t at) {
  char path[PATH_MAX];
  ssize_t done;
  if (!is_open_below(fd, path)) return NEXT(pwrite64)(fd, bytes, size, at);
  RECORDED(done, NEXT(pwrite64)(fd, bytes, size, at), done > 0, record("data", path, "", at, 0, bytes, (size_t)done));
  return done;
}
ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) { return pwrite64(fd, bytes, size, at); }

int ftruncate64(int fd, off64_t size) {
  char path[PATH_MAX];
  int status;
  if (!is_open_below(fd, path)) return NEXT(ftruncate64)(fd, size);
  RECORDED(status, NEXT(ftruncate64)(fd, size), status == 0, record("size", path, "", size, 0, "", 0));
  return status;
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

static int sync_any(int fd, int (*next)(int)) {
  char path[PATH_MAX];
  int status;
  if (!is_open_below(fd, path)) return next(fd);
  RECORDED(status, next(fd), status == 0, record("sync", path, "", 0, 0, "", 0));
  return status;
}
int fsync(int fd) { return sync_any(fd, NEXT(fsync)); }
int fdatasync(int fd) { return sync_any(fd, NEXT(fdatasync)); }

int renameat2(int a, const char* from, int b, const char* to, unsigned flags) {
  char path[PATH_MAX], other[PATH_MAX];
  int status;
  if (!is_below(a, from, path) || !is_below(b, to, other)) return (int)syscall(SYS_renameat2, a, from, b, to, flags);
  RECORDED(status, (int)syscall(SYS_renameat2, a, from, b, to, flags), status == 0,
           record(flags & RENAME_EXCHANGE ? "exchange" : "rename", path, other, 0, 0, "", 0));
  return status;
}
int rename(const char* from, const char* to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int a, const char* from, int b, const char* to) { return renameat2(a, from, b, to, 0); }

int unlinkat(int folder, const char* name, int flags) {
  char path[PATH_MAX];
  int status;
  if (!is_below(folder, name, path)) return (int)syscall(SYS_unlinkat, folder, name, flags);
  RECORDED(status, (int)syscall(SYS_unlinkat, folder, name, flags), status == 0,
           record("remove", path, "", 0, 0, "", 0));
  return status;
}
int unlink(const char* name) { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char* name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }
int remove(const char* name) {
  struct stat info;
  return unlinkat(AT_FDCWD, name, lstat(name, &info) == 0 && S_ISDIR(info.st_mode) ? AT_REMOVEDIR : 0);
}

int mkdirat(int folder, const char* name, mode_t mode) {
  char path[PATH_MAX];
  int status;
  if (!is_below(folder, name, path)) return (int)syscall(SYS_mkdirat, folder, name, mode);
  RECORDED(status, (int)syscall(SYS_mkdirat, folder, name, mode), status == 0, record("folder", path, "", 0, 0, "", 0));
  return status;
}
int mkdir(const char* name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }

int symlinkat(const char* target, int folder, const char* name) {
  char path[PATH_MAX];
  int status;
  if (!is_below(folder, name, path)) return (int)syscall(SYS_symlinkat, target, folder, name);
  RECORDED(status, (int)syscall(SYS_symlinkat, target, folder, name), status == 0,
           record("link", path, target, 0, 0, "", 0));
  return status;
}
int symlink(const char* target, const char* name) { return symlinkat(target, AT_FDCWD, name); }
