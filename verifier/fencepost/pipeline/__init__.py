"""Annotated software pipelines: does the pipelined loop compute what the serial loop computes?"""
