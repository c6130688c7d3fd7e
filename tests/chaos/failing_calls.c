/* Lets the n-th call that changes the disk fail, whoever makes it: Python, Rust or C. Loaded with LD_PRELOAD.
   chaos_arm(n, error, forever) begins to count; 0 as n only counts. chaos_done() ends it and gives the count. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_int armed, done;
static int at, code, forever;
static char failed[32];

void chaos_arm(int n, int error, int always) { at = n, code = error, forever = always, done = 0, failed[0] = 0, armed = 1; }
int chaos_done(void) { armed = 0; return done; }
const char *chaos_failed(void) { return failed; }

static int fails(const char *name) {
    if (!armed) return 0;
    int now = ++done;
    if (!at || (now != at && !(forever && now > at))) return 0;
    if (!failed[0]) strncpy(failed, name, sizeof failed - 1);
    errno = code;
    return 1;
}

/* Pipes, sockets and terminals are no disk. */
static int on_disk(int handle) {
    struct stat status;
    return armed && fstat(handle, &status) == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
}

static int writes(const char *path, int flags) {
    int device = !strncmp(path, "/dev/", 5) && strncmp(path, "/dev/shm/", 9);
    return armed && (flags & (O_WRONLY | O_RDWR | O_CREAT)) && !device && strncmp(path, "/proc/", 6);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define OPEN(name)                                                                                                     \
    int name(const char *path, int flags, ...) {                                                                       \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        mode_t mode = va_arg(more, mode_t);                                                                            \
        va_end(more);                                                                                                  \
        return writes(path, flags) && fails("open") ? -1 : NEXT(name)(path, flags, mode);                              \
    }
#define OPEN_AT(name)                                                                                                  \
    int name(int folder, const char *path, int flags, ...) {                                                           \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        mode_t mode = va_arg(more, mode_t);                                                                            \
        va_end(more);                                                                                                  \
        return writes(path, flags) && fails("open") ? -1 : NEXT(name)(folder, path, flags, mode);                      \
    }

OPEN(open)
OPEN(open64)
OPEN_AT(openat)
OPEN_AT(openat64)

ssize_t write(int handle, const void *data, size_t size) {
    return on_disk(handle) && fails("write") ? -1 : NEXT(write)(handle, data, size);
}
ssize_t pwrite(int handle, const void *data, size_t size, off_t place) {
    return on_disk(handle) && fails("write") ? -1 : NEXT(pwrite)(handle, data, size, place);
}
ssize_t pwrite64(int handle, const void *data, size_t size, off64_t place) {
    return on_disk(handle) && fails("write") ? -1 : NEXT(pwrite64)(handle, data, size, place);
}
ssize_t writev(int handle, const struct iovec *parts, int count) {
    return on_disk(handle) && fails("write") ? -1 : NEXT(writev)(handle, parts, count);
}
ssize_t sendfile(int to, int from, off_t *place, size_t size) {
    ssize_t (*next)(int, int, off_t *, size_t) = dlsym(RTLD_NEXT, "sendfile");
    return on_disk(to) && fails("write") ? -1 : next(to, from, place, size);
}
ssize_t sendfile64(int to, int from, off64_t *place, size_t size) {
    ssize_t (*next)(int, int, off64_t *, size_t) = dlsym(RTLD_NEXT, "sendfile64");
    return on_disk(to) && fails("write") ? -1 : next(to, from, place, size);
}
int fsync(int handle) { return on_disk(handle) && fails("fsync") ? -1 : NEXT(fsync)(handle); }
int fdatasync(int handle) { return on_disk(handle) && fails("fsync") ? -1 : NEXT(fdatasync)(handle); }
int ftruncate64(int handle, off64_t size) { return on_disk(handle) && fails("truncate") ? -1 : NEXT(ftruncate64)(handle, size); }
int rename(const char *from, const char *to) { return fails("rename") ? -1 : NEXT(rename)(from, to); }
int renameat(int a, const char *from, int b, const char *to) { return fails("rename") ? -1 : NEXT(renameat)(a, from, b, to); }
int mkdir(const char *path, mode_t mode) { return fails("mkdir") ? -1 : NEXT(mkdir)(path, mode); }
