/* A stand-in for a profiler: writes the name of every range pushed to the file named by NANQUEST_NVTX_LOG.
 * Loaded by the NVTX headers themselves through NVTX_INJECTION64_PATH. */
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>

static FILE* log_file;
static int depth;

static int on_push(const char* message) {
  fprintf(log_file, "%d %s\n", depth, message);
  fflush(log_file);
  return depth++;
}

static int on_pop(void) {
  return --depth;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const char* path = getenv("NANQUEST_NVTX_LOG");
  const NvtxExportTableCallbacks* callbacks = (const NvtxExportTableCallbacks*)get_table(NVTX_ETID_CALLBACKS);
  NvtxFunctionTable table = 0;
  unsigned int size = 0;
  log_file = path ? fopen(path, "a") : 0;
  if (!log_file || !callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size))
    return 0;
  if (size <= NVTX_CBID_CORE_RangePop) return 0;
  *table[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)on_push;
  *table[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)on_pop;
  return 1;
}
