"""Modules under the paths that programs written for pyzmq import."""
