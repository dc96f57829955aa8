"""Campaigns: does the tool agree with itself and with independent models on thousands of generated kernels?"""
