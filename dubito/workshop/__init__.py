"""The prompt workshop: it records positions from games, and shows what a prompt says and does at them."""
