/* Makes the k-th call of a kind of file operation fail, for programs that preload this library.

   FAIL_CALL   open, write, fsync, rename, mkdir or read: the calls that count
   FAIL_AT     the number, from 1 on, of the first call that fails; all that follow fail as well if FAIL_ON is set
   FAIL_ERRNO  the error number
   FAIL_UNDER  only files below this folder count; those of an open file are looked up by its descriptor
   FAIL_KILL   if set, the process is killed instead
   FAIL_COUNT  a file that is given the third letter of every call of every kind; then none fails

   Calls count from the moment on when the environment variable FAIL_NOW is set, in whichever process that happens. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int calls = 0;

static int is_below(const char *path) {
    const char *folder = getenv("FAIL_UNDER");
    return folder == NULL || (path != NULL && strncmp(path, folder, strlen(folder)) == 0);
}

/* Whether a call of this kind on this file fails. */
static int fails(const char *kind, const char *path) {
    const char *wanted = getenv("FAIL_CALL"), *at = getenv("FAIL_AT"), *count = getenv("FAIL_COUNT");
    if (getenv("FAIL_NOW") == NULL || !is_below(path)) return 0;
    if (count != NULL) {
        int file = REAL(open)(count, O_WRONLY | O_APPEND | O_CREAT, 0600);
        if (file >= 0) { if (REAL(write)(file, kind + 2, 1)) {} REAL(close)(file); }
        return 0;
    }
    if (wanted == NULL || at == NULL || strcmp(wanted, kind) != 0) return 0;
    calls++;
    if (calls < atoi(at) || (calls > atoi(at) && getenv("FAIL_ON") == NULL)) return 0;
    if (getenv("FAIL_KILL") != NULL) kill(getpid(), SIGKILL);
    errno = atoi(getenv("FAIL_ERRNO"));
    return 1;
}

static int fails_on(const char *kind, int file) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = REAL(readlink)(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    return fails(kind, path);
}

#define OPEN(name)                                                                                       \
    int name(const char *path, int flags, ...) {                                                         \
        va_list more; va_start(more, flags); mode_t mode = va_arg(more, mode_t); va_end(more);           \
        if (fails("open", path)) return -1;                                                              \
        return REAL(name)(path, flags, mode);                                                            \
    }
OPEN(open)
OPEN(open64)

FILE *fopen(const char *path, const char *mode) { return fails("open", path) ? NULL : REAL(fopen)(path, mode); }
FILE *fopen64(const char *path, const char *mode) { return fails("open", path) ? NULL : REAL(fopen64)(path, mode); }

ssize_t write(int file, const void *data, size_t size) {
    return fails_on("write", file) ? -1 : REAL(write)(file, data, size);
}
ssize_t writev(int file, const struct iovec *parts, int count) {
    return fails_on("write", file) ? -1 : REAL(writev)(file, parts, count);
}
ssize_t read(int file, void *data, size_t size) { return fails_on("read", file) ? -1 : REAL(read)(file, data, size); }
int fsync(int file) { return fails_on("fsync", file) ? -1 : REAL(fsync)(file); }
int rename(const char *from, const char *to) { return fails("rename", from) ? -1 : REAL(rename)(from, to); }
int mkdir(const char *path, mode_t mode) { return fails("mkdir", path) ? -1 : REAL(mkdir)(path, mode); }
