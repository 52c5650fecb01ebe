//===- Cpu.cpp - Does this CPU have what the program needs? ---------------------------------===//
//
// Without this check a program compiled for another machine dies of SIGILL somewhere in its first
// step.
//
// The table holds every extension whose instructions the code generator may pick by itself. LLVM's
// list for a CPU also names tuning hints and instructions that only intrinsics or the system use
// ("rdpru", "sahf", "wbnoinvd", "fast-shld-rotate"); names that are not in the table are ignored
// for that reason.
//
//===----------------------------------------------------------------------------------------===//
#include "runtime/core/Error.h"
#include "runtime/core/Program.h"

#include <fmt/format.h>

#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

using namespace descent;

#if defined(__x86_64__)
namespace {
struct Feature {
  const char *name; // As LLVM spells it.
  bool (*present)();
};
} // namespace

// The builtin asks both the CPU and the system (XGETBV: are the wide registers saved?).
#define FEATURE(llvmName, gccName)                                                                 \
  {                                                                                                \
    llvmName, [] { return __builtin_cpu_supports(gccName) != 0; }                                  \
  }

static const Feature features[] = {
    FEATURE("sse3", "sse3"),
    FEATURE("ssse3", "ssse3"),
    FEATURE("sse4.1", "sse4.1"),
    FEATURE("sse4.2", "sse4.2"),
    FEATURE("sse4a", "sse4a"),
    FEATURE("popcnt", "popcnt"),
    FEATURE("lzcnt", "lzcnt"),
    FEATURE("movbe", "movbe"),
    FEATURE("aes", "aes"),
    FEATURE("pclmul", "pclmul"),
    FEATURE("gfni", "gfni"),
    FEATURE("vaes", "vaes"),
    FEATURE("vpclmulqdq", "vpclmulqdq"),
    FEATURE("bmi", "bmi"),
    FEATURE("bmi2", "bmi2"),
    FEATURE("adx", "adx"),
    FEATURE("avx", "avx"),
    FEATURE("avx2", "avx2"),
    FEATURE("fma", "fma"),
    FEATURE("fma4", "fma4"),
    FEATURE("xop", "xop"),
    FEATURE("tbm", "tbm"),
    FEATURE("f16c", "f16c"),
    FEATURE("avxvnni", "avxvnni"),
    FEATURE("avx512f", "avx512f"),
    FEATURE("avx512cd", "avx512cd"),
    FEATURE("avx512bw", "avx512bw"),
    FEATURE("avx512dq", "avx512dq"),
    FEATURE("avx512vl", "avx512vl"),
    FEATURE("avx512ifma", "avx512ifma"),
    FEATURE("avx512vbmi", "avx512vbmi"),
    FEATURE("avx512vbmi2", "avx512vbmi2"),
    FEATURE("avx512vnni", "avx512vnni"),
    FEATURE("avx512bitalg", "avx512bitalg"),
    FEATURE("avx512vpopcntdq", "avx512vpopcntdq"),
    FEATURE("avx512vp2intersect", "avx512vp2intersect"),
    FEATURE("avx512bf16", "avx512bf16"),
    FEATURE("avx512fp16", "avx512fp16"),
    FEATURE("amx-tile", "amx-tile"),
    FEATURE("amx-bf16", "amx-bf16"),
    FEATURE("amx-int8", "amx-int8"),
};
#undef FEATURE

static bool known(std::string_view name, bool &present) {
  for (const Feature &feature : features)
    if (name == feature.name) {
      present = feature.present();
      return true;
    }
  return false;
}

std::string descent::cpuName() {
  unsigned words[12];
  for (unsigned leaf = 0; leaf < 3; ++leaf)
    if (!__get_cpuid(0x80000002 + leaf, &words[4 * leaf], &words[4 * leaf + 1],
                     &words[4 * leaf + 2], &words[4 * leaf + 3]))
      return "this CPU";
  char text[sizeof words + 1] = {};
  std::memcpy(text, words, sizeof words);
  std::string name = text;
  name.erase(0, name.find_first_not_of(' '));
  while (!name.empty() && name.back() == ' ')
    name.pop_back();
  return name.empty() ? "this CPU" : name;
}
#else
static bool known(std::string_view, bool &) { return false; }

std::string descent::cpuName() { return "this CPU"; }
#endif

std::string descent::missingCpuFeature(std::string_view list) {
  while (!list.empty()) {
    size_t comma = list.find(',');
    std::string_view name = list.substr(0, comma);
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    // LLVM also writes "+avx2" for what is needed and "-avx2" for what must not be used.
    if (!name.empty() && name.front() == '-')
      continue;
    if (!name.empty() && name.front() == '+')
      name.remove_prefix(1);
    bool present = false;
    if (known(name, present) && !present)
      return std::string(name);
  }
  return {};
}

void descent::checkCpu(const descent_program &program) {
  std::string missing = missingCpuFeature(program.cpu_features ? program.cpu_features : "");
  if (!missing.empty())
    throw Error(fmt::format("this program was compiled for CPU '{}' and needs {}, which {} lacks; "
                            "compile it on this machine, or "
                            "with `descent compile --cpu NAME` for a CPU whose instructions this "
                            "one has (x86-64-v3 means AVX2)",
                            program.cpu ? program.cpu : "?", missing, cpuName()));
}
