/* What the wheel's libraries and programs use of glibc and what has changed since 2.28, by what every glibc has. They are compiled with
   this machine's headers, and linked with an older system's C library (older_system.sh) and with this file: what it does not define
   and the older library does not have is an error of the linker. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* New versions of 2.29, which differ in how errors are reported. */
#define FIRST_VERSION(name) __asm__(".symver first_" #name "," #name "@GLIBC_2.2.5")
#define ONE(name)               \
  FIRST_VERSION(name);          \
  double first_##name(double x); \
  HIDDEN double name(double x) { return first_##name(x); }
ONE(exp)
ONE(exp2)
ONE(log)
ONE(log2)
FIRST_VERSION(pow);
double first_pow(double x, double y);
HIDDEN double pow(double x, double y) { return first_pow(x, y); }

/* Functions since 2.33; before that the headers had them. */
int __xstat(int version, const char* path, struct stat* found);
int __lxstat(int version, const char* path, struct stat* found);
int __fxstat(int version, int file, struct stat* found);
int __fxstatat(int version, int folder, const char* path, struct stat* found, int flags);
enum { kStatVersion = 1 };
HIDDEN int stat(const char* path, struct stat* found) { return __xstat(kStatVersion, path, found); }
HIDDEN int lstat(const char* path, struct stat* found) { return __lxstat(kStatVersion, path, found); }
HIDDEN int fstat(int file, struct stat* found) { return __fxstat(kStatVersion, file, found); }
HIDDEN int fstatat(int folder, const char* path, struct stat* found, int flags) {
  return __fxstatat(kStatVersion, folder, path, found, flags);
}

/* Since 2.32: whether there is one thread. Never so, for libraries. */
HIDDEN char __libc_single_threaded = 0;

/* Since 2.36: what std::random_device reads. */
HIDDEN uint32_t arc4random(void) {
  uint32_t number;
  if (getentropy(&number, sizeof number) != 0) abort();
  return number;
}

/* Since 2.30: a deadline by another clock than the wall's; the wall's clock may jump meanwhile, as it might before. */
HIDDEN int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const struct timespec* until) {
  struct timespec here, wall;
  clock_gettime(clock, &here);
  clock_gettime(CLOCK_REALTIME, &wall);
  wall.tv_sec += until->tv_sec - here.tv_sec;
  wall.tv_nsec += until->tv_nsec - here.tv_nsec;
  if (wall.tv_nsec < 0) wall.tv_nsec += 1000000000, --wall.tv_sec;
  if (wall.tv_nsec >= 1000000000) wall.tv_nsec -= 1000000000, ++wall.tv_sec;
  return pthread_cond_timedwait(condition, mutex, &wall);
}
