"""What memcheck has to report in spite of `memcheck.supp`: memory that is never freed, and a read of freed memory."""

import ctypes


def main() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = (ctypes.c_void_p,)
    libc.malloc(1000)
    freed = libc.malloc(1000)
    libc.free(freed)
    ctypes.string_at(freed, 1000)


if __name__ == "__main__":
    main()
