"""Recorded worlds: every read of a preview in one file, and the preview of it again without anybody to ask."""
