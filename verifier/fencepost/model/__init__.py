"""The execution model: what does a kernel do on concrete values?"""
