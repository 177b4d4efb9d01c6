cmake_minimum_required(VERSION 3.25)
# The library defines MPI's and Plait's symbols, the C library's allocator and what maps memory; nothing else.
#   cmake -DNM=nm -DLIBRARY=libplait.so [-DONLY=name] -P check_exports.cmake
# ONLY: the library defines this symbol instead.
execute_process(COMMAND ${NM} -D --defined-only --format=posix ${LIBRARY} OUTPUT_VARIABLE output RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${NM} failed: ${result}")
endif()
string(REGEX MATCHALL "[^\n]+" lines "${output}")
set(names)
set(allocator malloc calloc realloc reallocarray free posix_memalign aligned_alloc memalign valloc pvalloc
    malloc_usable_size)
# With the C library's version, and not as the default one: programs find them, and dlsym() the C library's.
set(mappings mmap mmap64 munmap mremap madvise)
list(JOIN mappings "|" mapping_names)
foreach(line IN LISTS lines)
  string(REGEX MATCH "^[^ ]+" name "${line}")
  if(line MATCHES "^GLIBC_[0-9.]+ A")
    continue()
  endif()
  string(REGEX REPLACE "^(${mapping_names})@GLIBC_[0-9.]+$" "\\1 of the C library" name "${name}")
  list(APPEND names ${name})
  if(NOT name MATCHES "^(P?MPIX?_|plait_)| of the C library$" AND NOT name IN_LIST allocator)
    message(FATAL_ERROR "${LIBRARY} exports ${name}")
  endif()
endforeach()
if(ONLY)
  if(NOT names STREQUAL ONLY)
    message(FATAL_ERROR "${LIBRARY} exports ${names}, not ${ONLY} alone")
  endif()
  return()
endif()
set(functions MPI_Init MPI_Init_thread MPI_Finalize MPI_Alloc_mem MPI_Free_mem MPI_Start MPI_Startall MPI_Request_free MPI_Wait MPI_Waitall MPI_Waitany MPI_Waitsome MPI_Test MPI_Testall MPI_Testany MPI_Testsome
    MPI_Comm_dup MPI_Comm_dup_with_info MPI_Comm_create MPI_Comm_split MPI_Comm_split_type MPI_Cart_create MPI_Cart_sub)
foreach(collective Barrier Bcast Reduce Allreduce Allgather Allgatherv Gather Scatter Alltoall Reduce_scatter_block Reduce_scatter
        Alltoallv Alltoallw Gatherv Scatterv Scan Exscan)
  string(TOLOWER ${collective} lower)
  list(APPEND functions MPI_${collective} MPI_I${lower} MPI_${collective}_init MPIX_${collective}_init)
endforeach()
foreach(function IN LISTS functions)
  foreach(name ${function} P${function})
    if(NOT name IN_LIST names)
      message(FATAL_ERROR "${LIBRARY} does not export ${name}")
    endif()
  endforeach()
endforeach()
foreach(name ${allocator} plait_alloc plait_free plait_version plait_set_enabled plait_last_plan plait_last_channels plait_trial_calls
        plait_set_plan plait_set_channels plait_allreduce_axes plait_set_progress_duty
        plait_set_progress_threads plait_step plait_reshard_create
        plait_reshard_create_f plait_reshard_local plait_reshard_describe plait_reshard_execute plait_reshard_start
        plait_reshard_start_f plait_reshard_free plait_fused_embedding_create plait_fused_embedding_start
        plait_fused_embedding_run plait_fused_embedding_back_create plait_fused_embedding_back_start
        plait_fused_embedding_back_run plait_fused_gemv_create plait_fused_gemv_start plait_fused_gemv_run
        plait_fused_gemm_reduce_scatter_create plait_fused_gemm_reduce_scatter_start plait_fused_gemm_reduce_scatter_run
        plait_fused_all_gather_gemm_create plait_fused_all_gather_gemm_start plait_fused_all_gather_gemm_run
        plait_fused_moe_dispatch_create plait_fused_moe_dispatch_start plait_fused_moe_dispatch_run
        plait_fused_moe_combine_create plait_fused_moe_combine_start plait_fused_moe_combine_run plait_fused_wait plait_fused_describe plait_fused_free)
  if(NOT name IN_LIST names)
    message(FATAL_ERROR "${LIBRARY} does not export ${name}")
  endif()
endforeach()
foreach(name IN LISTS mappings)
  if(NOT "${name} of the C library" IN_LIST names)
    message(FATAL_ERROR "${LIBRARY} does not export ${name} with the C library's version")
  endif()
endforeach()
