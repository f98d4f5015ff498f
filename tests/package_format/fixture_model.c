// A library that looks like a compiled model from outside: exports, imports, weights. Nothing of it is ever called.
//
// FIXTURE_MINOR: the version of torch whose exports it has (2.MINOR). FIXTURE_SECTION: where the weights are.
// FIXTURE_PLACEHOLDER: 16 bytes that announce appended weights, instead of 256 bytes 0, 1, 2...

#define EXPORT(name) \
  int name(void) { return 0; }

EXPORT(AOTInductorModelContainerCreateWithDevice)
EXPORT(AOTInductorModelContainerDelete)
#if FIXTURE_MINOR >= 6
EXPORT(AOTInductorModelContainerGetConstantType)
#endif
#if FIXTURE_MINOR >= 7
EXPORT(AOTInductorModelContainerRunSingleThreaded)
#endif
#if FIXTURE_MINOR >= 8
EXPORT(AOTInductorModelContainerExtractConstantsMap)
#endif
#if FIXTURE_MINOR >= 10
EXPORT(AOTInductorModelContainerGetConstantsBlobSize)
#endif
#if FIXTURE_MINOR >= 13
EXPORT(AOTInductorGetLastError)
#endif
#if FIXTURE_MINOR >= 14
EXPORT(AOTInductorModelContainerCreateWithExternalConstants)
#endif
#if FIXTURE_MINOR >= 15
EXPORT(AOTInductorModelContainerSetUseStreamAffinity)
#endif

int aoti_torch_cpu_mm_out(void*, void*, void*);
int aoti_torch_get_dtype(void*, int*);
int optional_symbol(void) __attribute__((weak));

const char* fixture_specs(int out) {
  static const char in_spec[] =
      "[1, {\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": \"builtins.tuple\", "
      "\"context\": \"null\", \"children_spec\": [{\"type\": null, \"context\": null, \"children_spec\": []}]}, "
      "{\"type\": \"builtins.dict\", \"context\": \"[]\", \"children_spec\": []}]}]";
  static const char out_spec[] = "[1, {\"type\": null, \"context\": null, \"children_spec\": []}]";
  return out ? out_spec : in_spec;
}

int fixture_calls(void) {
  if (optional_symbol) return optional_symbol();
  return aoti_torch_cpu_mm_out(0, 0, 0) + aoti_torch_get_dtype(0, 0);
}

__asm__(
    ".section " FIXTURE_SECTION
    "\n"
    ".balign 64\n"
    ".globl _binary_constants_bin_start\n"
    "_binary_constants_bin_start:\n"
#ifdef FIXTURE_PLACEHOLDER
    ".quad 264, 0x1122334455667788\n"
#else
    ".set i, 0\n"
    ".rept 256\n"
    ".byte i\n"
    ".set i, i + 1\n"
    ".endr\n"
#endif
    ".globl _binary_constants_bin_end\n"
    "_binary_constants_bin_end:\n"
    ".text\n");
