! ALLOCATE takes large arrays from the memory that peers can map.
program fortran_allocate
  use mpi
  use iso_c_binding
  implicit none
  interface
    integer(c_int) function in_shared_heap(address) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: address
    end function in_shared_heap
  end interface
  real(8), allocatable, target :: large(:), small(:), grown(:)
  integer :: rank, ierror

  call mpi_init(ierror)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, ierror)
  allocate(large(100000), small(100))
  large = 1.0d0
  small = 1.0d0
  grown = [small, large]
  if (in_shared_heap(c_loc(large)) == 1 .and. in_shared_heap(c_loc(grown)) == 1 .and. in_shared_heap(c_loc(small)) == 0 &
      .and. sum(grown) == 100100.0d0) then
    if (rank == 0) print '(a)', 'right'
  else
    print '(a)', 'wrong'
  end if
  deallocate(large, small, grown)
  call mpi_finalize(ierror)
end program fortran_allocate
