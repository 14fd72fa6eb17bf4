"""Sandbox for untrusted programs.

It limits what they can reach, use and leave behind.
"""
