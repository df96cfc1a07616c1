# LibTorch without its own TorchConfig.cmake, which insists on a CUDA toolkit.
#
# TORCH_ROOT (cache, or the environment): a folder that has include/ and lib/libtorch_cpu.so: an unpacked wheel's
# torch/, a LibTorch zip, or the `torch` folder of a Python installation.
# Defines skytrain_torch: torch_cpu + c10, with a precompiled <torch/torch.h> on request of a folder.
set(TORCH_ROOT "$ENV{TORCH_ROOT}" CACHE PATH "LibTorch: folder with include/ and lib/")
if(NOT TORCH_ROOT)
  file(GLOB _found ${CMAKE_SOURCE_DIR}/.deps/torch-*/torch)
  list(SORT _found ORDER DESCENDING)
  list(GET _found 0 TORCH_ROOT)
endif()
find_library(TORCH_CPU_LIBRARY torch_cpu PATHS ${TORCH_ROOT}/lib NO_DEFAULT_PATH)
find_library(TORCH_C10_LIBRARY c10 PATHS ${TORCH_ROOT}/lib NO_DEFAULT_PATH)
find_path(TORCH_INCLUDE_DIR torch/csrc/api/include/torch/torch.h PATHS ${TORCH_ROOT}/include NO_DEFAULT_PATH)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Torch REQUIRED_VARS TORCH_CPU_LIBRARY TORCH_C10_LIBRARY TORCH_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "LibTorch was not found in TORCH_ROOT=${TORCH_ROOT}; run ./dev build, which fetches it")

if(NOT TARGET skytrain_torch)
  add_library(skytrain_torch INTERFACE)
  target_include_directories(skytrain_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIR} ${TORCH_INCLUDE_DIR}/torch/csrc/api/include)
  target_link_libraries(skytrain_torch INTERFACE ${TORCH_CPU_LIBRARY} ${TORCH_C10_LIBRARY})
  # libtorch_cpu.so of a CUDA build names the CUDA runtime that the wheels put beside it.
  target_link_options(skytrain_torch INTERFACE -Wl,--disable-new-dtags
    -Wl,-rpath-link,${TORCH_ROOT}/../nvidia/cu13/lib -Wl,-rpath-link,${TORCH_ROOT}/../nvidia/cuda_runtime/lib
    -Wl,-rpath-link,${TORCH_ROOT}/../nvidia/cuda_cupti/lib)
  target_compile_definitions(skytrain_torch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
endif()
