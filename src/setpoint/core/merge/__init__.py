"""Three-way merge of the children that an owner generates, and the plan for each child.

Used by owners and the engine; imports the rest of the core except `core.wait`.
"""
