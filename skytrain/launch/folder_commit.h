// skytrain/launch/folder_commit.h
//
// Checkpoints of a foreign program: what it leaves in one folder is copied to another one when it is complete, and
// committed there, so that what counts is whole. Knows nothing of processes and threads: the caller asks now and then.
//
//   DESTINATION/epoch-3.pt                 a file or a folder, as it was
//   DESTINATION/epoch-3.pt.skytrain.json   size and XXH3-128 of each of its files; written before the rename below
//   DESTINATION/epoch-3.pt.skytrain.tmp    a copy that is not committed; the rename to the name above is the commit
//
// Nothing that is committed is replaced: a name that comes again with other content is committed as epoch-3.v7.pt,
// where 7 counts commits. The newest is the one committed last, whatever the clocks say. Not thread-safe.

#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "skytrain/base/file_system.h"

namespace skytrain::launch {

struct CommitOptions {
  std::string watch, destination;
  int64_t keep = 3;          // the newest that stay, >= 1
  double quiet_seconds = 2;  // without change before something counts as complete
};

struct CommitHooks {
  std::function<bool(const std::string& path)> is_link;  // symbolic links are left out: they may lead anywhere
  // Paths below the watched folder that the program has open for writing, as far as anyone can tell.
  std::function<std::vector<std::string>()> open_for_writing;
  std::function<bool()> stop;  // true: give up the copy that is under way
  std::function<void(const std::string& line)> note;
};

// The manifest of a commit.
struct Commit {
  uint64_t sequence = 0;  // from 1; the newest has the highest
  std::string name;       // in the destination
  std::string source;     // in the watched folder
  bool folder = false;
  double committed_unix_seconds = 0;
  struct File {
    std::string path;  // within the folder; "" for a file that stands alone
    uint64_t bytes = 0;
    std::string xxh128;
    bool operator==(const File&) const = default;
  };
  std::vector<File> files;               // sorted by path
  std::vector<std::string> directories;  // within the folder, parents first
};

class FolderCommit {
 public:
  static constexpr char kManifestSuffix[] = ".skytrain.json", kTemporarySuffix[] = ".skytrain.tmp";
  static constexpr double kRetrySeconds = 15;  // after a commit that failed

  FolderCommit(FileSystem& fs, CommitOptions options, CommitHooks hooks);

  // Makes both folders and removes what an earlier life left uncommitted. Throws Error(kUsage) when one of them lies in
  // the other, Error(kEnvironment).
  void prepare();

  // What is there now is not committed until it changes: nobody knows whether who wrote it had finished.
  void pass_over_what_is_there();

  // Commits what is complete. seconds: monotonic. Trouble is a note, and tried again.
  void poll(double seconds);

  // The program has ended well: what it wrote is complete. Throws the Error that kept something from being committed.
  void flush(double seconds);

  // The newest commit whose files all have their sizes and hashes: its path. Damaged ones are noted. Reads it whole.
  std::optional<std::string> newest_valid();

  // Paths of this object's commits, oldest first.
  const std::vector<std::string>& committed() const { return committed_; }

 private:
  struct Tree {  // what stands under a name of the watched folder
    struct Entry {
      std::string path;
      uint64_t bytes = 0;
      double modified = 0;
      bool operator==(const Entry&) const = default;
    };
    bool folder = false;
    bool unfinished = false;  // holds a name that says so
    std::vector<Entry> files;
    std::vector<std::string> directories, links;
    double newest() const;
    uint64_t bytes() const;
    bool operator==(const Tree&) const = default;
  };
  struct Seen {
    Tree tree;
    double since = 0;      // unchanged, and not open for writing
    bool settled = false;  // committed, or passed over
    double retry_at = 0;
    bool told = false;  // that it could not be committed
  };

  std::string watched(const std::string& name) const { return options_.watch + "/" + name; }
  std::string committed_path(const std::string& name) const { return options_.destination + "/" + name; }
  void look(double seconds);
  std::optional<Tree> read_tree(const std::string& name) const;
  void read_into(Tree& tree, const std::string& path, const std::string& relative) const;
  std::vector<std::string> candidates() const;  // not settled and not unfinished, oldest first
  void commit(const std::string& name, Seen& seen);
  bool copy_and_commit(const std::string& name, Seen& seen, const std::string& temporary);
  std::string free_name(const Seen& seen, const std::string& name, uint64_t sequence) const;
  std::vector<Commit> list() const;  // newest first; only those whose rename was done
  uint64_t next_sequence() const;
  Commit copy(const std::string& name, const Tree& tree, const std::string& temporary);
  Commit::File copy_file(const std::string& from, const std::string& to, const Tree::Entry& entry);
  std::string why_damaged(const Commit& commit) const;  // "" when all hashes are right
  void make_room(uint64_t bytes);
  void prune();
  void remove(const Commit& commit);

  FileSystem& fs_;
  const CommitOptions options_;
  const CommitHooks hooks_;
  std::map<std::string, Seen> seen_;
  std::vector<std::string> committed_;
};

}  // namespace skytrain::launch
