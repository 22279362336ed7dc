// libnanquest_preload.so: `nanquest run` preloads it into a program that is not Python.
//
// It replaces the C library's function that starts a program, so it runs after all constructors of the
// program's libraries and before main. If the program has LibTorch, it loads the libnanquest_attach.so that
// was built for this minor version of it: from torch-<minor> in its own folder, or from that folder itself;
// every other program runs unchanged. It uses only the C library, because each child of the program loads it
// too.
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

using Main = int (*)(int, char**, char**);
using StartMain = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);

constexpr char kTorch[] = "libtorch_cpu.so";

Main program_main = nullptr;
void (*end_probe)() = nullptr;

/// One line on stderr, and to `nanquest run`: the probe is off, and why. `text` has no characters that JSON
/// must escape.
__attribute__((format(printf, 1, 2))) void give_up(const char* format, ...) {
  char text[512], path[PATH_MAX];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  (void)dprintf(STDERR_FILENO, "nanquest: %s\n", text);
  const char* folder = std::getenv("NANQUEST_REPORTS");
  if (!folder || !*folder || std::snprintf(path, sizeof(path), "%s/%d", folder, getpid()) >= PATH_MAX) return;
  if (FILE* file = std::fopen(path, "we")) {
    std::fprintf(file, "{\"off\": \"%s\"}", text);
    std::fclose(file);
  }
}

bool is_torch(const char* path) {
  const char* name = std::strrchr(path, '/');
  return std::strncmp(name ? name + 1 : path, kTorch, sizeof(kTorch) - 1) == 0;
}

/// The path of the program's LibTorch, "" if it has none.
int find_torch(dl_phdr_info* library, std::size_t, void* found) {
  if (!is_torch(library->dlpi_name)) return 0;
  *static_cast<const char**>(found) = library->dlpi_name;
  return 1;
}
const char* torch_path() {
  const char* found = "";
  dl_iterate_phdr(find_torch, &found);
  return found;
}

/// For Python, nanquest/bootstrap handles its programs itself.
bool is_python() {
  return dlsym(RTLD_DEFAULT, "Py_IsInitialized") != nullptr;
}

/// Leaves no error for the program's own dlerror().
void forget_errors() {
  (void)dlerror();
}

/// The folder of this library, without the last slash.
bool own_folder(char (&folder)[PATH_MAX]) {
  Dl_info self{};
  if (!dladdr(reinterpret_cast<void*>(&own_folder), &self) || !self.dli_fname) return false;
  const char* name = std::strrchr(self.dli_fname, '/');
  const int length = name ? int(name - self.dli_fname) : 1;
  return std::snprintf(folder, sizeof folder, "%.*s", length, name ? self.dli_fname : ".") < PATH_MAX;
}

/// What the libraries in `folder` were built for, such as "2.15.0"; "" if there are none.
void built_for(const char* folder, char (&version)[32]) {
  char path[PATH_MAX];
  version[0] = 0;
  if (std::snprintf(path, sizeof path, "%s/libnanquest_attach.version", folder) >= PATH_MAX) return;
  if (FILE* file = std::fopen(path, "re")) {
    if (std::fscanf(file, "%31s", version) != 1) version[0] = 0;
    std::fclose(file);
  }
}

void load_probe(const char* torch) {
  // The probe finds LibTorch only under exactly this name; under another name a second LibTorch would be
  // loaded.
  void* library = dlopen(kTorch, RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return give_up("the probe is off: %s is not called %s", torch, kTorch);
  using Version = std::uint64_t (*)();
  const auto version = reinterpret_cast<Version>(dlsym(library, "aoti_torch_abi_version"));
  if (!version)
    return give_up(
        "the probe needs a LibTorch that tells its version, but this program has one from before 2.9; the "
        "program runs without the probe (its LibTorch: %s)",
        torch);
  const std::uint64_t number = version();
  char minor[16], folder[PATH_MAX], beside[PATH_MAX], path[PATH_MAX], built[32];
  std::snprintf(minor, sizeof minor, "%u.%u.", unsigned(number >> 56), unsigned(number >> 48 & 255));
  const int minor_length = int(std::strlen(minor)) - 1;
  if (!own_folder(beside) ||
      std::snprintf(folder, sizeof folder, "%s/torch-%.*s", beside, minor_length, minor) >= PATH_MAX)
    return;
  built_for(folder, built);
  if (!*built) {
    std::memcpy(folder, beside, sizeof folder);
    built_for(folder, built);
  }
  if (std::strncmp(built, minor, std::strlen(minor)) != 0)
    return give_up(
        "the probe was built for LibTorch %s, but this program has %s%u; the program runs without the "
        "probe (build nanquest against %s)",
        *built ? built : "of other versions", minor, unsigned(number >> 40 & 255), torch);
  if (std::snprintf(path, sizeof path, "%s/libnanquest_attach.so", folder) >= PATH_MAX) return;
  void* probe = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!probe) return give_up("the probe is off: it can't be loaded: %s", dlerror());
  if (const auto begin = reinterpret_cast<void (*)()>(dlsym(probe, "nanquest_program_begin"))) begin();
  end_probe = reinterpret_cast<void (*)()>(dlsym(probe, "nanquest_program_end"));
}

/// The probe does not notice a library that is loaded later; this line follows at the end of the program.
void tell_of_late_torch() {
  const char* torch = torch_path();
  if (!*torch || is_python()) return;
  give_up(
      "nothing was observed: the program loaded LibTorch only while it ran (dlopen); set LD_PRELOAD=%s "
      "before "
      "nanquest run, and it is there from the start",
      torch);
}

bool is_wanted() {
  const char* attach = std::getenv("NANQUEST_ATTACH");
  if (!attach || std::strcmp(attach, "1") != 0) return false;
  const char* off = std::getenv("NANQUEST");
  return !off || (strcasecmp(off, "off") != 0 && strcasecmp(off, "false") != 0 &&
                  strcasecmp(off, "no") != 0 && std::strcmp(off, "0") != 0);
}

int start(int argc, char** argv, char** environment) {
  if (is_wanted() && !is_python()) {
    const char* torch = torch_path();
    if (*torch)
      load_probe(torch);
    else
      (void)std::atexit(tell_of_late_torch);
    forget_errors();
  }
  const int code = program_main(argc, argv, environment);
  if (end_probe) end_probe();  // before objects of the program and of LibTorch are destroyed
  return code;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int __libc_start_main(Main main, int argc, char** argv,
                                                                        void (*init)(), void (*fini)(),
                                                                        void (*loader_fini)(),
                                                                        void* stack_end) {
  program_main = main;
  const auto own = reinterpret_cast<StartMain>(dlsym(RTLD_NEXT, "__libc_start_main"));
  return own(start, argc, argv, init, fini, loader_fini, stack_end);
}
