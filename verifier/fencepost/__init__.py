"""Fencepost: a static verifier and linter for the synchronisation protocols of accelerator kernels."""
