# One folder of skytrain/ = one target skytrain_<folder>.
#
#   skytrain_folder(<name> [TORCH] [DEPS <folder or imported target>...])
#
# *.cc            -> library skytrain_<name>
# *_test.cc       -> one test binary skytrain_<name>_test, run by CTest
# main.cc         -> not part of the library: the folder's own program (cli: skytrain, worker: skytrain-worker)
#
# Folders are declared in the order in which they may depend on each other; depending on a later folder is an error.
# A folder without TORCH does not see LibTorch's headers.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(GTest REQUIRED)

function(skytrain_external name)
  cmake_parse_arguments(X "" "" "PKG;LIBS;INCLUDES;HINT" ${ARGN})
  add_library(skytrain_ext_${name} INTERFACE)
  add_library(skytrain_ext::${name} ALIAS skytrain_ext_${name})
  if(X_PKG)
    pkg_check_modules(X_${name} REQUIRED IMPORTED_TARGET ${X_PKG})
    target_link_libraries(skytrain_ext_${name} INTERFACE PkgConfig::X_${name})
  endif()
  target_link_libraries(skytrain_ext_${name} INTERFACE ${X_LIBS})
endfunction()

skytrain_external(json)      # nlohmann-json: headers
skytrain_external(cli11)     # headers
skytrain_external(protozero) # headers
skytrain_external(spdlog PKG spdlog)
skytrain_external(xxhash PKG libxxhash)
skytrain_external(crypto PKG libcrypto)
skytrain_external(yaml PKG yaml-cpp)
skytrain_external(zlib PKG zlib)
skytrain_external(deflate PKG libdeflate)
skytrain_external(zstd PKG libzstd)
skytrain_external(png PKG libpng)
skytrain_external(jpeg PKG libjpeg)
skytrain_external(hwloc PKG hwloc)

set_property(GLOBAL PROPERTY SKYTRAIN_FOLDERS "")

function(skytrain_folder name)
  cmake_parse_arguments(F "TORCH" "" "DEPS" ${ARGN})
  if(F_TORCH AND NOT SKYTRAIN_TORCH)
    return()
  endif()
  get_property(earlier GLOBAL PROPERTY SKYTRAIN_FOLDERS)
  set(links "")
  foreach(dep IN LISTS F_DEPS)
    if(dep MATCHES "^skytrain_ext::")
      list(APPEND links ${dep})
    elseif(dep IN_LIST earlier)
      list(APPEND links skytrain_${dep})
    else()
      message(FATAL_ERROR "skytrain/${name} depends on ${dep}, which is not declared above it: dependencies go one way")
    endif()
  endforeach()
  set_property(GLOBAL APPEND PROPERTY SKYTRAIN_FOLDERS ${name})

  set(dir ${CMAKE_SOURCE_DIR}/skytrain/${name})
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.cc)
  file(GLOB tests CONFIGURE_DEPENDS ${dir}/*_test.cc)
  list(REMOVE_ITEM sources ${tests} ${dir}/main.cc)
  if(NOT sources)
    add_library(skytrain_${name} INTERFACE)
    target_link_libraries(skytrain_${name} INTERFACE ${links})
    target_include_directories(skytrain_${name} INTERFACE ${CMAKE_SOURCE_DIR})
  else()
    add_library(skytrain_${name} STATIC ${sources})
    target_link_libraries(skytrain_${name} PUBLIC ${links} Threads::Threads)
    target_link_libraries(skytrain_${name} PRIVATE skytrain_warnings)
    target_include_directories(skytrain_${name} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
    if(F_TORCH)
      target_link_libraries(skytrain_${name} PUBLIC skytrain_torch)
    endif()
  endif()

  if(tests AND SKYTRAIN_TESTS)
    add_executable(skytrain_${name}_test ${tests})
    target_link_libraries(skytrain_${name}_test PRIVATE skytrain_${name} skytrain_warnings GTest::gtest GTest::gmock GTest::gtest_main)
    set_target_properties(skytrain_${name}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
    add_test(NAME ${name} COMMAND skytrain_${name}_test --gtest_brief=1 WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 240)
  endif()
endfunction()

# skytrain_program(<folder> <output name> <output dir>): the folder's main.cc as a program.
function(skytrain_program folder output outdir)
  add_executable(${output} ${CMAKE_SOURCE_DIR}/skytrain/${folder}/main.cc)
  target_link_libraries(${output} PRIVATE skytrain_${folder} skytrain_warnings)
  set_target_properties(${output} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${outdir})
endfunction()
