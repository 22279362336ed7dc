// A program that has no LibTorch, or one that it does nothing with, or loads one while it runs: what it is
// linked with, and its arguments, say which. It ends with the code that its first argument is.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef HOLDS_TORCH
const char* volatile inside = "N5torch8autograd6EngineE";
#endif

int main(int argc, char** argv) {
#ifdef HOLDS_TORCH
  (void)inside;
#endif
  puts("it ran");
#ifndef LINKED_STATICALLY
  if (argc > 2 && !dlopen(argv[2], RTLD_NOW)) return 99;
#endif
  return argc > 1 ? atoi(argv[1]) : 0;
}
