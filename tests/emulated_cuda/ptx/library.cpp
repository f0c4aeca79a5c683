#include "library.h"

#include <elf.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>

namespace keel::emulated::ptx {
namespace {

// What the program's own table says of a function: the source file where only that one has it.
struct Symbol {
  std::string file, name;
};

std::map<std::uintptr_t, Symbol> read_symbols() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(file)), {});
  std::uintptr_t base = 0;  // where the loader has put the program, the first in its list
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        *static_cast<std::uintptr_t*>(to) = info->dlpi_addr;
        return 1;
      },
      &base);
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(all.data());
  const auto* sections = reinterpret_cast<const ElfW(Shdr)*>(all.data() + header->e_shoff);
  std::map<std::uintptr_t, Symbol> result;
  for (int s = 0; s < header->e_shnum; ++s) {
    if (sections[s].sh_type != SHT_SYMTAB) continue;
    const char* names = all.data() + sections[sections[s].sh_link].sh_offset;
    const auto* symbols = reinterpret_cast<const ElfW(Sym)*>(all.data() + sections[s].sh_offset);
    std::string source;
    for (std::size_t i = 0; i < sections[s].sh_size / sizeof(ElfW(Sym)); ++i) {
      const ElfW(Sym)& symbol = symbols[i];
      const int type = symbol.st_info & 15;
      const bool local = symbol.st_info >> 4 == STB_LOCAL;
      if (type == STT_FILE) source = names + symbol.st_name;
      if (type == STT_FUNC)
        result[base + symbol.st_value] = {local ? source : "", names + symbol.st_name};
    }
  }
  return result;
}

class Library {
 public:
  Library() {
    const char* folder = std::getenv("KEEL_EMULATED_PTX");
    if (!folder || !*folder) return;
    std::error_code problem;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, problem))
      if (entry.path().extension() == ".ptx") add(entry.path());
    if (kernels_.empty()) fail(folder, 0, "KEEL_EMULATED_PTX: no kernels here");
    symbols_ = read_symbols();
    std::atexit([] {
      const Coverage all = ptx::coverage();
      std::printf("nvcc's code: %zu of %zu kernels have run\n", all.run, all.kernels);
      if (const char* list = std::getenv("KEEL_EMULATED_PTX_LEFT"); list && *list) {
        std::ofstream file(list);
        for (const std::string& name : all.left) file << name << '\n';
      }
    });
  }

  const Kernel* find(const void* host_kernel) {
    if (kernels_.empty()) return nullptr;
    const std::lock_guard<std::mutex> turn(mutex_);
    const auto known = found_.find(host_kernel);
    if (known != found_.end()) return known->second;
    const auto symbol = symbols_.find(reinterpret_cast<std::uintptr_t>(host_kernel));
    if (symbol == symbols_.end()) fail("", 0, "a kernel without a name");
    const auto& [file, name] = symbol->second;
    const bool of_test = !file.empty() && std::filesystem::path(file).extension() != ".cu";
    if (of_test) return found_[host_kernel] = nullptr;
    const auto entry = kernels_.find({std::filesystem::path(file).stem().string(), name});
    if (entry == kernels_.end()) fail(file, 0, "nvcc's code lacks " + name);
    Entry& it = entry->second;
    if (!it.code) it.code = std::make_unique<Kernel>(it.module->compile(it.name));
    return found_[host_kernel] = it.code.get();
  }

  Coverage coverage() const {
    Coverage result;
    for (const auto& [key, entry] : kernels_) {
      ++result.kernels;
      if (entry.code)
        ++result.run;
      else
        result.left.push_back(key.first + ": " + key.second);
    }
    return result;
  }

 private:
  struct Entry {
    const Module* module = nullptr;
    std::string name;
    std::unique_ptr<Kernel> code;
  };

  void add(const std::filesystem::path& path) {
    modules_.push_back(std::make_unique<Module>(path.string()));
    const std::filesystem::path stem = path.stem();  // "relu.ptx" or "relu.cu.ptx"
    const std::string source = stem.extension() == ".cu" ? stem.stem() : stem;
    for (const std::string& name : modules_.back()->kernels()) {
      const std::string plain = host_name(name);
      kernels_[{plain == name ? "" : source, plain}] = {modules_.back().get(), name, nullptr};
    }
  }

  std::vector<std::unique_ptr<Module>> modules_;
  std::map<std::pair<std::string, std::string>, Entry> kernels_;  // by source, if local, and name
  std::map<std::uintptr_t, Symbol> symbols_;
  std::map<const void*, const Kernel*> found_;
  mutable std::mutex mutex_;
};

Library& library() {
  static auto* it = new Library();
  return *it;
}

}  // namespace

std::string host_name(const std::string& kernel) {
  // <length>_GLOBAL__N__<hashes and the file's name>, by the file: always _GLOBAL__N_1 elsewhere.
  std::string result;
  for (std::size_t at = 0; at < kernel.size();) {
    std::size_t end = at;
    while (end < kernel.size() && kernel[end] >= '0' && kernel[end] <= '9') ++end;
    if (end > at && kernel.compare(end, 12, "_GLOBAL__N__") == 0) {
      result += "12_GLOBAL__N_1";
      at = end + std::stoul(kernel.substr(at, end - at));
    } else {
      end = std::max(end, at + 1);
      result += kernel.substr(at, end - at);
      at = end;
    }
  }
  return result;
}

const Kernel* find_kernel(const void* host_kernel) { return library().find(host_kernel); }
Coverage coverage() { return library().coverage(); }

}  // namespace keel::emulated::ptx
