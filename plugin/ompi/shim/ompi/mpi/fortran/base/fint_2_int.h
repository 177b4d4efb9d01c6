/* Debian's developer headers of Open MPI 4.1 include this file and lack it. Where a Fortran INTEGER is a C int, as by
 * default, a value of one is that of the other. The component calls nothing that uses it. */
#ifndef PLAIT_OMPI_SHIM_FINT_2_INT_H
#define PLAIT_OMPI_SHIM_FINT_2_INT_H

#define OMPI_INT_2_FINT(value) (value)
#define OMPI_FINT_2_INT(value) (value)

#endif
