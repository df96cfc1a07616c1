# Build-wide switches. Presets (CMakePresets.json) set them.
option(SKYTRAIN_TESTS "Build the tests" ON)
option(SKYTRAIN_SANITIZE_ADDRESS "AddressSanitizer + UndefinedBehaviorSanitizer (torch-free folders only)" OFF)
option(SKYTRAIN_SANITIZE_THREAD "ThreadSanitizer (torch-free folders only)" OFF)

# Our own code only: warnings are errors. Headers of others are included as SYSTEM.
add_library(skytrain_warnings INTERFACE)
target_compile_options(skytrain_warnings INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
                                                   -Wno-missing-field-initializers -Werror)

add_compile_options(-fno-omit-frame-pointer)
if(SKYTRAIN_SANITIZE_ADDRESS)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all)
  add_link_options(-fsanitize=address,undefined)
endif()
if(SKYTRAIN_SANITIZE_THREAD)
  add_compile_options(-fsanitize=thread)
  add_link_options(-fsanitize=thread)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()
