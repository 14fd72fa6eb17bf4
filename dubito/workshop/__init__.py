"""The prompt workshop: positions taken from games, and what a prompt says and does at them."""
