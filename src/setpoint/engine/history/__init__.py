"""Histories of resources in memory, bounded by count and age. What an entry is: `step/reports.py`.

Imports the core and the reports of steps; imported by stores, and by the reports of a running process.
"""
