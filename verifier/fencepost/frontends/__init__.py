"""Front ends: how does source text become kernel IR?"""
