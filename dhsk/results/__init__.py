"""What a cross-validation found, as typed values, and as the JSON of results.json."""
