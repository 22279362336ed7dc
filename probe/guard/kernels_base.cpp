#define NANQUEST_ISA base
#include "probe/guard/kernels.inl"
