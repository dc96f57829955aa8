"""Renderers: how does a report look in each format?"""
