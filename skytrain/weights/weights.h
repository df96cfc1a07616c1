// skytrain/weights/weights.h
//
// Model weights in the files that people have: safetensors, and what Python's torch.save writes (.pt, .pth, .bin), both
// in the zip form of PyTorch 1.6 and later and in the form before it. docs/weights.md says what is read and refused.
//
// A weights file comes from a stranger. Nothing in it is run: pickles are read by a small machine of our own that knows
// a dozen names and refuses all others. Every size, offset and stride is checked against the file before a byte is
// used, and memory follows the file's size, not its words. Functions here are thread-safe.

#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skytrain/base/file_system.h"
#include "skytrain/checkpoint/safetensors.h"

namespace skytrain::weights {

enum class Format { kSafetensors, kPtZip, kPtLegacy };
std::string_view format_name(Format format);  // "safetensors", "PyTorch (zip)", "PyTorch (before 1.6)"

struct Weights {
  Format format = Format::kSafetensors;
  // In the file's order (safetensors: by name). Bytes are row-major and little-endian, at any alignment, and lie in
  // `memory`: tensors that share a storage in the file share bytes here.
  std::vector<checkpoint::NamedArray> arrays;
  // What was done to find the weights, for people: which key of a checkpoint they were under, a prefix taken off all
  // names. Empty: they were there as they are.
  std::string note;
  // Entries passed over: beside the weights (epoch, optimizer), or among them without being tensors.
  uint64_t ignored = 0;
  std::map<std::string, std::string> metadata;  // of a safetensors file
  std::shared_ptr<const void> memory;           // a span of `arrays` lives as long as a copy of this
};

// Tells the format by content, not by name. The file is read once; only what is not contiguous is copied. Throws
// Error(kData) that names the file and the cause, in one line.
Weights read_weights(const FileSystem& fs, const std::string& path);

// Whether the file is a TorchScript archive (torch.jit.save), which read_weights refuses. Reads the archive's directory
// only; false for what is no archive or a damaged one. Throws only what the file system throws.
bool is_torchscript(const FileSystem& fs, const std::string& path);

// Streams a state dict that Python's torch.load(weights_only=True) opens: a zip of an OrderedDict of tensors on the
// CPU, in the order of `arrays`. Arrays of the same dtype with the same bytes (same address and size) share a storage,
// as tied weights do in Python. The content decides every byte. Returns bytes written.
uint64_t write_pt(WritableFile& out, std::span<const checkpoint::NamedArray> arrays);

}  // namespace skytrain::weights
