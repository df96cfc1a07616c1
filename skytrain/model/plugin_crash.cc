#include "skytrain/model/plugin_crash.h"

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

namespace skytrain::model {
namespace {

constexpr std::array kSignals = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

// Both are read by the handler.
constinit thread_local const PluginIdentity* inside = nullptr;
constinit std::atomic<PluginIdentity*> watched{nullptr};

std::array<struct sigaction, kSignals.size()> earlier;  // written before the handler is there

unsigned long instruction_of(const void* context) {
  [[maybe_unused]] const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<unsigned long>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return machine.pc;
#else
  return 0;
#endif
}

const PluginIdentity* owner_of(unsigned long instruction) {
  for (const PluginIdentity* p = watched.load(std::memory_order_acquire); p != nullptr; p = p->next)
    if (instruction >= p->code_begin && instruction < p->code_end) return p;
  return nullptr;
}

// A line for write(2): a handler may not allocate, nor use stdio.
class Line {
 public:
  void add(const char* text) {
    while (*text != '\0' && used_ < sizeof text_) text_[used_++] = *text++;
  }
  void add(int number) {
    char digits[12];
    size_t at = sizeof digits;
    digits[--at] = '\0';
    do digits[--at] = char('0' + number % 10);
    while ((number /= 10) > 0);
    add(digits + at);
  }
  void write_to(int descriptor) const { [[maybe_unused]] const ssize_t written = ::write(descriptor, text_, used_); }

 private:
  char text_[512];
  size_t used_ = 0;
};

void on_signal(int number, siginfo_t*, void* context) {
  const PluginIdentity* const plugin = inside != nullptr ? inside : owner_of(instruction_of(context));
  if (plugin != nullptr) {
    Line line;
    line.add("signal ");
    line.add(number);
    line.add(" in plug-in ");
    line.add(plugin->library.c_str());
    line.add(" (model ");
    line.add(plugin->model.c_str());
    line.add(")\n");
    line.write_to(STDERR_FILENO);
  }
  for (size_t i = 0; i < kSignals.size(); ++i)
    if (kSignals[i] == number) sigaction(number, &earlier[i], nullptr);
  raise(number);  // blocked until this handler returns
}

void install_handlers() {
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], nullptr, &earlier[i]);
  for (const int number : kSignals) sigaction(number, &action, nullptr);
}

// The calling thread's, if it had none.
class SignalStack {
 public:
  SignalStack() {
    stack_t now{};
    if (sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) return;
    memory_ = std::make_unique<char[]>(kBytes);
    stack_t ours{};
    ours.ss_sp = memory_.get();
    ours.ss_size = kBytes;
    sigaltstack(&ours, nullptr);
  }
  ~SignalStack() {
    if (memory_ == nullptr) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  static constexpr size_t kBytes = 64 << 10;
  std::unique_ptr<char[]> memory_;
};

void find_code(PluginIdentity& identity, const void* symbol) {
  struct Search {
    unsigned long address;
    PluginIdentity* identity;
  } search{reinterpret_cast<unsigned long>(symbol), &identity};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* context) {
        auto& wanted = *static_cast<Search*>(context);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
          const unsigned long begin = info->dlpi_addr + segment.p_vaddr, end = begin + segment.p_memsz;
          if (wanted.address < begin || wanted.address >= end) continue;
          wanted.identity->code_begin = begin;
          wanted.identity->code_end = end;
          return 1;
        }
        return 0;
      },
      &search);
}

}  // namespace

const PluginIdentity* watch_plugin(const std::string& library, const std::string& model, const void* symbol) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  auto identity = std::make_unique<PluginIdentity>();
  identity->library = library;
  identity->model = model;
  find_code(*identity, symbol);
  PluginIdentity* const first = watched.load(std::memory_order_relaxed);
  for (const PluginIdentity* p = first; p != nullptr; p = p->next)
    if (p->library == library && p->model == model && p->code_begin == identity->code_begin) return p;
  if (first == nullptr) install_handlers();
  identity->next = first;
  watched.store(identity.get(), std::memory_order_release);
  return identity.release();
}

InPlugin::InPlugin(const PluginIdentity* identity) {
  static thread_local const SignalStack stack;
  outer_ = std::exchange(inside, identity);
}

InPlugin::~InPlugin() { inside = outer_; }

}  // namespace skytrain::model
