/* For tests, by LD_PRELOAD: the disk as it is on a bad day.
 *
 * SKYTRAIN_FAULT=ACTION:CALL:N:PART: the N-th CALL (open, of a file to write; read, opening one to read; write, fsync, rename, mkdir) on a path that contains PART
 *   kill       ends the process with SIGKILL, before the call
 *   killafter  the same after it
 *   ERRNO      (a number) makes it fail, and all that follow
 *   once-ERRNO makes it alone fail
 * SKYTRAIN_SLOW=BYTES:PART: writes to such paths take as long as a disk of BYTES a second.
 */
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
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static atomic_long calls;

struct fault {
  char action[16], call[16], part[256];
  long n;
};

static int read_fault(struct fault* fault) {
  const char* text = getenv("SKYTRAIN_FAULT");
  return text != NULL && sscanf(text, "%15[^:]:%15[^:]:%ld:%255s", fault->action, fault->call, &fault->n, fault->part) == 4;
}

static void die(void) {
  kill(getpid(), SIGKILL);
  pause();
}

/* 0: go on; else the errno to fail with. *after: the process ends when the call is done. */
static int meet(const char* call, const char* path, int* after) {
  struct fault fault;
  *after = 0;
  if (path == NULL || !read_fault(&fault) || strcmp(call, fault.call) != 0 || strstr(path, fault.part) == NULL) return 0;
  const long n = atomic_fetch_add(&calls, 1) + 1;
  if (strcmp(fault.action, "kill") == 0) {
    if (n == fault.n) die();
    return 0;
  }
  if (strcmp(fault.action, "killafter") == 0) {
    *after = n == fault.n;
    return 0;
  }
  if (strncmp(fault.action, "once-", 5) == 0) return n == fault.n ? atoi(fault.action + 5) : 0;
  return n >= fault.n ? atoi(fault.action) : 0;
}

static const char* path_of(int fd, char* buffer, size_t size) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, buffer, size - 1);
  if (length < 0) return NULL;
  buffer[length] = 0;
  return buffer;
}

#define REAL(type, name) ((type)dlsym(RTLD_NEXT, name))

static int open_any(const char* name, const char* path, int flags, mode_t mode) {
  int after = 0, error = meet((flags & O_CREAT) != 0 ? "open" : "read", path, &after);
  if (error != 0) {
    errno = error;
    return -1;
  }
  const int fd = REAL(int (*)(const char*, int, ...), name)(path, flags, mode);
  if (after) die();
  return fd;
}

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : 0;
  va_end(list);
  return open_any("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : 0;
  va_end(list);
  return open_any("open64", path, flags, mode);
}

static void be_slow(const char* path, size_t bytes) {
  const char* text = getenv("SKYTRAIN_SLOW");
  double rate;
  char part[256];
  if (path == NULL || text == NULL || sscanf(text, "%lf:%255s", &rate, part) != 2 || strstr(path, part) == NULL) return;
  const double seconds = (double)bytes / rate;
  const struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&time, NULL);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  char buffer[512];
  int after = 0, error = 0;
  if (fd > 2 && (getenv("SKYTRAIN_FAULT") != NULL || getenv("SKYTRAIN_SLOW") != NULL)) {
    const char* path = path_of(fd, buffer, sizeof buffer);
    error = meet("write", path, &after);
    be_slow(path, size);
  }
  if (error != 0) {
    errno = error;
    return -1;
  }
  /* A process that dies while it writes has written a part. */
  const ssize_t written = REAL(ssize_t(*)(int, const void*, size_t), "write")(fd, bytes, after ? size / 2 : size);
  if (after) die();
  return written;
}

int fsync(int fd) {
  char buffer[512];
  int after = 0;
  const int error = meet("fsync", path_of(fd, buffer, sizeof buffer), &after);
  if (error != 0) {
    errno = error;
    return -1;
  }
  const int result = REAL(int (*)(int), "fsync")(fd);
  if (after) die();
  return result;
}

int rename(const char* from, const char* to) {
  int after = 0;
  const int error = meet("rename", to, &after);
  if (error != 0) {
    errno = error;
    return -1;
  }
  const int result = REAL(int (*)(const char*, const char*), "rename")(from, to);
  if (after) die();
  return result;
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  int after = 0;
  const int error = meet("rename", to, &after);
  if (error != 0) {
    errno = error;
    return -1;
  }
  const int result = REAL(int (*)(int, const char*, int, const char*, unsigned), "renameat2")(from_folder, from, to_folder, to, flags);
  if (after) die();
  return result;
}

int mkdir(const char* path, mode_t mode) {
  int after = 0;
  const int error = meet("mkdir", path, &after);
  if (error != 0) {
    errno = error;
    return -1;
  }
  const int result = REAL(int (*)(const char*, mode_t), "mkdir")(path, mode);
  if (after) die();
  return result;
}
