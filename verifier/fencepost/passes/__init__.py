"""Passes: how is one kernel IR rewritten into another?"""
