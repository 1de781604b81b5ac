/* The wall clock of one real process: preloaded into it, this adds to the machine's clock the milliseconds that the file
 * LOCKSTORM_CLOCK holds, eight bytes in the machine's own order. The monotonic clock stays as it is, so that a change of the file
 * is what a step of the wall clock is to the process. Waits until a wall-clock time are not shifted: Redis has none.
 *
 * It asks the kernel. To look up the C library's own functions (dlsym) allocates, and jemalloc asks for the time while it
 * allocates: without end. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(long) == 8, "a kernel of 32 bits has another timespec");

static const int64_t none = 0;
static const volatile int64_t *ahead = &none;

__attribute__((constructor)) static void open_clock(void) {
    const char *path = getenv("LOCKSTORM_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *seen = file < 0 ? MAP_FAILED : mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, file, 0);
    /* A process with the machine's clock would pass a test of steps that never came. */
    if (seen == MAP_FAILED) _exit(96);
    ahead = seen;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        const int64_t second = INT64_C(1000000000);
        int64_t nanos = now->tv_sec * second + now->tv_nsec + *ahead * 1000000;
        now->tv_sec = nanos / second;
        now->tv_nsec = nanos % second;
    }
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    (void)zone;
    int failed = clock_gettime(CLOCK_REALTIME, &precise);
    if (!failed) {
        now->tv_sec = precise.tv_sec;
        now->tv_usec = precise.tv_nsec / 1000;
    }
    return failed;
}

time_t time(time_t *into) {
    struct timespec precise;
    if (clock_gettime(CLOCK_REALTIME, &precise)) return -1;
    if (into) *into = precise.tv_sec;
    return precise.tv_sec;
}
