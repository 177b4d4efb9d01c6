# Tests that are MPI jobs. They use both cores and measure time-outs, so that nothing runs beside them.

# mpirun on this machine, with more ranks than cores.
set(PLAIT_MPIRUN ${MPIEXEC_EXECUTABLE} --oversubscribe --allow-run-as-root --bind-to none
                 --mca mpi_yield_when_idle 1)

# What the ranks of a test see: Plait from the first call on, and no call handed back because the host is faster.
set(PLAIT_TEST_ENVIRONMENT PLAIT_SETUP_CALLS=1 PLAIT_HOST=0)

# How mpirun takes the component of the build folder: its own folder stays the first place to look.
set(PLAIT_COMPONENT_PARAMETERS --mca mca_base_component_path SYSTEM_DEFAULT:${CMAKE_BINARY_DIR}/openmpi
                               --mca coll_plait_priority 90)

# plait_job_test(NAME name RANKS n COMMAND target argument... [ENVIRONMENT K=V...] [MCA key value...]
#                [TIMEOUT seconds] [LABELS label...] [PLAIN | COMPONENT])
# Runs the target's program on n ranks of this machine with libplait.so loaded, without it (PLAIN), or with Open MPI's
# component in its place.
function(plait_job_test)
  cmake_parse_arguments(TEST "PLAIN;COMPONENT" "NAME;RANKS;TIMEOUT" "COMMAND;ENVIRONMENT;MCA;LABELS" ${ARGN})
  set(exports "")
  if(NOT TEST_PLAIN)
    if(NOT TEST_COMPONENT)
      list(APPEND exports -x LD_PRELOAD=$<TARGET_FILE:plait_preload>)
    endif()
    foreach(setting ${PLAIT_TEST_ENVIRONMENT} ${TEST_ENVIRONMENT})
      list(APPEND exports -x ${setting})
    endforeach()
  endif()
  set(parameters "")
  if(TEST_COMPONENT)
    list(APPEND parameters ${PLAIT_COMPONENT_PARAMETERS})
  endif()
  while(TEST_MCA)
    list(POP_FRONT TEST_MCA key value)
    list(APPEND parameters --mca ${key} ${value})
  endwhile()
  list(POP_FRONT TEST_COMMAND program)
  add_test(NAME ${TEST_NAME}
           COMMAND ${PLAIT_MPIRUN} ${parameters} ${exports} ${MPIEXEC_NUMPROC_FLAG} ${TEST_RANKS}
                   $<TARGET_FILE:${program}> ${TEST_COMMAND})
  plait_job_properties(${TEST_NAME} "${TEST_TIMEOUT}" mpi ${TEST_LABELS})
endfunction()

# plait_cluster_test(NAME name COMMAND script argument... [TIMEOUT seconds] [LABELS label...])
# A script that makes its own emulated cluster; it exits with 77 where that is not permitted.
function(plait_cluster_test)
  cmake_parse_arguments(TEST "" "NAME;TIMEOUT" "COMMAND;LABELS" ${ARGN})
  add_test(NAME ${TEST_NAME} COMMAND ${TEST_COMMAND})
  plait_job_properties(${TEST_NAME} "${TEST_TIMEOUT}" cluster ${TEST_LABELS})
  set_tests_properties(${TEST_NAME} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()

function(plait_job_properties name timeout)
  if(NOT timeout)
    set(timeout 120)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} RUN_SERIAL TRUE LABELS "${ARGN}")
endfunction()
