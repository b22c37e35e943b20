"""What a computation will cost, before it runs."""
