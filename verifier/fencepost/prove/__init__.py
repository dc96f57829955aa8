"""Proofs: what holds for all parameter values?"""
