# cmake -P remove_rpath.cmake FILE: forgets where the build machine keeps its libraries.
file(RPATH_REMOVE FILE ${CMAKE_ARGV3})
