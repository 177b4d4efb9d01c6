set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(PLAIT_SANITIZE "" CACHE STRING "Sanitizers to build with, e.g. address,undefined or thread")

# Eight files are compiled as one where that saves more than it costs: half of the time goes to the headers that they share. Not
# the libraries that users get: there a file's own name would silently hide a header's name from the file behind it, and a file that
# lacks an include would not be seen.
set(PLAIT_COMPILE_TOGETHER "nothing" CACHE STRING "What is compiled eight files at a time: nothing, tests (and the command), or all (for checks)")
set_property(CACHE PLAIT_COMPILE_TOGETHER PROPERTY STRINGS nothing tests all)
if(PLAIT_COMPILE_TOGETHER STREQUAL "all")
  set(CMAKE_UNITY_BUILD ON)
  # Meant for headers: of a file that is compiled together with others gcc believes that it is one.
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)
# Files whose names without linkage are those of others beside them.
function(plait_compile_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# What one clone has compiled serves the others: paths within the source folder count from the build folder. What a file includes is read
# from what the compiler tells of it, so that nothing is preprocessed twice.
find_program(PLAIT_CCACHE ccache)
if(PLAIT_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1 ${PLAIT_CCACHE})
endif()

# What every target of this project is compiled with; used through plait_target().
add_library(plait_options INTERFACE)
target_compile_options(plait_options INTERFACE -Wall -Wextra -Werror)
# gcc 12 reports "text" + std::string as an overlapping copy at -O3 (its bug 105651).
target_compile_options(plait_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
# Assertions name files as they stand in the source folder: what is installed knows nothing of where it was built.
target_compile_options(plait_options INTERFACE -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=
                                               -fmacro-prefix-map=${PROJECT_BINARY_DIR}/include/=)
# The C++ bindings in mpi.h would make every user of them depend on libmpi_cxx.
target_compile_definitions(plait_options INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
target_include_directories(plait_options INTERFACE ${PROJECT_SOURCE_DIR}/include)

# The release build's objects hold what the compiler knows of their types beside the machine code (2 % more time to compile),
# so that tests/house/one_definition can compare the types of all layers. Nothing is linked by it.
set(PLAIT_COMPARES_TYPES FALSE)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT PLAIT_SANITIZE AND CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
  set(PLAIT_COMPARES_TYPES TRUE)
  target_compile_options(plait_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-flto -ffat-lto-objects>)
  target_link_options(plait_options INTERFACE -fno-lto)
endif()
# For what a small call passes (plugin/, runtime/, tl/). gcc clears a struct of more than 128 bytes, such as a Request, by "rep stos",
# whose start takes as long as a tenth of such a call.
set(PLAIT_SHORT_CALL_OPTIONS "")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  set(blocks vector_loop:512:noalign,libcall:-1:noalign)
  set(PLAIT_SHORT_CALL_OPTIONS $<$<COMPILE_LANGUAGE:CXX>:-mmemset-strategy=${blocks}>
                               $<$<COMPILE_LANGUAGE:CXX>:-mmemcpy-strategy=${blocks}>)
endif()
if(PLAIT_SANITIZE)
  target_compile_options(plait_options INTERFACE -fsanitize=${PLAIT_SANITIZE} -fno-omit-frame-pointer
                                                 -fno-sanitize-recover=all)
  target_link_options(plait_options INTERFACE -fsanitize=${PLAIT_SANITIZE})
endif()
