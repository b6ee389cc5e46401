// For LD_PRELOAD: counts the calls by which a program changes files, and at one of them kills the program or lets the
// call fail. CHAOS_AT: the number of that call, from 1; CHAOS_FAULT: KILL, EIO or ENOSPC; CHAOS_COUNT: a file that gets
// the count of all calls at the end.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long calls;

static const char* setting(const char* name) {
  const char* value = getenv(name);
  return value ? value : "";
}

/// Whether the call under way is to fail; errno says how.
static int fails(void) {
  if (atomic_fetch_add(&calls, 1) + 1 != atol(setting("CHAOS_AT"))) return 0;
  const char* fault = setting("CHAOS_FAULT");
  if (strcmp(fault, "KILL") == 0) kill(getpid(), SIGKILL);
  errno = strcmp(fault, "ENOSPC") == 0 ? ENOSPC : EIO;
  return 1;
}

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
int ftruncate(int fd, off_t size) { return fails() ? -1 : NEXT(ftruncate)(fd, size); }
int ftruncate64(int fd, off64_t size) { return fails() ? -1 : NEXT(ftruncate64)(fd, size); }
int rename(const char* from, const char* to) { return fails() ? -1 : NEXT(rename)(from, to); }
int renameat2(int a, const char* from, int b, const char* to, unsigned flags) {
  return fails() ? -1 : NEXT(renameat2)(a, from, b, to, flags);
}
int unlink(const char* path) { return fails() ? -1 : NEXT(unlink)(path); }
int unlinkat(int folder, const char* path, int flags) { return fails() ? -1 : NEXT(unlinkat)(folder, path, flags); }
int remove(const char* path) { return fails() ? -1 : NEXT(remove)(path); }
int mkdir(const char* path, mode_t mode) { return fails() ? -1 : NEXT(mkdir)(path, mode); }
int symlink(const char* target, const char* path) { return fails() ? -1 : NEXT(symlink)(target, path); }

static int open_next(const char* symbol, const char* path, int flags, mode_t mode) {
  if ((flags & O_CREAT) && fails()) return -1;
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
