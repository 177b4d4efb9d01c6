# MPI for the command-line tool (tuner/), without mpi.h in its interface.
add_library(plait_session STATIC ${CMAKE_CURRENT_LIST_DIR}/collective_calls.cpp ${CMAKE_CURRENT_LIST_DIR}/session.cpp)
# mpi.h would else pull in the withdrawn C++ bindings, and with them a second MPI library.
target_compile_definitions(plait_session PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
target_link_libraries(plait_session PUBLIC plait_core plait_plan PRIVATE MPI::MPI_C)
