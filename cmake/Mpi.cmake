# The MPI libraries that Plait is built for: one of each kind, all in one build. They are asked for how to compile and
# link by their compiler wrappers.
#   PLAIT_MPIS                  the kinds that are built: openmpi, mpich
#   PLAIT_FIRST_MPI             the first of them: for what needs any one
#   plait_mpi_KIND              target: mpi.h and the library
#   plait_mpi_KIND_fortran      target: the Fortran bindings, where there are any
#   PLAIT_KIND_MPIEXEC          the launcher
set(PLAIT_MPI "auto" CACHE STRING "What to build for: openmpi, mpich, both, or auto for what is found")
set_property(CACHE PLAIT_MPI PROPERTY STRINGS auto openmpi mpich both)
if(NOT PLAIT_MPI MATCHES "^(auto|openmpi|mpich|both)$")
  message(FATAL_ERROR "PLAIT_MPI is '${PLAIT_MPI}': expected auto, openmpi, mpich or both")
endif()

set(openmpi_macro OPEN_MPI)
set(mpich_macro MPICH_VERSION)

# Sets `result` to whether the wrapper's mpi.h is of the kind.
function(plait_wraps wrapper kind result)
  execute_process(COMMAND ${wrapper} -E -dM -include mpi.h -x c /dev/null
                  OUTPUT_VARIABLE macros ERROR_QUIET RESULT_VARIABLE status)
  set(${result} FALSE PARENT_SCOPE)
  if(status EQUAL 0 AND macros MATCHES "#define ${${kind}_macro} ")
    set(${result} TRUE PARENT_SCOPE)
  endif()
endfunction()

# A target of what a wrapper adds to a compiler's command line.
function(plait_mpi_target target wrapper)
  execute_process(COMMAND ${wrapper} -show OUTPUT_VARIABLE command OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(words UNIX_COMMAND "${command}")
  set(folders ${words})
  list(FILTER folders INCLUDE REGEX "^-L")
  list(TRANSFORM folders REPLACE "^-L" "")
  add_library(${target} INTERFACE)
  # Open MPI 6 says of what older MPIs have alone that MPI 4 and 4.1 have something better.
  target_compile_options(${target} INTERFACE -Wno-deprecated-declarations)
  foreach(word IN LISTS words)
    if(word MATCHES "^-I(.+)")
      get_filename_component(folder ${CMAKE_MATCH_1} ABSOLUTE)
      target_include_directories(${target} SYSTEM INTERFACE ${folder})
    elseif(word MATCHES "^-l(.+)")
      # By its path, so that its folder is in the build's run paths.
      find_library(library ${CMAKE_MATCH_1} HINTS ${folders} NO_DEFAULT_PATH NO_CACHE)
      if(library)
        target_link_libraries(${target} INTERFACE ${library})
      else()
        target_link_libraries(${target} INTERFACE ${CMAKE_MATCH_1})
      endif()
      unset(library)
    elseif(word MATCHES "^-Wl,.*(rpath|runpath)")
      target_link_options(${target} INTERFACE ${word})
    endif()
  endforeach()
endfunction()

set(PLAIT_MPIS "")
foreach(kind openmpi mpich)
  if(NOT PLAIT_MPI MATCHES "^(auto|both|${kind})$")
    continue()
  endif()
  string(TOUPPER ${kind} KIND)
  # Either its own name, as distributions with several have it, or the only one there is.
  find_program(PLAIT_${KIND}_C NAMES mpicc.${kind} mpicc DOC "The C compiler wrapper of ${kind}")
  set(is_it FALSE)
  if(PLAIT_${KIND}_C)
    plait_wraps(${PLAIT_${KIND}_C} ${kind} is_it)
  endif()
  if(is_it)
    list(APPEND PLAIT_MPIS ${kind})
    plait_mpi_target(plait_mpi_${kind} ${PLAIT_${KIND}_C})
    find_program(PLAIT_${KIND}_MPIEXEC NAMES mpiexec.${kind} mpiexec DOC "The launcher of ${kind}")
  elseif(NOT PLAIT_MPI STREQUAL "auto")
    message(FATAL_ERROR "PLAIT_MPI=${PLAIT_MPI}, but there is no mpicc of ${kind}: PLAIT_${KIND}_C names it")
  endif()
endforeach()
if(NOT PLAIT_MPIS)
  message(FATAL_ERROR "no MPI was found: expected mpicc of Open MPI or MPICH (scripts/setup installs both on Debian)")
endif()
list(GET PLAIT_MPIS 0 PLAIT_FIRST_MPI)

if(CMAKE_Fortran_COMPILER)
  foreach(kind IN LISTS PLAIT_MPIS)
    string(TOUPPER ${kind} KIND)
    find_program(PLAIT_${KIND}_FORTRAN NAMES mpifort.${kind} mpifort DOC "The Fortran compiler wrapper of ${kind}")
    if(PLAIT_${KIND}_FORTRAN)
      plait_mpi_target(plait_mpi_${kind}_fortran ${PLAIT_${KIND}_FORTRAN})
    endif()
  endforeach()
endif()

# plait_mpi_program(name source...): a program for each MPI, which uses mpi.h. The first MPI's bears the plain name, the
# others' end in their MPI's: plait_suffix_openmpi is empty, plait_suffix_mpich is _mpich.
foreach(kind IN LISTS PLAIT_MPIS)
  set(plait_suffix_${kind} _${kind})
endforeach()
set(plait_suffix_${PLAIT_FIRST_MPI} "")
function(plait_mpi_program name)
  foreach(mpi IN LISTS PLAIT_MPIS)
    add_executable(${name}${plait_suffix_${mpi}} ${ARGN})
    target_link_libraries(${name}${plait_suffix_${mpi}} PRIVATE plait_options plait_mpi_${mpi} ${CMAKE_DL_LIBS})
  endforeach()
endfunction()
