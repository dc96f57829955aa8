"""Diagnosis: what is wrong in a run, and what is it called?"""
