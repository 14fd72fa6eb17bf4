"""The prompt workshop, which records positions from games and shows how a prompt performs at them."""
