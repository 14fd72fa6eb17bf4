"""The referee of the tournament."""
