// skytrain/model/plugin_crash.h
//
// A crash in a user's plug-in says whose it is. Without it all that is left of a worker is a signal's number.
//
// On SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT a line "signal 11 in plug-in libmine.so (model MyNet)" goes to stderr
// when the thread is inside a call of the plug-in (InPlugin), or when the instruction that failed lies in the library
// (its backward functions, its own threads). Then the signal takes its old course.

#pragma once
#include <string>

namespace skytrain::model {

// Who is to be named. Never freed once it is watched: a signal handler reads it.
struct PluginIdentity {
  std::string library;  // file name
  std::string model;
  // Where the library's code lies in memory; 0: not known.
  unsigned long code_begin = 0, code_end = 0;
  PluginIdentity* next = nullptr;  // of those that are watched
};

// Installs the handlers (once), and names `library`'s code from now on. symbol: any address inside the library.
// Returns what to give to InPlugin; equal arguments give the same one. Thread-safe.
const PluginIdentity* watch_plugin(const std::string& library, const std::string& model, const void* symbol);

// The calling thread is inside the plug-in while alive. Gives the thread a stack for signals, so that an endless
// recursion is named too.
class InPlugin {
 public:
  explicit InPlugin(const PluginIdentity* identity);
  ~InPlugin();
  InPlugin(const InPlugin&) = delete;
  InPlugin& operator=(const InPlugin&) = delete;

 private:
  const PluginIdentity* outer_;
};

}  // namespace skytrain::model
