# LibTorch without its own TorchConfig.cmake, which insists on a CUDA toolkit.
#
# TORCH_ROOT (cache, or the environment): a folder that has include/ and lib/libtorch_cpu.so: an unpacked wheel's
# torch/, a LibTorch zip, or the `torch` folder of a Python installation. Default: the newest line in .deps/.
#
# Defines the target skytrain_torch (torch_cpu + c10) and TORCH_VERSION. Nothing but TORCH_ROOT is cached, so another
# TORCH_ROOT takes effect in an existing build folder.
set(TORCH_ROOT "$ENV{TORCH_ROOT}" CACHE PATH "LibTorch: folder with include/ and lib/")
set(Torch_ROOT_FOLDER "${TORCH_ROOT}")
if(NOT Torch_ROOT_FOLDER)
  file(GLOB _torch_folders ${CMAKE_SOURCE_DIR}/.deps/torch-*/torch)
  list(SORT _torch_folders COMPARE NATURAL ORDER DESCENDING)
  if(_torch_folders)
    list(GET _torch_folders 0 Torch_ROOT_FOLDER)
  endif()
endif()

set(TORCH_LIBRARIES "")
foreach(_name torch_cpu c10)
  if(EXISTS ${Torch_ROOT_FOLDER}/lib/lib${_name}.so)
    list(APPEND TORCH_LIBRARIES ${Torch_ROOT_FOLDER}/lib/lib${_name}.so)
  else()
    set(TORCH_LIBRARIES "")
    break()
  endif()
endforeach()

set(TORCH_INCLUDE_DIRS "")
set(TORCH_VERSION "")
foreach(_header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)  # of 2.11, of 2.7
  if(EXISTS ${Torch_ROOT_FOLDER}/include/${_header} AND NOT TORCH_VERSION)
    file(READ ${Torch_ROOT_FOLDER}/include/${_header} _text)
    if(_text MATCHES "VERSION_MAJOR ([0-9]+).*VERSION_MINOR ([0-9]+).*VERSION_PATCH ([0-9]+)")
      set(TORCH_VERSION ${CMAKE_MATCH_1}.${CMAKE_MATCH_2}.${CMAKE_MATCH_3})
    endif()
  endif()
endforeach()
if(EXISTS ${Torch_ROOT_FOLDER}/include/torch/csrc/api/include/torch/torch.h)
  set(TORCH_INCLUDE_DIRS ${Torch_ROOT_FOLDER}/include ${Torch_ROOT_FOLDER}/include/torch/csrc/api/include)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Torch REQUIRED_VARS TORCH_LIBRARIES TORCH_INCLUDE_DIRS VERSION_VAR TORCH_VERSION
  REASON_FAILURE_MESSAGE "no LibTorch in TORCH_ROOT=${Torch_ROOT_FOLDER}: it needs include/ and lib/libtorch_cpu.so. ./dev build fetches one")

if(Torch_FOUND AND NOT TARGET skytrain_torch)
  add_library(skytrain_torch INTERFACE)
  target_include_directories(skytrain_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
  target_link_libraries(skytrain_torch INTERFACE ${TORCH_LIBRARIES})
  target_compile_definitions(skytrain_torch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
  # At run time libtorch_cpu.so finds the CUDA runtime and CUPTI by its own RPATH, relative to itself. The linker, which
  # wants to see them too, does not expand $ORIGIN: it is told where the wheels of either line (cu13; cu12) put them.
  set(_nvidia ${Torch_ROOT_FOLDER}/../nvidia)
  target_link_options(skytrain_torch INTERFACE -Wl,--disable-new-dtags -Wl,-rpath-link,${_nvidia}/cu13/lib
    -Wl,-rpath-link,${_nvidia}/cuda_runtime/lib -Wl,-rpath-link,${_nvidia}/cuda_cupti/lib)
endif()
