// skytrain/base/process.h
//
// Child processes: between fork and exec only async-signal-safe calls run, so threads of ours can't wedge the child;
// afterwards they are watched through a pidfd. Linux only. A ChildProcess belongs to one thread.

#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace skytrain {

// Owns a file descriptor. -1 is "none".
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd() { reset(); }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset();
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

struct ExitStatus {
  bool signalled = false;
  int code = 0;  // exit code, or the signal's number
  bool ok() const { return !signalled && code == 0; }
  std::string describe() const;  // "exited with code 3", "was killed by SIGKILL (9)"
};

class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> argv;                               // argv[0] is the program's path …
    std::string program;                                         // … unless this is it
    std::vector<std::pair<std::string, std::string>> extra_env;  // added to our environment
    std::vector<std::pair<int, int>> fds;  // (our fd, number in the child); others are closed there
    std::string stdout_stderr_file;        // "" = inherited
    // So that the terminal's Ctrl-C reaches only us. The child then reads /dev/null, unless `fds` gives it a 0: a group
    // in the background that reads the terminal is stopped.
    bool new_process_group = true;
    // prctl(PR_SET_PDEATHSIG) when non-zero. It is the spawning *thread* whose end counts: spawn from one that stays.
    int parent_death_signal = 0;
  };
  // Throws Error(kEnvironment) naming the program when it can't be started.
  static ChildProcess spawn(const Options& options);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();  // kills (SIGKILL, with its process group) and reaps a child that still runs

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }  // readable when the child has ended
  void signal(int signo);                     // no error when it has ended
  // Waits up to `seconds` (forever when negative); nullopt on time-out.
  std::optional<ExitStatus> wait(double seconds = -1);
  // Peak resident memory in bytes, known after wait(). Never below ours at the time of the fork.
  uint64_t peak_rss_bytes() const { return peak_rss_bytes_; }

 private:
  ChildProcess() = default;
  void end() noexcept;

  pid_t pid_ = -1;
  Fd pidfd_;
  bool own_group_ = false;
  std::optional<ExitStatus> status_;
  uint64_t peak_rss_bytes_ = 0;
};

// Two connected SOCK_STREAM descriptors, close-on-exec.
std::pair<Fd, Fd> stream_socket_pair();

// Folder of the running program, from /proc/self/exe.
std::string program_directory();

uint64_t peak_rss_bytes();                 // VmHWM of this process
double process_start_unix_seconds(pid_t);  // from /proc/<pid>/stat

}  // namespace skytrain
