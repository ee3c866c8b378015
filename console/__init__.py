"""For people: the kubectl plugin. Looks with the planner's own eyes, and asks for what a user may ask for."""
