// For LD_PRELOAD: counts the calls by which a program changes files, and at one of them kills the program or lets the
// call fail. CHAOS_AT: the number of that call, from 1; CHAOS_FAULT: KILL, EIO, ENOSPC, EDQUOT, EACCES, ENOMEM, or SHORT,
// a file that ends too early, or LATE, a call that takes its time; CHAOS_COUNT: a file that gets the count of all calls at
// the end. CHAOS_READS=text: the calls are those that look at and read what has the text in its path. CHAOS_SLOW:
// microseconds that each rename takes longer. CHAOS_CLOCK: seconds by which the clock is wrong, or back, or forth: an hour
// each time that somebody looks.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static atomic_long calls;

static const char* setting(const char* name) {
  const char* value = getenv(name);
  return value ? value : "";
}

enum { kNothing, kFails, kShort };

/// What happens to the call under way; errno says how it fails.
static int fault(void) {
  static const struct {
    const char* name;
    int number;
  } errors[] = {{"EIO", EIO}, {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"EACCES", EACCES}, {"ENOMEM", ENOMEM}};
  if (atomic_fetch_add(&calls, 1) + 1 != atol(setting("CHAOS_AT"))) return kNothing;
  const char* name = setting("CHAOS_FAULT");
  if (strcmp(name, "KILL") == 0) kill(getpid(), SIGKILL);
  if (strcmp(name, "LATE") == 0) return usleep(200 * 1000), kNothing;
  for (size_t i = 0; i < sizeof errors / sizeof *errors; ++i)
    if (strcmp(name, errors[i].name) == 0) return errno = errors[i].number, kFails;
  return kShort;
}

/// Whether a call that changes files fails.
static int fails(void) { return !*setting("CHAOS_READS") && fault() == kFails; }

__attribute__((destructor)) static void write_count(void) {
  FILE* file = *setting("CHAOS_COUNT") ? fopen(setting("CHAOS_COUNT"), "w") : NULL;
  if (!file) return;
  fprintf(file, "%ld\n", atomic_load(&calls));
  fclose(file);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

// Output to the terminal is not what is tested.
ssize_t write(int fd, const void* bytes, size_t size) {
  if (fd > STDERR_FILENO && fails()) return -1;
  return NEXT(write)(fd, bytes, size);
}
ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t at) {
  return fails() ? -1 : NEXT(pwrite64)(fd, bytes, size, at);
}
ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) {
  return fails() ? -1 : NEXT(pwrite)(fd, bytes, size, at);
}
int fsync(int fd) { return fails() ? -1 : NEXT(fsync)(fd); }
int fdatasync(int fd) { return fails() ? -1 : NEXT(fdatasync)(fd); }
int ftruncate(int fd, off_t size) { return fails() ? -1 : NEXT(ftruncate)(fd, size); }
int ftruncate64(int fd, off64_t size) { return fails() ? -1 : NEXT(ftruncate64)(fd, size); }
int rename(const char* from, const char* to) {
  usleep((useconds_t)atol(setting("CHAOS_SLOW")));
  return fails() ? -1 : NEXT(rename)(from, to);
}
int renameat2(int a, const char* from, int b, const char* to, unsigned flags) {
  return fails() ? -1 : NEXT(renameat2)(a, from, b, to, flags);
}
int unlink(const char* path) { return fails() ? -1 : NEXT(unlink)(path); }
int unlinkat(int folder, const char* path, int flags) { return fails() ? -1 : NEXT(unlinkat)(folder, path, flags); }
int remove(const char* path) { return fails() ? -1 : NEXT(remove)(path); }
int mkdir(const char* path, mode_t mode) { return fails() ? -1 : NEXT(mkdir)(path, mode); }
int symlink(const char* target, const char* path) { return fails() ? -1 : NEXT(symlink)(target, path); }

/// What happens to a call that reads what is at the path, or open as the descriptor.
static int path_fault(const char* path) {
  const char* part = setting("CHAOS_READS");
  return *part && strstr(path, part) ? fault() : kNothing;
}
static int descriptor_fault(int fd) {
  char link[64], path[4096];
  if (!*setting("CHAOS_READS")) return kNothing;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = NEXT(readlink)(link, path, sizeof path - 1);
  if (size < 0) return kNothing;
  path[size] = '\0';
  return path_fault(path);
}

ssize_t read(int fd, void* bytes, size_t size) {
  int what = descriptor_fault(fd);
  return what == kFails ? -1 : what == kShort ? 0 : NEXT(read)(fd, bytes, size);
}
ssize_t pread(int fd, void* bytes, size_t size, off_t at) {
  int what = descriptor_fault(fd);
  return what == kFails ? -1 : what == kShort ? 0 : NEXT(pread)(fd, bytes, size, at);
}
int fstat(int fd, struct stat* info) {
  int what = descriptor_fault(fd);
  if (what == kFails) return -1;
  int status = NEXT(fstat)(fd, info);
  if (what == kShort) info->st_size /= 2;
  return status;
}
int stat(const char* path, struct stat* info) { return path_fault(path) == kFails ? -1 : NEXT(stat)(path, info); }
int lstat(const char* path, struct stat* info) { return path_fault(path) == kFails ? -1 : NEXT(lstat)(path, info); }
ssize_t readlink(const char* path, char* target, size_t size) {
  return path_fault(path) == kFails ? -1 : NEXT(readlink)(path, target, size);
}
char* realpath(const char* path, char* resolved) {
  return path_fault(path) == kFails ? NULL : NEXT(realpath)(path, resolved);
}
// As where a file system does not tell what an entry is, so that it has to be asked for.
struct dirent* readdir(DIR* folder) {
  if (descriptor_fault(dirfd(folder)) == kFails) return NULL;
  struct dirent* entry = NEXT(readdir)(folder);
  if (entry && *setting("CHAOS_READS")) entry->d_type = DT_UNKNOWN;
  return entry;
}
void* mmap(void* at, size_t size, int rights, int flags, int fd, off_t offset) {
  if (fd >= 0 && descriptor_fault(fd) == kFails) return MAP_FAILED;
  return NEXT(mmap)(at, size, rights, flags, fd, offset);
}

static long clock_error(void) {
  static atomic_long looks;
  const char* clock = setting("CHAOS_CLOCK");
  if (strcmp(clock, "back") == 0) return -3600 * ++looks;
  return strcmp(clock, "forth") == 0 ? 3600 * ++looks : atol(clock);
}
int clock_gettime(clockid_t clock, struct timespec* now) {
  int status = NEXT(clock_gettime)(clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec += clock_error();
  return status;
}
time_t time(time_t* now) {
  time_t seconds = NEXT(time)(NULL) + clock_error();
  if (now) *now = seconds;
  return seconds;
}

static int open_next(const char* symbol, const char* path, int flags, mode_t mode) {
  if (flags & O_CREAT ? fails() : path_fault(path) == kFails) return -1;
  return ((int (*)(const char*, int, ...))dlsym(RTLD_NEXT, symbol))(path, flags, mode);
}
int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
  va_end(more);
  return open_next("open", path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
  va_end(more);
  return open_next("open64", path, flags, mode);
}
// Of folders, by std::filesystem.
int openat(int at, const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
  va_end(more);
  return path_fault(path) == kFails ? -1 : NEXT(openat)(at, path, flags, mode);
}
