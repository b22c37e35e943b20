"""The heat kernel as a closed form that is proven in ball arithmetic."""
