# Tests that are MPI jobs. Much of their time is the launcher's and the naps of ranks that share cores, so that one more than
# there are cores runs side by side. Those of faults mostly wait for time-outs: one of them at a time, from the beginning on.

# What the ranks of a test see: Plait from the first call on, and no call handed back because the host is faster.
set(PLAIT_TEST_ENVIRONMENT PLAIT_SETUP_CALLS=1 PLAIT_HOST=0)

# Jobs on this machine are started by this, whatever their MPI.
set(PLAIT_LAUNCH ${CMAKE_CURRENT_LIST_DIR}/launch)

# The names of tests that run with every MPI: the first MPI's are plain, those of others end in .mpich.
foreach(mpi IN LISTS PLAIT_MPIS)
  string(REPLACE "_" "." plait_test_suffix_${mpi} "${plait_suffix_${mpi}}")
endforeach()

# How mpirun takes Open MPI's component of the build folder: its own folder stays the first place to look.
set(PLAIT_COMPONENT_PARAMETERS --mca mca_base_component_path SYSTEM_DEFAULT:${CMAKE_BINARY_DIR}/openmpi
                               --mca coll_plait_priority 90)

# plait_job_test(NAME name RANKS n COMMAND program argument... [ENVIRONMENT K=V...] [MCA key value...]
#                [TIMEOUT seconds] [LABELS label...] [PLAIN | COMPONENT] [EVERY_MPI])
# Runs a program (plait_mpi_program) on n ranks of this machine with libplait.so loaded, without it (PLAIN), or with Open
# MPI's component in its place: that of the first MPI, or each MPI's in a test of its own (EVERY_MPI).
function(plait_job_test)
  cmake_parse_arguments(TEST "PLAIN;COMPONENT;EVERY_MPI" "NAME;RANKS;TIMEOUT" "COMMAND;ENVIRONMENT;MCA;LABELS" ${ARGN})
  set(settings "")
  if(NOT TEST_PLAIN)
    set(settings ${PLAIT_TEST_ENVIRONMENT} ${TEST_ENVIRONMENT})
    if(TEST_COMPONENT)
      list(APPEND settings ${PLAIT_COMPONENT_PARAMETERS})
    else()
      list(PREPEND settings LD_PRELOAD=$<TARGET_FILE:plait_preload>)
    endif()
  endif()
  while(TEST_MCA)
    list(POP_FRONT TEST_MCA key value)
    list(APPEND settings --mca ${key} ${value})
  endwhile()
  list(POP_FRONT TEST_COMMAND program)
  set(mpis ${PLAIT_FIRST_MPI})
  if(TEST_EVERY_MPI)
    set(mpis ${PLAIT_MPIS})
  endif()
  foreach(mpi IN LISTS mpis)
    set(name ${TEST_NAME}${plait_test_suffix_${mpi}})
    add_test(NAME ${name} COMMAND ${PLAIT_LAUNCH} ${TEST_RANKS} ${settings} --
                                  $<TARGET_FILE:${program}${plait_suffix_${mpi}}> ${TEST_COMMAND})
    plait_job_properties(${name} "${TEST_TIMEOUT}" mpi ${TEST_LABELS})
  endforeach()
endfunction()

# plait_cluster_test(NAME name COMMAND script argument... [TIMEOUT seconds] [LABELS label...])
# A script that makes its own emulated cluster; it exits with 77 where that is not permitted.
function(plait_cluster_test)
  cmake_parse_arguments(TEST "" "NAME;TIMEOUT" "COMMAND;LABELS" ${ARGN})
  add_test(NAME ${TEST_NAME} COMMAND ${TEST_COMMAND})
  plait_job_properties(${TEST_NAME} "${TEST_TIMEOUT}" cluster ${TEST_LABELS})
  set_tests_properties(${TEST_NAME} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()

# plait_lacking_test(name what): stands for tests that this machine lacks something for, and fails: tests that vanish are missed by
# nobody.
function(plait_lacking_test name what)
  add_test(NAME ${name} COMMAND sh -c "echo ${what} is not installed: scripts/setup does that; exit 1")
endfunction()

function(plait_job_properties name timeout)
  if(NOT timeout)
    set(timeout 120)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} LABELS "${ARGN}")
  if("fault" IN_LIST ARGN)
    set_tests_properties(${name} PROPERTIES RESOURCE_LOCK faults COST 1000)
  endif()
endfunction()
