// skytrain/launch/slurm_hosts.h
//
// Lists of hosts as Slurm writes them: "login1,node[01-03,07],rack[1-2]n[1-2]"; what `scontrol show hostnames` prints
// of one. Numbers keep the width that they are written with; of several brackets the last one counts fastest.

#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace skytrain::launch {

// nullopt: it is no such list, or of more than 65536 hosts.
std::optional<std::vector<std::string>> expand_slurm_hosts(std::string_view list);

}  // namespace skytrain::launch
