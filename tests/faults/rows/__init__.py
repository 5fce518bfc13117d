"""The rows of the matrix, by what causes the fault."""
