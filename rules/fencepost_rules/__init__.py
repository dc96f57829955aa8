"""The rules: which facts are defects, and how are they explained?"""
